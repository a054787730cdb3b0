/* CPU engine reference: the layers of oracle.h on one thread, in double precision. Each result is rounded to float (fp32) or
 * binary16 (fp16). Tests compare the other engines with this one. */
#include <math.h>

#include "half.h"
#include "train/cpu.h"
#include "train/oracle.h"

typedef struct reference {
  rl_cpu_train train;
  double *w, *gradients;                       /* rounded weights; gradients times the loss scale */
  double *x, *c1, *p1, *c2, *p2, *f1, *logits; /* c: output of a convolution; p: pooled; f1: fc1's output after ReLU */
  double *dlogits, *df1, *dp2, *dc2, *dp1, *dc1;
  uint8_t *argmax1, *argmax2;
} reference;

enum {
  C1_SIZE = RL_C1 * RL_CONV1_SIDE * RL_CONV1_SIDE,
  P1_SIZE = RL_C1 * RL_POOLED1_SIDE * RL_POOLED1_SIDE,
  C2_SIZE = RL_C2 * RL_CONV2_SIDE * RL_CONV2_SIDE
}; /* for an image */

static double round_value(const reference *r, double value) {
  return r->train.fp16 ? rl_half_to_float(rl_half_from_float((float)value)) : (float)value;
}

static void round_all(const reference *r, size_t count, double *values) {
  for (size_t i = 0; i < count; i++) values[i] = round_value(r, values[i]);
}

/* W(TENSOR): the tensor's weights. G(TENSOR): its gradients. */
#define W(TENSOR) ((const double *)r->w + rl_tensor_offsets[TENSOR])
#define G(TENSOR) (r->gradients + rl_tensor_offsets[TENSOR])

static void conv1_forward(rl_cpu_train *train, uint32_t n) {
  reference *r = (reference *)train;
  for (size_t i = 0; i < (size_t)n * RL_IMAGE_PIXELS; i++) r->x[i] = train->x[i];
  rl_oracle_conv_forward(&rl_oracle_conv1, (int)n, r->x, W(RL_CONV1_W), W(RL_CONV1_B), r->c1);
  round_all(r, (size_t)n * C1_SIZE, r->c1);
}

static void pool1_forward(rl_cpu_train *train, uint32_t n) {
  reference *r = (reference *)train;
  rl_oracle_pool_forward((size_t)n * RL_C1, RL_CONV1_SIDE, r->c1, r->p1, r->argmax1);
}

static void conv2_forward(rl_cpu_train *train, uint32_t n) {
  reference *r = (reference *)train;
  rl_oracle_conv_forward(&rl_oracle_conv2, (int)n, r->p1, W(RL_CONV2_W), W(RL_CONV2_B), r->c2);
  round_all(r, (size_t)n * C2_SIZE, r->c2);
}

static void pool2_forward(rl_cpu_train *train, uint32_t n) {
  reference *r = (reference *)train;
  rl_oracle_pool_forward((size_t)n * RL_C2, RL_CONV2_SIDE, r->c2, r->p2, r->argmax2);
}

static void fc1_forward(rl_cpu_train *train, uint32_t n) {
  reference *r = (reference *)train;
  rl_oracle_linear_forward((int)n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, r->p2, W(RL_FC1_W), W(RL_FC1_B), r->f1);
  rl_oracle_relu((size_t)n * RL_FC1_OUTPUTS, r->f1);
  round_all(r, (size_t)n * RL_FC1_OUTPUTS, r->f1);
}

static void fc2_forward(rl_cpu_train *train, uint32_t n) {
  reference *r = (reference *)train;
  rl_oracle_linear_forward((int)n, RL_FC1_OUTPUTS, RL_CLASSES, r->f1, W(RL_FC2_W), W(RL_FC2_B), r->logits);
  for (size_t i = 0; i < (size_t)n * RL_CLASSES; i++) train->logits[i] = (float)round_value(r, r->logits[i]);
}

static void fc2_backward(rl_cpu_train *train, uint32_t n) {
  reference *r = (reference *)train;
  for (size_t i = 0; i < (size_t)n * RL_CLASSES; i++) r->dlogits[i] = train->dlogits[i];
  rl_oracle_linear_weight_gradient((int)n, RL_FC1_OUTPUTS, RL_CLASSES, r->f1, r->dlogits, G(RL_FC2_W), G(RL_FC2_B));
  rl_oracle_linear_input_gradient((int)n, RL_FC1_OUTPUTS, RL_CLASSES, r->dlogits, W(RL_FC2_W), r->df1);
  rl_oracle_relu_gradient((size_t)n * RL_FC1_OUTPUTS, r->f1, r->df1);
  round_all(r, (size_t)n * RL_FC1_OUTPUTS, r->df1);
}

static void fc1_backward(rl_cpu_train *train, uint32_t n) {
  reference *r = (reference *)train;
  rl_oracle_linear_weight_gradient((int)n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, r->p2, r->df1, G(RL_FC1_W), G(RL_FC1_B));
  rl_oracle_linear_input_gradient((int)n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, r->df1, W(RL_FC1_W), r->dp2);
  round_all(r, (size_t)n * RL_FC1_INPUTS, r->dp2);
}

static void conv2_backward(rl_cpu_train *train, uint32_t n) {
  reference *r = (reference *)train;
  rl_oracle_pool_gradient((size_t)n * RL_C2, RL_CONV2_SIDE, r->dp2, r->argmax2, r->dc2);
  rl_oracle_conv_weight_gradient(&rl_oracle_conv2, (int)n, r->p1, r->dc2, G(RL_CONV2_W), G(RL_CONV2_B));
  rl_oracle_conv_input_gradient(&rl_oracle_conv2, (int)n, r->dc2, W(RL_CONV2_W), r->dp1);
  round_all(r, (size_t)n * P1_SIZE, r->dp1);
}

static void conv1_backward(rl_cpu_train *train, uint32_t n) {
  reference *r = (reference *)train;
  rl_oracle_pool_gradient((size_t)n * RL_C1, RL_CONV1_SIDE, r->dp1, r->argmax1, r->dc1);
  rl_oracle_conv_weight_gradient(&rl_oracle_conv1, (int)n, r->x, r->dc1, G(RL_CONV1_W), G(RL_CONV1_B));
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
  for (uint32_t i = 0; i < RL_PARAMETERS; i++) r->w[i] = round_value(r, train->weights[i]);
}

static bool all_finite(rl_cpu_train *train) {
  for (uint32_t i = 0; i < RL_PARAMETERS; i++)
    if (!isfinite(train->gradients[i])) return false;
  return true;
}

static void adam(rl_cpu_train *train, uint64_t step, double rate, float scale) {
  for (uint32_t i = 0; i < RL_PARAMETERS; i++) {
    double gradient = (double)train->gradients[i] / scale;
    double w = train->weights[i], m = train->m[i], v = train->v[i];
    rl_oracle_adam(1, step, rate, &gradient, &w, &m, &v);
    train->weights[i] = (float)w;
    train->m[i] = (float)m;
    train->v[i] = (float)v;
  }
  on_weights_changed(train);
}

static int prepare(rl_cpu_train *train, rl_error *err) {
  reference *r = (reference *)train;
  size_t n = (size_t)train->instance.params.batch_size;
  const struct {
    double **pointer;
    size_t count;
  } arrays[] = {{&r->x, n * RL_IMAGE_PIXELS}, {&r->c1, n * C1_SIZE},         {&r->p1, n * P1_SIZE},
                {&r->c2, n * C2_SIZE},        {&r->p2, n * RL_FC1_INPUTS},   {&r->f1, n * RL_FC1_OUTPUTS},
                {&r->logits, n * RL_CLASSES}, {&r->dlogits, n * RL_CLASSES}, {&r->df1, n * RL_FC1_OUTPUTS},
                {&r->dp2, n * RL_FC1_INPUTS}, {&r->dc2, n * C2_SIZE},        {&r->dp1, n * P1_SIZE},
                {&r->dc1, n * C1_SIZE}};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    if (rl_cpu_allocate(train, RL_MEMORY_ACTIVATIONS, sizeof(double) * arrays[i].count, (void **)arrays[i].pointer, err) < 0)
      return -1;
  if (rl_cpu_allocate(train, RL_MEMORY_WEIGHTS, sizeof(double) * RL_PARAMETERS, (void **)&r->w, err) < 0 ||
      rl_cpu_allocate(train, RL_MEMORY_WEIGHTS, sizeof(double) * RL_PARAMETERS, (void **)&r->gradients, err) < 0)
    return -1;
  if (rl_cpu_allocate(train, RL_MEMORY_ACTIVATIONS, n * P1_SIZE, (void **)&r->argmax1, err) < 0) return -1;
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
