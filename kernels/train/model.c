/* The MNIST CNN as plain data: layout, initial values, the job's parameters and the cost of an epoch. */
#include "train/model.h"

#include <math.h>

const char *const rl_tensor_names[] = {"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.weight",
                                       "fc1.bias",     "fc2.weight", "fc2.bias",     NULL};
enum {
  CONV1_W = RL_C1 * 9,
  CONV2_W = RL_C2 * RL_C1 * 9,
  FC1_W = RL_FC1 * RL_FLAT,
  FC2_W = RL_CLASSES * RL_FC1,
  AT_CONV2 = CONV1_W + RL_C1,
  AT_FC1 = AT_CONV2 + CONV2_W + RL_C2,
  AT_FC2 = AT_FC1 + FC1_W + RL_FC1
};
const uint32_t rl_tensor_sizes[RL_TENSORS] = {CONV1_W, RL_C1, CONV2_W, RL_C2, FC1_W, RL_FC1, FC2_W, RL_CLASSES};
const uint32_t rl_tensor_offsets[RL_TENSORS + 1] = {
    0, CONV1_W, AT_CONV2, AT_CONV2 + CONV2_W, AT_FC1, AT_FC1 + FC1_W, AT_FC2, AT_FC2 + FC2_W, RL_PARAMETERS};
_Static_assert(AT_FC2 + FC2_W + RL_CLASSES == RL_PARAMETERS, "the tensors fill the parameters");

/* A bias has the fan-in of its weight, as in torch.nn.Linear and torch.nn.Conv2d. */
static const uint32_t fan_in[RL_TENSORS] = {9, 9, RL_C1 * 9, RL_C1 * 9, RL_FLAT, RL_FLAT, RL_FC1, RL_FC1};

void rl_model_initialise(uint64_t seed, float *weights) {
  for (uint32_t tensor = 0; tensor < RL_TENSORS; tensor++) {
    uint64_t key = rl_hash64(rl_hash64(seed) + tensor);
    double bound = 1 / sqrt(fan_in[tensor]);
    float *to = weights + rl_tensor_offsets[tensor];
    for (uint32_t i = 0; i < rl_tensor_sizes[tensor]; i++) {
      double unit = (double)(rl_hash64(key + i) >> 11) * 0x1p-53;
      to[i] = (float)((2 * unit - 1) * bound);
    }
  }
}

static const double conv1 = 2.0 * RL_H1 * RL_H1 * CONV1_W, conv2 = 2.0 * RL_H2 * RL_H2 * CONV2_W, linear = 2.0 * (FC1_W + FC2_W);

/* Forward, gradient of weights, gradient of inputs. */
double rl_model_operations_per_image(void) { return 2 * conv1 + 3 * (conv2 + linear); }
double rl_model_least_operations_per_image(void) { return conv1 + conv2 + 3 * linear; }

const char *const rl_precision_names[] = {"fp32", "tf32", "fp16", NULL};

const rl_field rl_train_fields[] = {
    RL_FIELD(rl_train_params, precision, RL_FIELD_CHOICE, .names = rl_precision_names,
             .summary = "fp32: IEEE single everywhere; tf32: with TF32 tensor cores (GPU only); fp16: mixed precision"),
    RL_FIELD(rl_train_params, engine, RL_FIELD_TEXT, .summary = "auto, or an engine of the device"),
    RL_FIELD(rl_train_params, dataset, RL_FIELD_TEXT,
             .summary = "auto (MNIST files when they are there, else synthetic digits), files or synthetic"),
    RL_FIELD(rl_train_params, epochs, RL_FIELD_INT, .minimum = 1, .maximum = 1000, .summary = "measured epochs"),
    RL_FIELD(rl_train_params, warmup_epochs, RL_FIELD_INT, .minimum = 0, .maximum = 100,
             .summary = "epochs before those that are measured; they train too"),
    RL_FIELD(rl_train_params, batch_size, RL_FIELD_INT, .minimum = 1, .maximum = 8192, .summary = "images in a step"),
    RL_FIELD(rl_train_params, seed, RL_FIELD_INT, .minimum = 0, .maximum = 9007199254740991.0,
             .summary = "of the initial weights and of the shuffle"),
    RL_FIELD(rl_train_params, max_images, RL_FIELD_INT, .minimum = 0, .maximum = 1e7,
             .summary = "train on the first so many images only and mark the run partial; 0: all"),
    RL_FIELD(rl_train_params, learning_rate, RL_FIELD_REAL, .minimum = 1e-8, .maximum = 10, .summary = "of Adam"),
    {0}};

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

/* Of one epoch. What must move even when everything else stays on the chip: each image and label read once; weights and
 * both moments read at its start and written at its end. */
static rl_cost cost(const void *params) {
  enum { IMAGES = 60000 }; /* of MNIST and of the synthetic set */
  const rl_train_params *train = params;
  double images = train->max_images > 0 && train->max_images < IMAGES ? (double)train->max_images : IMAGES;
  const double state = 3.0 * RL_PARAMETERS * sizeof(float);
  return (rl_cost){.bytes = images * (RL_PIXELS + 1) + 2 * state,
                   .operations = images * rl_model_least_operations_per_image(),
                   .written_bytes = state,
                   .precision = rl_precision_names[train->precision]};
}

static void iteration_counts(const void *params, uint32_t *warmup, uint32_t *iterations) {
  const rl_train_params *train = params;
  *warmup = (uint32_t)train->warmup_epochs;
  *iterations = (uint32_t)train->epochs;
}

const rl_workload rl_mnist_cnn = {.name = "mnist_cnn",
                                  .kind = "train",
                                  .summary = "MNIST CNN (315,146 parameters) trained with Adam; one iteration is an epoch",
                                  .fields = rl_train_fields,
                                  .params_size = sizeof(rl_train_params),
                                  .defaults = defaults,
                                  .cost = cost,
                                  .iteration_counts = iteration_counts};
