/* train: one MNIST run for each precision. */
#include <stdio.h>
#include <string.h>

#include "request/spec_kinds.h"
#include "train/model.h"

typedef struct train_request {
  int kind;
  uint32_t precisions; /* bit i: rl_precision i */
  int64_t epochs, warmup_epochs, batch_size, seed, max_images;
  double learning_rate;
  int engine, dataset;
  rl_spec_common common;
} train_request;

/* Engines, and what the id of their devices begins with. */
#define ENGINES(EACH)      \
  EACH("auto", "")         \
  EACH("reference", "cpu") \
  EACH("blas", "cpu") EACH("cudnn", "gpu") EACH("fused", "") EACH("persistent", "gpu")
#define ENGINE_NAME(name, device) name,
#define ENGINE_DEVICE(name, device) device,

static const char *const kind_names[] = {"train", NULL};
static const char *const engine_names[] = {ENGINES(ENGINE_NAME) NULL};
static const char *const engine_devices[] = {ENGINES(ENGINE_DEVICE)};
static const char *const dataset_names[] = {"auto", "files", "synthetic", NULL};

const rl_field rl_spec_train_fields[] = {
    RL_FIELD(train_request, kind, RL_FIELD_CHOICE, .names = kind_names, .required = true, .summary = "what to measure"),
    RL_FIELD(train_request, precisions, RL_FIELD_CHOICES, .names = rl_precision_names,
             .summary = "one run for each; default fp32 and fp16"),
    RL_FIELD(train_request, epochs, RL_FIELD_INT, .minimum = 1, .maximum = 1000, .summary = "measured epochs; default 2"),
    RL_FIELD(train_request, warmup_epochs, RL_FIELD_INT, .minimum = 0, .maximum = 100,
             .summary = "epochs before them, recorded apart; default 1"),
    RL_FIELD(train_request, batch_size, RL_FIELD_INT, .minimum = 1, .maximum = 8192, .summary = "default 64"),
    RL_FIELD(train_request, seed, RL_FIELD_INT, .minimum = 0, .maximum = 9007199254740991.0,
             .summary = "of initial weights and shuffles; default 1"),
    RL_FIELD(train_request, max_images, RL_FIELD_INT, .minimum = 0, .maximum = 10000000,
             .summary = "train on the first so many images only; default 0: all of them"),
    RL_FIELD(train_request, learning_rate, RL_FIELD_REAL, .minimum = 1e-12, .maximum = 10, .summary = "of Adam; default 0.001"),
    RL_FIELD(train_request, engine, RL_FIELD_CHOICE, .names = engine_names,
             .summary = "default auto: the best that the device has"),
    RL_FIELD(train_request, dataset, RL_FIELD_CHOICE, .names = dataset_names,
             .summary = "default auto: the IDX files if they are there, else synthetic digits"),
    RL_SPEC_COMMON_FIELDS(train_request),
    RL_SPEC_PROFILE_FIELDS(train_request),
    RL_SPEC_SELECTION_FIELDS(train_request),
    {0}};

static const train_request defaults = {
    .precisions = 1u << RL_FP32 | 1u << RL_FP16,
    .epochs = 2,
    .warmup_epochs = 1,
    .batch_size = 64,
    .seed = 1,
    .learning_rate = 1e-3,
    .common = RL_SPEC_COMMON_DEFAULTS,
};

/* An engine lives on one kind of device, so it chooses the device or must fit the one that was asked for. */
static int choose_device(const train_request *request, char *device, size_t size, rl_error *err) {
  const char *kind = engine_devices[request->engine];
  if (request->common.device[0] != '\0' && strncmp(request->common.device, kind, strlen(kind)) != 0)
    return rl_fail_at(err, "/engine", "engine %s runs on a %s, and device is %s", engine_names[request->engine], kind,
                      request->common.device);
  bool on_cpu = strcmp(kind, "cpu") == 0;
  snprintf(device, size, "%s", request->common.device[0] == '\0' && on_cpu ? "cpu" : request->common.device);
  return 0;
}

static int add_run(const train_request *request, int precision, rl_job_spec *spec, rl_error *err) {
  rl_train_params params = {.precision = precision,
                            .epochs = request->epochs,
                            .warmup_epochs = request->warmup_epochs,
                            .batch_size = request->batch_size,
                            .seed = request->seed,
                            .max_images = request->max_images,
                            .learning_rate = request->learning_rate};
  snprintf(params.engine, sizeof params.engine, "%s", engine_names[request->engine]);
  snprintf(params.dataset, sizeof params.dataset, "%s", dataset_names[request->dataset]);
  return rl_spec_add_run(&rl_mnist_cnn, rl_precision_names[precision], &params, spec, err);
}

int rl_spec_train_expand(const cJSON *object, rl_job_spec *spec, rl_error *err) {
  train_request request = defaults;
  if (rl_fields_decode(rl_spec_train_fields, object, "", &request, sizeof request, err) < 0 ||
      rl_spec_take_common(&request.common, spec, err) < 0 || choose_device(&request, spec->device, sizeof spec->device, err) < 0)
    return -1;
  for (int precision = 0; rl_precision_names[precision] != NULL; precision++)
    if (request.precisions & 1u << precision && add_run(&request, precision, spec, err) < 0) return -1;
  return rl_spec_keep_request(rl_spec_train_fields, &request, spec, err);
}
