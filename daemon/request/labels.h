/* The name and the tags of a job, which a client can change at any time. */
#ifndef RL_REQUEST_LABELS_H
#define RL_REQUEST_LABELS_H

#include <stddef.h>

#include "base/error.h"

enum { RL_JOB_LABELS_SIZE = 2048 };

/* Validates a JSON merge patch (RFC 7396) of the members "name" and "tags" of a job's request, and writes it without nulls:
 * null becomes "" or []. Fails with RL_INPUT with a JSON pointer; also if the patch has neither member. */
int rl_job_labels_parse(const char *text, size_t length, char patch[RL_JOB_LABELS_SIZE], rl_error *err);

#endif
