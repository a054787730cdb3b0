/* The kinds of jobs that have a file of their own, for the table in spec.c, and what they share with it. */
#ifndef RL_JOBS_SPEC_KINDS_H
#define RL_JOBS_SPEC_KINDS_H

#include "jobs/spec.h"

/* Put malloc'ed text into a buffer of the spec and free it; NULL says that memory was out. */
int rl_spec_keep_text(char *text, char *out, size_t size, rl_error *err);

extern const rl_field rl_spec_kernel_fields[];
int rl_spec_kernel_expand(const cJSON *object, rl_job_spec *spec, rl_error *err);

#endif
