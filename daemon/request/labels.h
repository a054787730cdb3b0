/* Parses changes of a job's labels, its name and its tags, which a client can change at any time (PATCH /jobs/{id}). */
#ifndef RL_REQUEST_LABELS_H
#define RL_REQUEST_LABELS_H

#include <stddef.h>

#include "base/error.h"

enum { RL_JOB_LABELS_SIZE = 2048 };

/* Validates a JSON merge patch (RFC 7396) of the members "name" and "tags" of a job's request, and writes it into `patch` with ""
 * or [] instead of null. Fails with RL_INPUT and a JSON pointer if a member is invalid, or if the patch has neither member. */
int rl_job_labels_parse(const char *text, size_t length, char patch[RL_JOB_LABELS_SIZE], rl_error *err);
/* Fails with RL_INPUT at the pointer if a name that a client has sent is not empty but shows nothing. what: "name", for the
 * message. */
int rl_job_check_name(const char *name, const char *what, const char *pointer, rl_error *err);

#endif
