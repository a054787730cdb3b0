/* The CPU engine reference: the layers of oracle.h on one thread, in double precision. Each layer's result is rounded to float
 * (fp32) or to binary16 (fp16). Tests compare the other engines with this one. */
#include <math.h>

#include "half.h"
#include "train/cpu.h"
#include "train/oracle.h"

typedef struct reference {
  rl_cpu_train train;
  double *weights, *gradients; /* rounded weights; gradients, multiplied by the loss scale */
  /* The input x and the outputs of the layers: conv1 and conv2 before ReLU, pooled1 and pooled2 after ReLU and pooling, hidden
   * after fc1 and ReLU, logits after fc2. */
  double *x, *conv1, *pooled1, *conv2, *pooled2, *hidden, *logits;
  /* Gradients of these arrays; conv1_product_gradient and conv2_product_gradient are those of conv1 and conv2,
   * fc1_product_gradient that of fc1's output before ReLU. */
  double *logits_gradient, *fc1_product_gradient, *pooled2_gradient, *conv2_product_gradient, *pooled1_gradient,
      *conv1_product_gradient;
  uint8_t *argmax1, *argmax2;
} reference;

enum { /* number of elements per image */
       CONV1_ELEMENTS = RL_CONV1_CHANNELS * RL_CONV1_SIDE * RL_CONV1_SIDE,
       POOLED1_ELEMENTS = RL_CONV1_CHANNELS * RL_POOLED1_PIXELS,
       CONV2_ELEMENTS = RL_CONV2_CHANNELS * RL_CONV2_SIDE * RL_CONV2_SIDE
};

static double round_value(const reference *self, double value) {
  return self->train.fp16 ? rl_half_to_float(rl_half_from_float((float)value)) : (float)value;
}

static void round_all(const reference *self, size_t count, double *values) {
  for (size_t i = 0; i < count; i++) values[i] = round_value(self, values[i]);
}

/* WEIGHTS(TENSOR) and GRADIENTS(TENSOR) are the addresses of the tensor's weights and of their gradients. */
#define WEIGHTS(TENSOR) ((const double *)self->weights + rl_tensor_offsets[TENSOR])
#define GRADIENTS(TENSOR) (self->gradients + rl_tensor_offsets[TENSOR])

static void conv1_forward(rl_cpu_train *train, uint32_t n) {
  reference *self = (reference *)train;
  for (size_t i = 0; i < (size_t)n * RL_IMAGE_PIXELS; i++) self->x[i] = train->x[i];
  rl_oracle_conv_forward(&rl_oracle_conv1, (int)n, self->x, WEIGHTS(RL_CONV1_W), WEIGHTS(RL_CONV1_B), self->conv1);
  round_all(self, (size_t)n * CONV1_ELEMENTS, self->conv1);
}

static void pool1_forward(rl_cpu_train *train, uint32_t n) {
  reference *self = (reference *)train;
  rl_oracle_pool_forward((size_t)n * RL_CONV1_CHANNELS, RL_CONV1_SIDE, self->conv1, self->pooled1, self->argmax1);
}

static void conv2_forward(rl_cpu_train *train, uint32_t n) {
  reference *self = (reference *)train;
  rl_oracle_conv_forward(&rl_oracle_conv2, (int)n, self->pooled1, WEIGHTS(RL_CONV2_W), WEIGHTS(RL_CONV2_B), self->conv2);
  round_all(self, (size_t)n * CONV2_ELEMENTS, self->conv2);
}

static void pool2_forward(rl_cpu_train *train, uint32_t n) {
  reference *self = (reference *)train;
  rl_oracle_pool_forward((size_t)n * RL_CONV2_CHANNELS, RL_CONV2_SIDE, self->conv2, self->pooled2, self->argmax2);
}

static void fc1_forward(rl_cpu_train *train, uint32_t n) {
  reference *self = (reference *)train;
  rl_oracle_linear_forward((int)n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, self->pooled2, WEIGHTS(RL_FC1_W), WEIGHTS(RL_FC1_B),
                           self->hidden);
  rl_oracle_relu((size_t)n * RL_FC1_OUTPUTS, self->hidden);
  round_all(self, (size_t)n * RL_FC1_OUTPUTS, self->hidden);
}

static void fc2_forward(rl_cpu_train *train, uint32_t n) {
  reference *self = (reference *)train;
  rl_oracle_linear_forward((int)n, RL_FC1_OUTPUTS, RL_CLASSES, self->hidden, WEIGHTS(RL_FC2_W), WEIGHTS(RL_FC2_B), self->logits);
  for (size_t i = 0; i < (size_t)n * RL_CLASSES; i++) train->logits[i] = (float)round_value(self, self->logits[i]);
}

static void fc2_backward(rl_cpu_train *train, uint32_t n) {
  reference *self = (reference *)train;
  for (size_t i = 0; i < (size_t)n * RL_CLASSES; i++) self->logits_gradient[i] = train->logits_gradient[i];
  rl_oracle_linear_weight_gradient((int)n, RL_FC1_OUTPUTS, RL_CLASSES, self->hidden, self->logits_gradient, GRADIENTS(RL_FC2_W),
                                   GRADIENTS(RL_FC2_B));
  rl_oracle_linear_input_gradient((int)n, RL_FC1_OUTPUTS, RL_CLASSES, self->logits_gradient, WEIGHTS(RL_FC2_W),
                                  self->fc1_product_gradient);
  rl_oracle_relu_gradient((size_t)n * RL_FC1_OUTPUTS, self->hidden, self->fc1_product_gradient);
  round_all(self, (size_t)n * RL_FC1_OUTPUTS, self->fc1_product_gradient);
}

static void fc1_backward(rl_cpu_train *train, uint32_t n) {
  reference *self = (reference *)train;
  rl_oracle_linear_weight_gradient((int)n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, self->pooled2, self->fc1_product_gradient,
                                   GRADIENTS(RL_FC1_W), GRADIENTS(RL_FC1_B));
  rl_oracle_linear_input_gradient((int)n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, self->fc1_product_gradient, WEIGHTS(RL_FC1_W),
                                  self->pooled2_gradient);
  round_all(self, (size_t)n * RL_FC1_INPUTS, self->pooled2_gradient);
}

static void conv2_backward(rl_cpu_train *train, uint32_t n) {
  reference *self = (reference *)train;
  rl_oracle_pool_gradient((size_t)n * RL_CONV2_CHANNELS, RL_CONV2_SIDE, self->pooled2_gradient, self->argmax2,
                          self->conv2_product_gradient);
  rl_oracle_conv_weight_gradient(&rl_oracle_conv2, (int)n, self->pooled1, self->conv2_product_gradient, GRADIENTS(RL_CONV2_W),
                                 GRADIENTS(RL_CONV2_B));
  rl_oracle_conv_input_gradient(&rl_oracle_conv2, (int)n, self->conv2_product_gradient, WEIGHTS(RL_CONV2_W),
                                self->pooled1_gradient);
  round_all(self, (size_t)n * POOLED1_ELEMENTS, self->pooled1_gradient);
}

static void conv1_backward(rl_cpu_train *train, uint32_t n) {
  reference *self = (reference *)train;
  rl_oracle_pool_gradient((size_t)n * RL_CONV1_CHANNELS, RL_CONV1_SIDE, self->pooled1_gradient, self->argmax1,
                          self->conv1_product_gradient);
  rl_oracle_conv_weight_gradient(&rl_oracle_conv1, (int)n, self->x, self->conv1_product_gradient, GRADIENTS(RL_CONV1_W),
                                 GRADIENTS(RL_CONV1_B));
  for (uint32_t i = 0; i < RL_PARAMETERS; i++) train->gradients[i] = (float)self->gradients[i];
}

static const rl_cpu_layer forward[] = {{"conv1_forward", conv1_forward},
                                       {"pool1_forward", pool1_forward},
                                       {"conv2_forward", conv2_forward},
                                       {"pool2_forward", pool2_forward},
                                       {"fc1_forward", fc1_forward},
                                       {"fc2_forward", fc2_forward},
                                       {0}};
static const rl_cpu_layer backward[] = {{"fc2_backward", fc2_backward},
                                        {"fc1_backward", fc1_backward},
                                        {"conv2_backward", conv2_backward},
                                        {"conv1_backward", conv1_backward},
                                        {0}};

static void on_weights_changed(rl_cpu_train *train) {
  reference *self = (reference *)train;
  for (uint32_t i = 0; i < RL_PARAMETERS; i++) self->weights[i] = round_value(self, train->weights[i]);
}

static bool all_finite(rl_cpu_train *train) {
  for (uint32_t i = 0; i < RL_PARAMETERS; i++)
    if (!isfinite(train->gradients[i])) return false;
  return true;
}

static void adam(rl_cpu_train *train, uint64_t step, double rate, float scale) {
  for (uint32_t i = 0; i < RL_PARAMETERS; i++) {
    double gradient = (double)train->gradients[i] / scale;
    double w = train->weights[i], m = train->first_moment[i], v = train->second_moment[i];
    rl_oracle_adam(1, step, rate, &gradient, &w, &m, &v);
    train->weights[i] = (float)w;
    train->first_moment[i] = (float)m;
    train->second_moment[i] = (float)v;
  }
  on_weights_changed(train);
}

static int prepare(rl_cpu_train *train, rl_error *err) {
  reference *self = (reference *)train;
  size_t n = (size_t)train->instance.params.batch_size;
  const struct {
    double **pointer;
    size_t count;
  } arrays[] = {{&self->x, n * RL_IMAGE_PIXELS},
                {&self->conv1, n * CONV1_ELEMENTS},
                {&self->pooled1, n * POOLED1_ELEMENTS},
                {&self->conv2, n * CONV2_ELEMENTS},
                {&self->pooled2, n * RL_FC1_INPUTS},
                {&self->hidden, n * RL_FC1_OUTPUTS},
                {&self->logits, n * RL_CLASSES},
                {&self->logits_gradient, n * RL_CLASSES},
                {&self->fc1_product_gradient, n * RL_FC1_OUTPUTS},
                {&self->pooled2_gradient, n * RL_FC1_INPUTS},
                {&self->conv2_product_gradient, n * CONV2_ELEMENTS},
                {&self->pooled1_gradient, n * POOLED1_ELEMENTS},
                {&self->conv1_product_gradient, n * CONV1_ELEMENTS}};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    if (rl_cpu_allocate(train, RL_MEMORY_ACTIVATIONS, sizeof(double) * arrays[i].count, (void **)arrays[i].pointer, err) < 0)
      return -1;
  if (rl_cpu_allocate(train, RL_MEMORY_WEIGHTS, sizeof(double) * RL_PARAMETERS, (void **)&self->weights, err) < 0 ||
      rl_cpu_allocate(train, RL_MEMORY_WEIGHTS, sizeof(double) * RL_PARAMETERS, (void **)&self->gradients, err) < 0)
    return -1;
  if (rl_cpu_allocate(train, RL_MEMORY_ACTIVATIONS, n * POOLED1_ELEMENTS, (void **)&self->argmax1, err) < 0) return -1;
  return rl_cpu_allocate(train, RL_MEMORY_ACTIVATIONS, n * RL_FC1_INPUTS, (void **)&self->argmax2, err);
}

static const rl_cpu_engine_ops ops = {.size = sizeof(reference),
                                      .forward = forward,
                                      .backward = backward,
                                      .prepare = prepare,
                                      .on_weights_changed = on_weights_changed,
                                      .all_finite = all_finite,
                                      .adam = adam};

static int open_reference(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  return rl_cpu_open(&ops, device, params, instance, err);
}

const rl_engine rl_engine_reference = {.description = &rl_train_reference, .open = open_reference};
