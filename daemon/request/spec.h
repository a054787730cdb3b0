/* A job asks for runs: what POST /jobs becomes after validation. */
#ifndef RL_REQUEST_SPEC_H
#define RL_REQUEST_SPEC_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/fields.h"
#include "model/job.h"

/* Leave out runs that the device, which is chosen now, would only repeat; RL_INPUT at the variant (/variant, /kernels/N/variant)
 * when that was the one asked for. */
int rl_job_spec_fit(rl_job_spec *spec, rl_error *err);
/* What kernel jobs can measure: an array of kernels with their types, variants, builds and the schema of their shape. The caller
 * deletes it. */
cJSON *rl_job_kernels(void);

/* Whether the code that clients post is run. */
typedef enum rl_posting { RL_POSTING_OFF, RL_POSTING_NEEDS_TOKEN, RL_POSTING_ALLOWED } rl_posting;
typedef struct rl_job_policy { /* of the configuration, and of who asks */
  rl_posting posting;
  int64_t source_buffer_bytes; /* most of rl_job_spec.buffer_bytes */
} rl_job_policy;

/* A kind of job: which fields its request has, and how it becomes runs. One table, rl_job_kinds. */
typedef struct rl_job_kind {
  const char *name, *summary;
  const rl_field *fields; /* of the whole request object, "kind" among them */
  /* Validate the request and fill in device, passes, profile, deadline_s, runs and request of a zeroed spec. */
  int (*expand)(const cJSON *request, rl_job_spec *spec, rl_error *err);
  bool posted; /* it runs code that the client posts */
} rl_job_kind;
extern const rl_job_kind rl_job_kinds[]; /* ends with {0} */

/* Validate a request body (JSON text) and expand it: RL_INPUT with a pointer to the field on any mistake, RL_HTTP 403 or 401 when
 * the policy does not allow it. */
int rl_job_spec_parse(const char *text, size_t length, const rl_job_policy *policy, rl_job_spec *spec, rl_error *err);

#endif
