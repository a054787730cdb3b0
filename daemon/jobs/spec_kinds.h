/* The kinds of jobs that have a file of their own, for the table in spec.c, and what they share with it. */
#ifndef RL_JOBS_SPEC_KINDS_H
#define RL_JOBS_SPEC_KINDS_H

#include "jobs/spec.h"

/* Of every kind's request, whose struct has char device[16], uint32_t passes and int64_t deadline_s. */
#define RL_SPEC_COMMON_FIELDS(STRUCT)                                                                                 \
  RL_FIELD(STRUCT, device, RL_FIELD_TEXT,                                                                             \
           .summary = "an id from /devices; default: the first usable GPU, else the CPU"),                            \
      RL_FIELD(STRUCT, passes, RL_FIELD_CHOICES, .names = rl_pass_names,                                              \
               .summary = "ways of looking at each run; default timing"),                                             \
      RL_FIELD(STRUCT, deadline_s, RL_FIELD_INT, .minimum = 0, .maximum = 604800,                                     \
               .summary = "of the whole job, from its start; default 0: the daemon's job_deadline_s")

/* Put malloc'ed text into a buffer of the spec and free it; NULL says that memory was out. */
int rl_spec_keep_text(char *text, char *out, size_t size, rl_error *err);

extern const rl_field rl_spec_kernel_fields[];
int rl_spec_kernel_expand(const cJSON *object, rl_job_spec *spec, rl_error *err);

#endif
