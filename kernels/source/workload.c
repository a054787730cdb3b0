/* A posted kernel as a workload: its parameters name the text and the variant. */
#include <math.h>
#include <string.h>

#include "source/source.h"

static const rl_field params_fields[] = {
    RL_FIELD(rl_source_params, source, RL_FIELD_TEXT, .required = true),
    RL_FIELD(rl_source_params, code_sha256, RL_FIELD_TEXT, .required = true),
    RL_FIELD(rl_source_params, variant, RL_FIELD_TEXT, .required = true),
    RL_FIELD(rl_source_params, index, RL_FIELD_INT, .required = true, .minimum = 0, .maximum = RL_SOURCE_VARIANTS - 1),
    RL_FIELD(rl_source_params, samples, RL_FIELD_INT, .required = true, .minimum = 1, .maximum = 1000),
    {.name = "model_bytes", .type = RL_FIELD_MEASURE, .offset = offsetof(rl_source_params, model.bytes)},
    {.name = "model_operations", .type = RL_FIELD_MEASURE, .offset = offsetof(rl_source_params, model.operations)},
    {0}};

static void defaults(void *params) {
  rl_source_params *made = params;
  memset(made, 0, sizeof *made); /* padding too: parameters are compared as bytes */
  made->samples = 20;
  made->model = (rl_source_model){NAN, NAN};
}

static rl_cost cost(const void *params) {
  const rl_source_model *model = &((const rl_source_params *)params)->model;
  /* Any of the bytes may be written ones. */
  return (rl_cost){.bytes = model->bytes, .operations = model->operations, .written_bytes = model->bytes};
}

static void iteration_counts(const void *params, uint32_t *warmup, uint32_t *iterations) {
  *warmup = 0; /* samples say themselves how warm they are */
  *iterations = (uint32_t)((const rl_source_params *)params)->samples;
}

const rl_workload rl_source_workload = {.name = "source",
                                        .kind = "source",
                                        .summary = "a kernel that was posted",
                                        .fields = params_fields,
                                        .params_size = sizeof(rl_source_params),
                                        .defaults = defaults,
                                        .cost = cost,
                                        .iteration_counts = iteration_counts,
                                        .timing_mode = RL_TIMING_LAUNCHES};
