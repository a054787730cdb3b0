/* Validates the request of POST /jobs and expands it into runs. */
#ifndef RL_REQUEST_SPEC_H
#define RL_REQUEST_SPEC_H

#include <stddef.h>
#include <stdint.h>

#include "model/imported_trace.h"
#include "model/job.h"
#include "request/job_kind.h"

/* Whether the daemon runs code that this client posts. */
typedef enum rl_posting { RL_POSTING_OFF, RL_POSTING_NEEDS_TOKEN, RL_POSTING_ALLOWED } rl_posting;
typedef struct rl_job_policy { /* limits that follow from the configuration and the client's credentials */
  rl_posting posting;
  int64_t source_buffer_bytes; /* maximum of rl_job_spec.buffer_bytes */
  const char *builds;          /* named_paths.h: the builds that jobs may name; NULL: any */
} rl_job_policy;

/* Validates and expands the JSON text of a request. Fails with RL_INPUT with a JSON pointer to the field; fails with RL_HTTP
 * 403 or 401 if the policy forbids posted code. The caller clears *spec (rl_job_spec_clear); on failure it is untouched. */
int rl_job_spec_parse(const char *text, size_t length, const rl_job_policy *policy, rl_job_spec *spec, rl_error *err);
/* Makes the job that imports an uploaded trace. time_limit_s 0: as configured. The caller clears *spec. Fails with RL_INPUT if a
 * member of params is not valid. */
int rl_job_spec_make_import(const rl_imported_trace_params *params, int64_t time_limit_s, rl_job_spec *spec, rl_error *err);
/* Checks the runs against spec->device, which must be set, and removes kernel variants that the device does not have.
 * unsupported_engines: names, one a line, of the engines that the device's worker reported as unsupported. Returns -1 with
 * RL_INPUT at the field that the device does not support: /engine, /precisions, /variant, /kernels/N/variant. */
int rl_job_spec_restrict_to_device(rl_job_spec *spec, const char *unsupported_engines, rl_error *err);
/* Returns the array of GET /workloads: the kernels that kernel jobs can measure, with their types, variants, builds and the JSON
 * Schema of their shape. The caller deletes it. */
cJSON *rl_job_list_kernels(void);

#endif
