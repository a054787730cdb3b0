/* Defines the workload "source": a posted kernel. Its parameters contain the variant, the hash of the request and the hash of
 * the code. */
#include <math.h>
#include <string.h>

#include "source/source.h"

static const rl_field params_fields[] = {
    {.name = "source",
     .type = RL_FIELD_TEXT,
     .offset = offsetof(rl_source_params, source_sha256),
     .size = RL_SHA256_SIZE,
     .required = true},
    RL_FIELD(rl_source_params, code_sha256, RL_FIELD_TEXT, .required = true),
    RL_FIELD(rl_source_params, variant, RL_FIELD_TEXT, .required = true),
    {.name = "index",
     .type = RL_FIELD_INT,
     .offset = offsetof(rl_source_params, variant_index),
     .size = sizeof(int64_t),
     .required = true,
     .maximum = RL_SOURCE_VARIANTS_MAX - 1},
    RL_FIELD(rl_source_params, samples, RL_FIELD_INT, .required = true, .minimum = 1, .maximum = 1000),
    {.name = "model_bytes", .type = RL_FIELD_NULLABLE_REAL, .offset = offsetof(rl_source_params, model.bytes)},
    {.name = "model_operations", .type = RL_FIELD_NULLABLE_REAL, .offset = offsetof(rl_source_params, model.operations)},
    {0}};

static void defaults(void *params) {
  rl_source_params *created = params;
  memset(created, 0, sizeof *created); /* padding too: parameters are compared as bytes */
  created->samples = 20;
  created->model = (rl_source_model){NAN, NAN};
}

static rl_cost cost(const void *params, uint64_t images) {
  (void)images;
  const rl_source_model *model = &((const rl_source_params *)params)->model;
  /* A request states only the sum of the bytes that are read and written, so all of them count as written too. */
  return (rl_cost){.bytes = model->bytes, .operations = model->operations, .written_bytes = model->bytes};
}

static void iteration_counts(const void *params, uint32_t *warmup, uint32_t *measured) {
  *warmup = 0; /* each sample sets its cache state itself */
  *measured = (uint32_t)((const rl_source_params *)params)->samples;
}

const rl_workload rl_source_workload = {.name = "source",
                                        .job_kind = "source",
                                        .summary = "a posted kernel",
                                        .fields = params_fields,
                                        .params_size = sizeof(rl_source_params),
                                        .defaults = defaults,
                                        .cost = cost,
                                        .iteration_counts = iteration_counts,
                                        .timing_mode = RL_TIMING_LAUNCHES,
                                        .restores_buffers = true};
