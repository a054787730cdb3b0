/* A kind of job: which fields its request has, and how the request becomes runs. */
#ifndef RL_REQUEST_JOB_KIND_H
#define RL_REQUEST_JOB_KIND_H

#include "base/fields.h"
#include "model/job.h"

enum { RL_REQUEST_FIELDS_MAX = 48, RL_REQUEST_ENGINES_MAX = 16 };

/* Storage for fields that are made from those of a workload's parameters. */
typedef struct rl_request_fields {
  rl_field rows[RL_REQUEST_FIELDS_MAX];
  const char *engines[RL_REQUEST_ENGINES_MAX]; /* names of the field "engine" */
} rl_request_fields;

typedef struct rl_job_kind {
  const char *name, *summary;
  /* Of the whole request object, "kind" among them. NULL: make_fields writes them into storage and returns them. */
  const rl_field *fields;
  const rl_field *(*make_fields)(rl_request_fields *storage);
  /* Validates the request and fills in device, passes, profile, deadline_s, runs and request of a zeroed spec. */
  int (*expand)(const cJSON *request, rl_job_spec *spec, rl_error *err);
  /* Checks the runs against spec->device and may drop runs that would repeat another one there. -1 with RL_INPUT at the field
   * that the device does not support. NULL: every device supports every run. */
  int (*fit)(rl_job_spec *spec, const char *unsupported_engines, rl_error *err);
  bool posted; /* it runs code that the client posts */
} rl_job_kind;

extern const rl_job_kind rl_job_kinds[]; /* ends with {0} */

/* The fields of the kind's request, in storage or static. */
const rl_field *rl_job_kind_fields(const rl_job_kind *kind, rl_request_fields *storage);

#endif
