/* Compares each layer of the CPU engines with the oracle (functions in double precision that follow the definitions), which gets
 * the layer's inputs and argmax from the engine. Then compares the gradients and loss curves of the engines with those of the
 * engine `reference`. The inputs differ in each run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "random_numbers.h"
#include "engines.h"
#include "half.h"
#include "train/cpu.h"
#include "train/direct.h"
#include "train/oracle.h"

static rl_device *device;

/* --- the values of a step ---------------------------------------------------------------------------------------------- */

typedef struct step_values {
  rl_cpu_train *train;
  uint32_t n; /* number of images */
} step_values;

/* Returns a value of the last step, `count` numbers for each image; NULL if the engine does not store it. The caller frees it. */
static double *read_value(const step_values *step, rl_cpu_value value, size_t count) {
  double *out = malloc(sizeof *out * count * step->n);
  if (step->train->ops->read_value(step->train, value, step->n, out)) return out;
  free(out);
  return NULL;
}

static double *to_doubles(size_t count, const float *floats) {
  double *out = malloc(sizeof *out * count);
  for (size_t i = 0; i < count; i++) out[i] = floats[i];
  return out;
}

/* Computes the output y of max-pooling for the argmax of the engine; y is 0 where the argmax is RL_ARGMAX_RELU_ZERO. Raises
 * *worst to the largest difference between the true maximum and y. That difference is small, because the engine's argmax may
 * differ from the oracle's only among nearly equal inputs. */
static void pool_with_argmax(size_t planes, int size, const double *x, const double *argmax, double *y, double *worst) {
  int half = size / 2;
  for (size_t i = 0; i < planes * half * half; i++) {
    size_t plane = i / (half * half), row = i / half % half, column = i % half;
    const double *corner = x + plane * size * size + 2 * row * size + 2 * column;
    double best = fmax(fmax(corner[0], corner[1]), fmax(corner[size], corner[size + 1]));
    int k = (int)argmax[i];
    y[i] = k == RL_ARGMAX_RELU_ZERO ? 0 : corner[k / 2 * size + k % 2];
    *worst = fmax(*worst, fmax(best, 0) - y[i]);
  }
}

/* Parameters, gradients and values between the layers of one step, as doubles. */
typedef struct recorded_step {
  size_t n; /* number of images */
  rl_train_instance *instance;
  rl_cpu_train *train;                                                 /* the same instance */
  double *w, *gradients;                                               /* of all parameters */
  double *x, *pooled1, *argmax1, *pooled2, *argmax2, *hidden, *logits; /* argmax: 0–3, or RL_ARGMAX_RELU_ZERO */
  double *logits_gradient, *fc1_product_gradient, *pooled2_gradient,
      *pooled1_gradient; /* pooled1_gradient: NULL if the engine does not store it */
  double limit;          /* maximum relative error of stored values in this precision */
} recorded_step;

enum {
  POOLED1_ELEMENTS = RL_CONV1_CHANNELS * RL_POOLED1_SIDE * RL_POOLED1_SIDE,
  CONV1_ELEMENTS = RL_CONV1_CHANNELS * RL_CONV1_SIDE * RL_CONV1_SIDE
};
static const double fp32_limit = 1e-5; /* maximum relative error of FP32 sums, such as the gradients of the parameters */
static const uint32_t *const offsets = rl_tensor_offsets;

static recorded_step record_step(const char *engine, int precision, uint32_t n) {
  static float raw[RL_PARAMETERS];
  rl_error err = {0};
  rl_train_params params = small_params(precision, n, n);
  params.seed = (int64_t)(test_seed % 1000000) + n;
  rl_train_instance *instance = open_train(engine, device, &params);
  rl_cpu_train *train = (rl_cpu_train *)instance;
  assert_ok(instance->parameters(instance, raw, &err), &err);
  double *w = to_doubles(RL_PARAMETERS, raw);
  for (int i = 0; i < RL_PARAMETERS && precision == RL_FP16; i++) w[i] = rl_half_to_float(rl_half_from_float(raw[i]));
  run_epoch(instance); /* one step */
  assert_ok(instance->gradients(instance, raw, &err), &err);
  double *gradients = to_doubles(RL_PARAMETERS, raw);
  for (int i = 0; i < RL_PARAMETERS; i++) gradients[i] *= train->state.gradient_scale;
  const step_values values = {train, n};
  return (recorded_step){.n = n,
                         .instance = instance,
                         .train = train,
                         .w = w,
                         .gradients = gradients,
                         .x = to_doubles((size_t)n * RL_IMAGE_PIXELS, train->x),
                         .pooled1 = read_value(&values, RL_VALUE_POOLED1, POOLED1_ELEMENTS),
                         .argmax1 = read_value(&values, RL_VALUE_ARGMAX1, POOLED1_ELEMENTS),
                         .pooled2 = read_value(&values, RL_VALUE_POOLED2, RL_FC1_INPUTS),
                         .argmax2 = read_value(&values, RL_VALUE_ARGMAX2, RL_FC1_INPUTS),
                         .hidden = read_value(&values, RL_VALUE_HIDDEN, RL_FC1_OUTPUTS),
                         .logits = to_doubles((size_t)n * RL_CLASSES, train->logits),
                         .logits_gradient = to_doubles((size_t)n * RL_CLASSES, train->logits_gradient),
                         .fc1_product_gradient = read_value(&values, RL_VALUE_FC1_PRODUCT_GRADIENT, RL_FC1_OUTPUTS),
                         .pooled2_gradient = read_value(&values, RL_VALUE_POOLED2_GRADIENT, RL_FC1_INPUTS),
                         .pooled1_gradient = read_value(&values, RL_VALUE_POOLED1_GRADIENT, POOLED1_ELEMENTS),
                         .limit = precision == RL_FP16 ? 5e-3 : fp32_limit};
}

static void free_step(recorded_step *step) {
  double *const arrays[] = {step->w,
                            step->gradients,
                            step->x,
                            step->pooled1,
                            step->argmax1,
                            step->pooled2,
                            step->argmax2,
                            step->hidden,
                            step->logits,
                            step->logits_gradient,
                            step->fc1_product_gradient,
                            step->pooled2_gradient,
                            step->pooled1_gradient};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
  close_train(step->instance);
}

static void check_gradient(const recorded_step *step, rl_tensor tensor, const double *expected) {
  assert_below(rl_tensor_names[tensor], relative_distance(rl_tensor_sizes[tensor], step->gradients + offsets[tensor], expected),
               fp32_limit);
}

static void check_forward(const recorded_step *step) {
  double *conv = malloc(sizeof *conv * step->n * CONV1_ELEMENTS), *out = malloc(sizeof *out * step->n * POOLED1_ELEMENTS),
         worst = 0;
  const int n = (int)step->n;
  rl_oracle_conv_forward(&rl_oracle_conv1, n, step->x, step->w + offsets[RL_CONV1_W], step->w + offsets[RL_CONV1_B], conv);
  pool_with_argmax(step->n * RL_CONV1_CHANNELS, RL_CONV1_SIDE, conv, step->argmax1, out, &worst);
  assert_below("conv1 forward", relative_distance(step->n * POOLED1_ELEMENTS, step->pooled1, out), step->limit);
  rl_oracle_conv_forward(&rl_oracle_conv2, n, step->pooled1, step->w + offsets[RL_CONV2_W], step->w + offsets[RL_CONV2_B], conv);
  pool_with_argmax(step->n * RL_CONV2_CHANNELS, RL_CONV2_SIDE, conv, step->argmax2, out, &worst);
  assert_below("conv2 forward", relative_distance(step->n * RL_FC1_INPUTS, step->pooled2, out), step->limit);
  assert_below("pool decisions", worst, 1e-5);
  rl_oracle_linear_forward(n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, step->pooled2, step->w + offsets[RL_FC1_W],
                           step->w + offsets[RL_FC1_B], out);
  /* ReLU. Where the engine has 0, a sum just above 0 counts as 0. */
  for (size_t i = 0; i < step->n * RL_FC1_OUTPUTS; i++)
    if (step->hidden[i] <= 0 && out[i] < 1e-5) out[i] = 0;
  assert_below("fc1 forward", relative_distance(step->n * RL_FC1_OUTPUTS, step->hidden, out), step->limit);
  rl_oracle_linear_forward(n, RL_FC1_OUTPUTS, RL_CLASSES, step->hidden, step->w + offsets[RL_FC2_W], step->w + offsets[RL_FC2_B],
                           out);
  assert_below("fc2 forward", relative_distance(step->n * RL_CLASSES, step->logits, out), step->limit);
  double loss = rl_oracle_loss(n, step->logits, step->train->labels, step->train->state.gradient_scale, out, NULL);
  assert_below("loss", fabs(loss - step->train->step_losses[0]), 1e-6 * loss);
  assert_below("loss gradient", relative_distance(step->n * RL_CLASSES, step->logits_gradient, out), step->limit);
  free(conv), free(out);
}

static void check_classifier_backward(const recorded_step *step) {
  static double dw[RL_PARAMETERS], db[RL_FC1_OUTPUTS];
  const int n = (int)step->n;
  double *out = malloc(sizeof *out * step->n * RL_FC1_INPUTS);
  rl_oracle_linear_weight_gradient(n, RL_FC1_OUTPUTS, RL_CLASSES, step->hidden, step->logits_gradient, dw, db);
  check_gradient(step, RL_FC2_W, dw);
  check_gradient(step, RL_FC2_B, db);
  rl_oracle_linear_input_gradient(n, RL_FC1_OUTPUTS, RL_CLASSES, step->logits_gradient, step->w + offsets[RL_FC2_W], out);
  rl_oracle_relu_gradient(step->n * RL_FC1_OUTPUTS, step->hidden, out);
  assert_below("fc2 input gradient", relative_distance(step->n * RL_FC1_OUTPUTS, step->fc1_product_gradient, out), step->limit);
  rl_oracle_linear_weight_gradient(n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, step->pooled2, step->fc1_product_gradient, dw, db);
  check_gradient(step, RL_FC1_W, dw);
  check_gradient(step, RL_FC1_B, db);
  rl_oracle_linear_input_gradient(n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, step->fc1_product_gradient, step->w + offsets[RL_FC1_W], out);
  assert_below("fc1 input gradient", relative_distance(step->n * RL_FC1_INPUTS, step->pooled2_gradient, out), step->limit);
  free(out);
}

/* Returns max-pooling's input gradient for the output gradient dy and the engine's argmax. The caller frees it. */
static double *compute_pool_gradient(size_t planes, int size, const double *dy, const double *engine_argmax) {
  size_t count = planes * (size_t)(size / 2) * (size_t)(size / 2);
  uint8_t *argmax = malloc(count);
  double *dx = malloc(sizeof *dx * planes * (size_t)size * (size_t)size);
  for (size_t i = 0; i < count; i++) argmax[i] = (uint8_t)engine_argmax[i];
  rl_oracle_pool_gradient(planes, size, dy, argmax, dx);
  free(argmax);
  return dx;
}

static void check_convolutions_backward(const recorded_step *step) {
  static double dw[RL_PARAMETERS], db[RL_FC1_OUTPUTS];
  const int n = (int)step->n;
  double *pooled1_gradient = malloc(sizeof *pooled1_gradient * step->n * POOLED1_ELEMENTS),
         *planes = compute_pool_gradient(step->n * RL_CONV2_CHANNELS, RL_CONV2_SIDE, step->pooled2_gradient, step->argmax2);
  rl_oracle_conv_weight_gradient(&rl_oracle_conv2, n, step->pooled1, planes, dw, db);
  check_gradient(step, RL_CONV2_W, dw);
  check_gradient(step, RL_CONV2_B, db);
  rl_oracle_conv_input_gradient(&rl_oracle_conv2, n, planes, step->w + offsets[RL_CONV2_W], pooled1_gradient);
  if (step->pooled1_gradient != NULL)
    assert_below("conv2 input gradient", relative_distance(step->n * POOLED1_ELEMENTS, step->pooled1_gradient, pooled1_gradient),
                 step->limit);
  free(planes);
  planes = compute_pool_gradient(step->n * RL_CONV1_CHANNELS, RL_CONV1_SIDE,
                                 step->pooled1_gradient != NULL ? step->pooled1_gradient : pooled1_gradient, step->argmax1);
  rl_oracle_conv_weight_gradient(&rl_oracle_conv1, n, step->x, planes, dw, db);
  check_gradient(step, RL_CONV1_W, dw);
  check_gradient(step, RL_CONV1_B, db);
  free(planes), free(pooled1_gradient);
}

static void check_layers_of_step(const char *engine, int precision, uint32_t n) {
  recorded_step step = record_step(engine, precision, n);
  check_forward(&step);
  check_classifier_backward(&step);
  check_convolutions_backward(&step);
  free_step(&step);
}

/* The engines that are compared with the reference: blas, and fused if the CPU supports it. */
static const char *engines[3] = {"blas"};

static void add_fused_engine(void) {
  const rl_direct *tables[RL_DIRECT_TABLES];
  if (rl_direct_list_usable(tables) > 0) engines[1] = "fused";
}

static void layers_of_each_engine_match_the_oracle(void **state) {
  (void)state;
  static const uint32_t sizes[] = {1, 5, 32, 67};
  for (const char **engine = engines; *engine != NULL; engine++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      check_layers_of_step(*engine, RL_FP32, sizes[i]);
      check_layers_of_step(*engine, RL_FP16, sizes[i]);
    }
}

/* --- whole networks ---------------------------------------------------------------------------------------------------- */

static void gradients_of_whole_networks_agree(void **state) {
  (void)state;
  static float found[RL_PARAMETERS], expected[RL_PARAMETERS];
  static const uint32_t sizes[] = {1, 32};
  for (int i = 0; i < 2; i++) {
    rl_train_params params = small_params(RL_FP32, sizes[i], sizes[i]);
    rl_train_instance *reference = open_train("reference", device, &params);
    rl_error err = {0};
    run_epoch(reference);
    assert_ok(reference->gradients(reference, expected, &err), &err);
    close_train(reference);
    for (const char **engine = engines; *engine != NULL; engine++) {
      rl_train_instance *instance = open_train(*engine, device, &params);
      run_epoch(instance);
      assert_ok(instance->gradients(instance, found, &err), &err);
      for (int t = 0; t < RL_TENSORS; t++)
        assert_below(rl_tensor_names[t], relative_float_distance(rl_tensor_sizes[t], found + offsets[t], expected + offsets[t]),
                     1e-4);
      close_train(instance);
    }
  }
}

enum { STEPS = 30, BATCH = 8 };

static void train_and_read_losses(const char *engine, const rl_train_params *params, float curve[STEPS]) {
  rl_train_instance *instance = open_train(engine, device, params);
  rl_error err = {0};
  run_epoch(instance);
  assert_ok(instance->losses(instance, curve, &err), &err);
  close_train(instance);
}

static void loss_curves_agree(void **state) {
  (void)state;
  static const struct {
    int precision;
    double limit;
  } cases[] = {{RL_FP32, 1e-3}, {RL_FP16, 5e-2}};
  for (int k = 0; k < 2; k++) {
    rl_train_params params = small_params(cases[k].precision, BATCH, STEPS * BATCH);
    float expected[STEPS], found[STEPS];
    train_and_read_losses("reference", &params, expected);
    assert_true(expected[STEPS - 1] < 0.9 * expected[0]); /* training reduces the loss */
    for (const char **engine = engines; *engine != NULL; engine++) {
      train_and_read_losses(*engine, &params, found);
      assert_below("loss curve", relative_float_distance(STEPS, found, expected), cases[k].limit);
    }
  }
}

int main(void) {
  choose_test_seed();
  rl_error err = {0};
  device = rl_device_open(0, &err);
  if (device == NULL) return 1;
  add_fused_engine();
  char folder[64];
  use_few_digits(folder, 1000, 100);
  const struct CMUnitTest tests[] = {cmocka_unit_test(layers_of_each_engine_match_the_oracle),
                                     cmocka_unit_test(gradients_of_whole_networks_agree), cmocka_unit_test(loss_curves_agree)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->ops->close(device);
  remove_digits(folder);
  return failed;
}
