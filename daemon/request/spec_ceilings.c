/* Expands requests of the job kind "ceilings" into one run, which measures the highest bandwidths and arithmetic rates of a
 * device. */
#include "ceilings/ceilings.h"
#include "request/spec_internal.h"

typedef struct ceilings_request {
  int kind;
  int64_t samples, seed;
  rl_spec_common common;
} ceilings_request;

static const char *const kind_names[] = {"ceilings", NULL};

const rl_field rl_spec_ceilings_fields[] = {
    RL_FIELD(ceilings_request, kind, RL_FIELD_CHOICE, .names = kind_names, .required = true, .summary = "kind of the job"),
    RL_FIELD(ceilings_request, samples, RL_FIELD_INT, .minimum = 1, .maximum = 1000,
             .summary = "number of durations that are measured for each bandwidth and rate; the shortest one counts; default 20"),
    RL_FIELD(ceilings_request, seed, RL_FIELD_INT, .minimum = 0, .maximum = 9007199254740991.0,
             .summary = "seed of the random data that the measurements read; default 1"),
    RL_SPEC_COMMON_FIELDS(ceilings_request),
    {0}};

int rl_spec_ceilings_expand(const cJSON *object, rl_job_spec *spec, rl_error *err) {
  rl_ceilings_params params;
  rl_ceilings.defaults(&params);
  ceilings_request request = {.samples = params.samples, .seed = params.seed, .common = RL_SPEC_COMMON_DEFAULTS};
  if (rl_fields_decode(rl_spec_ceilings_fields, object, "", &request, sizeof request, err) < 0 ||
      rl_spec_apply_common(&request.common, spec, err) < 0)
    return -1;
  params = (rl_ceilings_params){.samples = request.samples, .seed = request.seed};
  if (rl_spec_add_run(&rl_ceilings, "best", &params, spec, err) < 0) return -1;
  return rl_spec_write_request(rl_spec_ceilings_fields, &request, spec, err);
}
