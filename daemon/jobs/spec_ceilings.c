/* ceilings: one run that measures what a device can do at best. */
#include <stdio.h>

#include "ceilings/ceilings.h"
#include "jobs/spec_kinds.h"

typedef struct ceilings_request {
  int kind;
  int64_t samples, seed;
  char device[16];
  uint32_t passes;
  int64_t deadline_s;
} ceilings_request;

static const char *const kind_names[] = {"ceilings", NULL};

const rl_field rl_spec_ceilings_fields[] = {
    RL_FIELD(ceilings_request, kind, RL_FIELD_CHOICE, .names = kind_names, .required = true, .summary = "what to measure"),
    RL_FIELD(ceilings_request, samples, RL_FIELD_INT, .minimum = 1, .maximum = 1000,
             .summary = "times to take of each bandwidth and rate; the best counts; default 20"),
    RL_FIELD(ceilings_request, seed, RL_FIELD_INT, .minimum = 0, .maximum = 9007199254740991.0,
             .summary = "of the data; default 1"),
    RL_SPEC_COMMON_FIELDS(ceilings_request),
    {0}};

int rl_spec_ceilings_expand(const cJSON *object, rl_job_spec *spec, rl_error *err) {
  rl_ceilings_params params;
  rl_ceilings.defaults(&params);
  ceilings_request request = {.samples = params.samples, .seed = params.seed, .passes = 1u << RL_PASS_TIMING};
  if (rl_fields_decode(rl_spec_ceilings_fields, object, "", &request, sizeof request, err) < 0) return -1;
  params = (rl_ceilings_params){.samples = request.samples, .seed = request.seed};
  rl_run_spec *run = &spec->runs[spec->run_count++];
  snprintf(run->workload, sizeof run->workload, "%s", rl_ceilings.name);
  snprintf(run->variant, sizeof run->variant, "best");
  snprintf(spec->device, sizeof spec->device, "%s", request.device);
  spec->passes = request.passes;
  spec->deadline_s = request.deadline_s;
  return rl_spec_keep_text(rl_fields_print(rl_ceilings_fields, &params), run->params, sizeof run->params, err) < 0
             ? -1
             : rl_spec_keep_text(rl_fields_print(rl_spec_ceilings_fields, &request), spec->request, sizeof spec->request, err);
}
