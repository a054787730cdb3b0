/* The table of job kinds ("train", "kernel", "layer", …): for each kind, the fields of its request and the functions that turn a
 * request into runs. spec.c defines the table and reads it when a client submits a job. */
#ifndef RL_REQUEST_JOB_KIND_H
#define RL_REQUEST_JOB_KIND_H

#include "base/fields.h"
#include "model/job.h"

enum { RL_REQUEST_FIELDS_MAX = 48, RL_REQUEST_ENGINES_MAX = 16 };

/* Memory for a field table that make_fields builds from the fields of a workload's parameters. */
typedef struct rl_request_fields {
  rl_field fields[RL_REQUEST_FIELDS_MAX];      /* ends with {0} */
  const char *engines[RL_REQUEST_ENGINES_MAX]; /* allowed values of the field "engine"; ends with NULL */
  const char *kinds[2];                        /* values of the field "kind"; ends with NULL */
} rl_request_fields;

typedef struct rl_job_kind {
  const char *name, *summary;
  /* The fields of the whole request object, including "kind". NULL: make_fields builds the table in `storage` and returns it. */
  const rl_field *fields;
  const rl_field *(*make_fields)(const char *kind, rl_request_fields *storage);
  /* Validates the request and fills in device, passes, profile, time_limit_s, runs and request of a zeroed spec. */
  int (*expand)(const cJSON *request, rl_job_spec *spec, rl_error *err);
  /* Checks whether spec->device supports the runs, and may remove runs that it does not support. Fails with RL_INPUT at the field
   * that the device does not support if a run must not be removed or no run remains. NULL: every device supports every run. */
  int (*restrict_to_device)(rl_job_spec *spec, const char *unsupported_engines, rl_error *err);
  bool runs_posted_code;
} rl_job_kind;

extern const rl_job_kind rl_job_kinds[]; /* ends with {0} */

/* Returns the fields of the kind's request, which may be in `storage`. */
const rl_field *rl_job_kind_fields(const rl_job_kind *kind, rl_request_fields *storage);

#endif
