/* Validates the request of a job and expands it into runs. The HTTP handlers, the suites and the queue call this module.
 * Stateless, thread-safe. */
#ifndef RL_REQUEST_SPEC_H
#define RL_REQUEST_SPEC_H

#include <stddef.h>
#include <stdint.h>

#include "model/imported_trace.h"
#include "model/job.h"
#include "request/job_kind.h"

/* Whether the daemon runs code that this client posts. */
typedef enum rl_posting { RL_POSTING_OFF, RL_POSTING_NEEDS_TOKEN, RL_POSTING_ALLOWED } rl_posting;
typedef struct rl_job_policy { /* what the daemon's configuration and the client's credentials allow */
  rl_posting posting;
  int64_t source_buffer_bytes; /* maximum of rl_job_spec.buffer_bytes */
  const char *builds; /* value of the setting `builds` (named_paths.h). A request's worker_build must be one of its names. NULL:
                         any name is allowed. */
} rl_job_policy;

/* Validates and expands the JSON text of a request. Fails with RL_INPUT and a JSON pointer to the invalid field, or with RL_HTTP
 * 403 or 401 if the request posts code and the policy forbids that. The caller clears *spec (rl_job_spec_clear); after a failure
 * *spec is unchanged. */
int rl_job_spec_parse(const char *text, size_t length, const rl_job_policy *policy, rl_job_spec *spec, rl_error *err);
/* Makes the job that imports an uploaded trace. time_limit_s: 0 stands for the setting job_deadline_s. The caller clears *spec.
 * Fails with RL_INPUT if a member of params is not valid. */
int rl_job_spec_make_import(const rl_imported_trace_params *params, int64_t time_limit_s, rl_job_spec *spec, rl_error *err);
/* Checks whether spec->device, which must be set, supports the runs, and removes runs that it does not support if the request did
 * not ask for them explicitly. unsupported_engines: names of the engines that the device's worker reported as unsupported, one
 * per line. Fails with RL_INPUT at the field that the device does not support, such as /engine, /precisions, /variant or
 * /kernels/N/variant. */
int rl_job_spec_restrict_to_device(rl_job_spec *spec, const char *unsupported_engines, rl_error *err);
/* Returns the array of GET /workloads: the kernels that kernel jobs can measure, with their data types, variants, builds (ways
 * to compile the kernel, rl_kernel_operator.builds) and the JSON Schema of their shape. The caller deletes the array. */
cJSON *rl_job_list_kernels(void);

#endif
