/* CPU engine reference: the layers of oracle.h on one thread, in double precision. Each result is rounded to float (fp32) or
 * binary16 (fp16). Tests compare the other engines with this one. */
#include <math.h>

#include "half.h"
#include "train/cpu.h"
#include "train/oracle.h"

typedef struct reference {
  rl_cpu_train train;
  double *weights, *gradients; /* rounded weights; gradients multiplied by the loss scale */
  /* x and the outputs of the layers: of convolutions, of ReLU and pooling, of fc1 and ReLU, of fc2. */
  double *x, *conv1, *pooled1, *conv2, *pooled2, *hidden, *logits;
  double *d_logits, *d_fc1, *d_pooled2, *d_conv2, *d_pooled1, *d_conv1; /* gradients; d_fc1: of fc1's output before ReLU */
  uint8_t *argmax1, *argmax2;
} reference;

enum {
  CONV1_ELEMENTS = RL_C1 * RL_CONV1_SIDE * RL_CONV1_SIDE,
  POOLED1_ELEMENTS = RL_C1 * RL_POOLED1_PIXELS,
  CONV2_ELEMENTS = RL_C2 * RL_CONV2_SIDE * RL_CONV2_SIDE
}; /* of an image */

static double round_value(const reference *r, double value) {
  return r->train.fp16 ? rl_half_to_float(rl_half_from_float((float)value)) : (float)value;
}

static void round_all(const reference *r, size_t count, double *values) {
  for (size_t i = 0; i < count; i++) values[i] = round_value(r, values[i]);
}

/* W(TENSOR): the tensor's weights. G(TENSOR): its gradients. */
#define W(TENSOR) ((const double *)r->weights + rl_tensor_offsets[TENSOR])
#define G(TENSOR) (r->gradients + rl_tensor_offsets[TENSOR])

static void conv1_forward(rl_cpu_train *train, uint32_t n) {
  reference *r = (reference *)train;
  for (size_t i = 0; i < (size_t)n * RL_IMAGE_PIXELS; i++) r->x[i] = train->x[i];
  rl_oracle_conv_forward(&rl_oracle_conv1, (int)n, r->x, W(RL_CONV1_W), W(RL_CONV1_B), r->conv1);
  round_all(r, (size_t)n * CONV1_ELEMENTS, r->conv1);
}

static void pool1_forward(rl_cpu_train *train, uint32_t n) {
  reference *r = (reference *)train;
  rl_oracle_pool_forward((size_t)n * RL_C1, RL_CONV1_SIDE, r->conv1, r->pooled1, r->argmax1);
}

static void conv2_forward(rl_cpu_train *train, uint32_t n) {
  reference *r = (reference *)train;
  rl_oracle_conv_forward(&rl_oracle_conv2, (int)n, r->pooled1, W(RL_CONV2_W), W(RL_CONV2_B), r->conv2);
  round_all(r, (size_t)n * CONV2_ELEMENTS, r->conv2);
}

static void pool2_forward(rl_cpu_train *train, uint32_t n) {
  reference *r = (reference *)train;
  rl_oracle_pool_forward((size_t)n * RL_C2, RL_CONV2_SIDE, r->conv2, r->pooled2, r->argmax2);
}

static void fc1_forward(rl_cpu_train *train, uint32_t n) {
  reference *r = (reference *)train;
  rl_oracle_linear_forward((int)n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, r->pooled2, W(RL_FC1_W), W(RL_FC1_B), r->hidden);
  rl_oracle_relu((size_t)n * RL_FC1_OUTPUTS, r->hidden);
  round_all(r, (size_t)n * RL_FC1_OUTPUTS, r->hidden);
}

static void fc2_forward(rl_cpu_train *train, uint32_t n) {
  reference *r = (reference *)train;
  rl_oracle_linear_forward((int)n, RL_FC1_OUTPUTS, RL_CLASSES, r->hidden, W(RL_FC2_W), W(RL_FC2_B), r->logits);
  for (size_t i = 0; i < (size_t)n * RL_CLASSES; i++) train->logits[i] = (float)round_value(r, r->logits[i]);
}

static void fc2_backward(rl_cpu_train *train, uint32_t n) {
  reference *r = (reference *)train;
  for (size_t i = 0; i < (size_t)n * RL_CLASSES; i++) r->d_logits[i] = train->d_logits[i];
  rl_oracle_linear_weight_gradient((int)n, RL_FC1_OUTPUTS, RL_CLASSES, r->hidden, r->d_logits, G(RL_FC2_W), G(RL_FC2_B));
  rl_oracle_linear_input_gradient((int)n, RL_FC1_OUTPUTS, RL_CLASSES, r->d_logits, W(RL_FC2_W), r->d_fc1);
  rl_oracle_relu_gradient((size_t)n * RL_FC1_OUTPUTS, r->hidden, r->d_fc1);
  round_all(r, (size_t)n * RL_FC1_OUTPUTS, r->d_fc1);
}

static void fc1_backward(rl_cpu_train *train, uint32_t n) {
  reference *r = (reference *)train;
  rl_oracle_linear_weight_gradient((int)n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, r->pooled2, r->d_fc1, G(RL_FC1_W), G(RL_FC1_B));
  rl_oracle_linear_input_gradient((int)n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, r->d_fc1, W(RL_FC1_W), r->d_pooled2);
  round_all(r, (size_t)n * RL_FC1_INPUTS, r->d_pooled2);
}

static void conv2_backward(rl_cpu_train *train, uint32_t n) {
  reference *r = (reference *)train;
  rl_oracle_pool_gradient((size_t)n * RL_C2, RL_CONV2_SIDE, r->d_pooled2, r->argmax2, r->d_conv2);
  rl_oracle_conv_weight_gradient(&rl_oracle_conv2, (int)n, r->pooled1, r->d_conv2, G(RL_CONV2_W), G(RL_CONV2_B));
  rl_oracle_conv_input_gradient(&rl_oracle_conv2, (int)n, r->d_conv2, W(RL_CONV2_W), r->d_pooled1);
  round_all(r, (size_t)n * POOLED1_ELEMENTS, r->d_pooled1);
}

static void conv1_backward(rl_cpu_train *train, uint32_t n) {
  reference *r = (reference *)train;
  rl_oracle_pool_gradient((size_t)n * RL_C1, RL_CONV1_SIDE, r->d_pooled1, r->argmax1, r->d_conv1);
  rl_oracle_conv_weight_gradient(&rl_oracle_conv1, (int)n, r->x, r->d_conv1, G(RL_CONV1_W), G(RL_CONV1_B));
  for (uint32_t i = 0; i < RL_PARAMETERS; i++) train->gradients[i] = (float)r->gradients[i];
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
  reference *r = (reference *)train;
  for (uint32_t i = 0; i < RL_PARAMETERS; i++) r->weights[i] = round_value(r, train->weights[i]);
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
  reference *r = (reference *)train;
  size_t n = (size_t)train->instance.params.batch_size;
  const struct {
    double **pointer;
    size_t count;
  } arrays[] = {{&r->x, n * RL_IMAGE_PIXELS},       {&r->conv1, n * CONV1_ELEMENTS},   {&r->pooled1, n * POOLED1_ELEMENTS},
                {&r->conv2, n * CONV2_ELEMENTS},    {&r->pooled2, n * RL_FC1_INPUTS},  {&r->hidden, n * RL_FC1_OUTPUTS},
                {&r->logits, n * RL_CLASSES},       {&r->d_logits, n * RL_CLASSES},    {&r->d_fc1, n * RL_FC1_OUTPUTS},
                {&r->d_pooled2, n * RL_FC1_INPUTS}, {&r->d_conv2, n * CONV2_ELEMENTS}, {&r->d_pooled1, n * POOLED1_ELEMENTS},
                {&r->d_conv1, n * CONV1_ELEMENTS}};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    if (rl_cpu_allocate(train, RL_MEMORY_ACTIVATIONS, sizeof(double) * arrays[i].count, (void **)arrays[i].pointer, err) < 0)
      return -1;
  if (rl_cpu_allocate(train, RL_MEMORY_WEIGHTS, sizeof(double) * RL_PARAMETERS, (void **)&r->weights, err) < 0 ||
      rl_cpu_allocate(train, RL_MEMORY_WEIGHTS, sizeof(double) * RL_PARAMETERS, (void **)&r->gradients, err) < 0)
    return -1;
  if (rl_cpu_allocate(train, RL_MEMORY_ACTIVATIONS, n * POOLED1_ELEMENTS, (void **)&r->argmax1, err) < 0) return -1;
  return rl_cpu_allocate(train, RL_MEMORY_ACTIVATIONS, n * RL_FC1_INPUTS, (void **)&r->argmax2, err);
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
