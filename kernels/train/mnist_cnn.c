/* The workload mnist_cnn: its parameters with their bounds and defaults, and the cost of an epoch. */
#include "train/engines.h"
#include "train/model.h"

static const char *const dataset_names[] = {"auto", "files", "synthetic", NULL};

const rl_field rl_train_fields[] = {
    RL_FIELD(rl_train_params, precision, RL_FIELD_CHOICE, .names = rl_precision_names,
             .summary = "fp32: IEEE single precision; tf32: TF32 tensor cores (GPU only); fp16: mixed precision; default fp32"),
    RL_FIELD(rl_train_params, engine, RL_FIELD_TEXT, .summary = "default auto: the fastest that the device has"),
    RL_FIELD(rl_train_params, dataset, RL_FIELD_TEXT, .names = dataset_names,
             .summary = "default auto: the MNIST files of the configured mnist_dir (it is an error if they are missing), or "
                        "synthetic digits if none is configured"),
    RL_FIELD(rl_train_params, epochs, RL_FIELD_INT, .minimum = 1, .maximum = 1000, .summary = "measured epochs; default 2"),
    RL_FIELD(rl_train_params, warmup_epochs, RL_FIELD_INT, .minimum = 0, .maximum = 100,
             .summary = "epochs trained and recorded before the measured ones; default 1"),
    RL_FIELD(rl_train_params, batch_size, RL_FIELD_INT, .minimum = 1, .maximum = 8192, .summary = "images in a step; default 64"),
    RL_FIELD(rl_train_params, seed, RL_FIELD_INT, .minimum = 0, .maximum = 9007199254740991.0,
             .summary = "seed of the initial weights and of the shuffle; default 1"),
    RL_FIELD(rl_train_params, max_images, RL_FIELD_INT, .minimum = 0, .maximum = 10000000,
             .summary =
                 "number of images to train on, the first ones of the data set; the run is then marked partial; default 0: all"),
    RL_FIELD(rl_train_params, learning_rate, RL_FIELD_REAL, .minimum = 1e-8, .maximum = 10,
             .summary = "learning rate of Adam; default 0.001"),
    {0}};

static const rl_multi_value_parameter precisions = {.field = "precision",
                                                    .request_key = "precisions",
                                                    .summary = "one run for each; default fp32 and fp16",
                                                    .default_value_mask = 1u << RL_FP32 | 1u << RL_FP16};

static void defaults(void *params) {
  *(rl_train_params *)params = (rl_train_params){.precision = RL_FP32,
                                                 .engine = "auto",
                                                 .dataset = "auto",
                                                 .epochs = 2,
                                                 .warmup_epochs = 1,
                                                 .batch_size = 64,
                                                 .seed = 1,
                                                 .learning_rate = 1e-3};
}

/* Returns the minimum cost of one epoch, for an engine that keeps all other data on chip: each image and label is read once, and
 * weights and both moments are read at the start and written at the end. */
static rl_cost cost(const void *params, uint64_t images) {
  const double state = 3.0 * RL_PARAMETERS * sizeof(float);
  return (rl_cost){.bytes = (double)images * (RL_IMAGE_PIXELS + 1) + 2 * state,
                   .operations = (double)images * rl_model_min_operations_per_image(),
                   .written_bytes = state,
                   .precision = rl_precision_names[((const rl_train_params *)params)->precision]};
}

static void iteration_counts(const void *params, uint32_t *warmup, uint32_t *iterations) {
  const rl_train_params *train = params;
  *warmup = (uint32_t)train->warmup_epochs;
  *iterations = (uint32_t)train->epochs;
}

const rl_workload rl_mnist_cnn = {.name = "mnist_cnn",
                                  .job_kind = "train",
                                  .summary = "MNIST CNN (315,146 parameters) trained with Adam; one iteration is an epoch",
                                  .fields = rl_train_fields,
                                  .params_size = sizeof(rl_train_params),
                                  .defaults = defaults,
                                  .cost = cost,
                                  .iteration_counts = iteration_counts,
                                  .engines = rl_train_engines,
                                  .multi_value_parameter = &precisions};
