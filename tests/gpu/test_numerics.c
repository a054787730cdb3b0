/* Tests each training engine against the double-precision functions of train/oracle.h. After one step, every layer is checked
 * alone, forward and backward: the oracle gets the engine's own inputs of the layer, its pooling positions and its ReLU
 * decisions. In FP32, the whole network is checked too. Then the losses of 50 consecutive steps are compared.
 *
 * Arguments, for tests/simt, where the defaults take too long: the name of an engine (default: all), the number of steps whose
 * losses are compared, the images per such step, and up to 16 batch sizes at which the layers are checked.
 * Without a batch size, only the name is used.
 *
 * Names: "x_gradient" is the gradient of the loss with respect to x; "pooled1" and "pooled2" are the outputs of the two
 * convolutions after ReLU and pooling; "map" is the number of pixels of one channel of one image, and a "plane" is such a channel
 * of an image. */
#include "data/dataset.h"
#include "fixture.h"
#include "train/oracle.h"

enum {
  POOLED1_PIXELS = RL_POOLED1_SIDE * RL_POOLED1_SIDE,
  POOLED1_VALUES = RL_CONV1_CHANNELS * POOLED1_PIXELS,
  POOLED2_PIXELS = RL_POOLED2_SIDE * RL_POOLED2_SIDE,
  CONV1_PIXELS = RL_CONV1_SIDE * RL_CONV1_SIDE,
  CONV2_PIXELS = RL_CONV2_SIDE * RL_CONV2_SIDE
};

enum { MAX_STEPS = 50, MAX_BATCHES = 16 };
static rl_dataset dataset;
/* The program's arguments. steps, step_images: number of steps whose losses are compared, and number of images of each. batches:
 * batch sizes at which the layers are checked; the last default exceeds the number of images that a kernel processes at a time.
 */
static uint32_t steps = MAX_STEPS, step_images = 16, batches[MAX_BATCHES] = {1, 3, 32, 64, 100, 129, 269};

static double *new_doubles(size_t count) {
  double *result = calloc(count, sizeof *result);
  assert_non_null(result);
  return result;
}

/* Fails the test unless ‖actual − expected‖ / ‖expected‖ < tolerance. NaN and an all-zero reference fail. */
static void check(const char *what, const double *actual, const double *expected, size_t count, double tolerance) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < count; i++) {
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  double ratio = sqrt(difference / norm);
  printf("    %-22s %.2e (at most %.0e)\n", what, ratio, tolerance);
  if (!(norm > 0) || !(ratio < tolerance)) fail_msg("%s is off by %g", what, ratio);
}

static double from_half(uint16_t h) {
  int exponent = h >> 10 & 31, fraction = h & 1023;
  double value = exponent == 31  ? (fraction ? NAN : INFINITY)
                 : exponent == 0 ? ldexp(fraction, -24)
                                 : ldexp(1024 + fraction, exponent - 25);
  return h >> 15 ? -value : value;
}

/* Rounds to the nearest FP16 number, ties to even. */
static double round_to_half(double value) {
  if (value == 0) return 0;
  int exponent;
  frexp(value, &exponent);
  int last_bit_exponent = exponent - 11 < -24 ? -24 : exponent - 11;
  return ldexp(nearbyint(ldexp(value, -last_bit_exponent)), last_bit_exponent);
}

/* Downloads a device tensor of `planes` planes of `map` values per image and returns it as doubles in the order image, plane,
 * pixel (NCHW), each multiplied by `factor`. The caller frees the result. */
static double *fetch(const rl_training_tensors *tensors, const void *from, size_t planes, size_t map, double factor) {
  size_t count = tensors->batch * planes * map, bytes = tensors->fp16 ? 2 : 4;
  unsigned char *raw = malloc(count * bytes);
  double *result = new_doubles(count);
  must(device->ops->download(device, raw, from, count * bytes, e));
  for (size_t i = 0; i < count; i++) {
    double value = tensors->fp16 ? from_half(((uint16_t *)raw)[i]) : (double)((float *)raw)[i];
    size_t n = i / (planes * map), index = i % (planes * map);
    result[tensors->channels_last ? (n * planes + index % planes) * map + index / planes : i] = value * factor;
  }
  free(raw);
  return result;
}

/* Returns the gradient of pooled1. The engine stores it as pooled1_gradient_parts tensors, whose sum is the gradient. The order
 * of the values, `factor` and the ownership of the result are as for fetch. */
static double *fetch_pooled1_gradient(const rl_training_tensors *tensors, double factor) {
  const size_t values = (size_t)tensors->batch * POOLED1_VALUES, part_bytes = values * (tensors->fp16 ? 2 : 4);
  double *sum = new_doubles(values);
  for (uint32_t i = 0; i < tensors->pooled1_gradient_parts; i++) {
    double *part = fetch(tensors, (const unsigned char *)tensors->pooled1_gradient + i * part_bytes, RL_CONV1_CHANNELS,
                         POOLED1_PIXELS, factor);
    for (size_t value = 0; value < values; value++) sum[value] += part[value];
    free(part);
  }
  return sum;
}

static uint8_t *fetch_argmax(const rl_training_tensors *tensors, const uint8_t *from, size_t planes, size_t map) {
  size_t count = tensors->batch * planes * map;
  uint8_t *raw = malloc(count), *result = malloc(count);
  assert_true(raw && result);
  must(device->ops->download(device, raw, from, count, e));
  for (size_t i = 0; i < count; i++) {
    size_t n = i / (planes * map), index = i % (planes * map);
    result[tensors->channels_last ? (n * planes + index % planes) * map + index / planes : i] = raw[i];
  }
  free(raw);
  return result;
}

/* Pools x[planes][size][size] over windows of 2 x 2: takes from each window the value at its position in `argmax`, or 0 for
 * RL_ARGMAX_RELU_ZERO. Let M be the greatest value of a window, or 0 if all its values are negative: fails the test if the pooled
 * value differs from M by more than slack + relative_slack · M. It may differ a little, because the engine compares rounded
 * values. The caller frees the result. */
static double *pool_at_argmax(size_t planes, int size, const double *x, const uint8_t *argmax, double slack,
                              double relative_slack) {
  int half = size / 2;
  double *y = new_doubles(planes * half * half);
  for (size_t i = 0; i < planes * half * half; i++) {
    const double *corner = &x[i / (half * half) * size * size + i % (half * half) / half * 2 * size + i % half * 2];
    double greatest = 0;
    for (int position = 0; position < 4; position++) greatest = fmax(greatest, corner[position / 2 * size + position % 2]);
    y[i] = argmax[i] == RL_ARGMAX_RELU_ZERO ? 0 : corner[argmax[i] / 2 * size + argmax[i] % 2];
    if (fabs(greatest - y[i]) > slack + relative_slack * greatest)
      fail_msg("a window was pooled to %g; its maximum is %g", y[i], greatest);
  }
  return y;
}

typedef struct batch { /* the images of a step, normalised, and their labels */
  double *x;
  uint8_t *labels;
} batch;

/* Returns the images `from` to `from + count - 1` of the shuffled order of an epoch, as the engines see them. */
static batch gather(uint32_t from, uint32_t count, uint32_t images, int64_t seed, uint64_t epoch) {
  batch b = {new_doubles((size_t)count * RL_IMAGE_PIXELS), malloc(count)};
  for (uint32_t i = 0; i < count; i++) {
    uint32_t image = rl_permute(from + i, images, rl_shuffle_key((uint64_t)seed, epoch));
    b.labels[i] = dataset.train_labels[image];
    for (int p = 0; p < RL_IMAGE_PIXELS; p++)
      b.x[(size_t)i * RL_IMAGE_PIXELS + p] =
          (dataset.train_images[(size_t)image * RL_IMAGE_PIXELS + p] / 255.0 - 0.1307) / 0.3081;
  }
  return b;
}

/* Computes the part of the network after fc1's matrix product for `n` images, forward and backward: fc1's bias and ReLU, fc2, the
 * loss. Sets product_gradient to the gradient of `product`, sets the gradients of fc1's bias and of fc2, and returns the loss.
 * engine_fc1_product_gradient is the engine's own gradient of `product`. Where ReLU's input is within 1e-3 of 0, rounding may
 * have changed its sign in the engine: there, a zero in this gradient means that the engine's ReLU returned 0. NULL: the sign of
 * the input decides everywhere. */
static double run_head(int n, const double *product, const double *parameters, const uint8_t *labels,
                       const double *engine_fc1_product_gradient, double *product_gradient, double *gradients) {
  const double *fc1_bias = &parameters[rl_tensor_offsets[RL_FC1_B]], *fc2_weights = &parameters[rl_tensor_offsets[RL_FC2_W]],
               *fc2_bias = &parameters[rl_tensor_offsets[RL_FC2_B]];
  double *hidden = new_doubles(n * RL_FC1_OUTPUTS), *logits = new_doubles(n * RL_CLASSES),
         *logits_gradient = new_doubles(n * RL_CLASSES);
  for (int i = 0; i < n * RL_FC1_OUTPUTS; i++) hidden[i] = fmax(0, product[i] + fc1_bias[i % RL_FC1_OUTPUTS]);
  rl_oracle_linear_forward(n, RL_FC1_OUTPUTS, RL_CLASSES, hidden, fc2_weights, fc2_bias, logits);
  double loss = rl_oracle_loss(n, logits, labels, 1, logits_gradient, NULL);
  rl_oracle_linear_input_gradient(n, RL_FC1_OUTPUTS, RL_CLASSES, logits_gradient, fc2_weights, product_gradient);
  for (int i = 0; i < n * RL_FC1_OUTPUTS; i++)
    if (engine_fc1_product_gradient && fabs(product[i] + fc1_bias[i % RL_FC1_OUTPUTS]) < 1e-3
            ? engine_fc1_product_gradient[i] == 0
            : hidden[i] == 0)
      product_gradient[i] = 0;
  rl_oracle_linear_weight_gradient(n, RL_FC1_OUTPUTS, RL_CLASSES, hidden, logits_gradient,
                                   &gradients[rl_tensor_offsets[RL_FC2_W]], &gradients[rl_tensor_offsets[RL_FC2_B]]);
  for (int k = 0; k < RL_FC1_OUTPUTS; k++) gradients[rl_tensor_offsets[RL_FC1_B] + k] = 0;
  for (int i = 0; i < n * RL_FC1_OUTPUTS; i++) gradients[rl_tensor_offsets[RL_FC1_B] + i % RL_FC1_OUTPUTS] += product_gradient[i];
  free(hidden);
  free(logits);
  free(logits_gradient);
  return loss;
}

/* Computes one step of the whole network in double precision, fills `gradients` and returns the loss. argmax1 and argmax2 are the
 * positions that the two poolings take; NULL means the greatest values. */
static double run_network(int n, const batch *b, const double *parameters, const uint8_t *argmax1, const uint8_t *argmax2,
                          const double *engine_fc1_product_gradient, double *gradients) {
  static const double zero_bias[RL_FC1_OUTPUTS];
  const uint32_t *offsets = rl_tensor_offsets;
  double *product1 = new_doubles((size_t)n * RL_CONV1_CHANNELS * CONV1_PIXELS), *pooled1,
         *conv2_product = new_doubles((size_t)n * RL_CONV2_CHANNELS * CONV2_PIXELS), *pooled2,
         *unused = new_doubles(RL_FC1_OUTPUTS);
  uint8_t *exact_argmax1 = malloc((size_t)n * POOLED1_VALUES), *exact_argmax2 = malloc((size_t)n * RL_FC1_INPUTS);
  rl_oracle_conv_forward(&rl_oracle_conv1, n, b->x, &parameters[offsets[RL_CONV1_W]], &parameters[offsets[RL_CONV1_B]], product1);
  if (argmax1) pooled1 = pool_at_argmax((size_t)n * RL_CONV1_CHANNELS, RL_CONV1_SIDE, product1, argmax1, 1e-3, 0);
  else
    rl_oracle_pool_forward((size_t)n * RL_CONV1_CHANNELS, RL_CONV1_SIDE, product1,
                           pooled1 = new_doubles((size_t)n * POOLED1_VALUES), exact_argmax1);
  rl_oracle_conv_forward(&rl_oracle_conv2, n, pooled1, &parameters[offsets[RL_CONV2_W]], &parameters[offsets[RL_CONV2_B]],
                         conv2_product);
  if (argmax2) pooled2 = pool_at_argmax((size_t)n * RL_CONV2_CHANNELS, RL_CONV2_SIDE, conv2_product, argmax2, 1e-3, 0);
  else
    rl_oracle_pool_forward((size_t)n * RL_CONV2_CHANNELS, RL_CONV2_SIDE, conv2_product,
                           pooled2 = new_doubles((size_t)n * RL_FC1_INPUTS), exact_argmax2);
  double *product = new_doubles(n * RL_FC1_OUTPUTS), *product_gradient = new_doubles(n * RL_FC1_OUTPUTS),
         *pooled2_gradient = new_doubles((size_t)n * RL_FC1_INPUTS);
  rl_oracle_linear_forward(n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, pooled2, &parameters[offsets[RL_FC1_W]], zero_bias, product);
  double loss = run_head(n, product, parameters, b->labels, engine_fc1_product_gradient, product_gradient, gradients);
  rl_oracle_linear_weight_gradient(n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, pooled2, product_gradient, &gradients[offsets[RL_FC1_W]],
                                   unused);
  rl_oracle_linear_input_gradient(n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, product_gradient, &parameters[offsets[RL_FC1_W]],
                                  pooled2_gradient);
  double *conv2_product_gradient = new_doubles((size_t)n * RL_CONV2_CHANNELS * CONV2_PIXELS),
         *pooled1_gradient = new_doubles((size_t)n * POOLED1_VALUES),
         *conv1_product_gradient = new_doubles((size_t)n * RL_CONV1_CHANNELS * CONV1_PIXELS);
  rl_oracle_pool_gradient((size_t)n * RL_CONV2_CHANNELS, RL_CONV2_SIDE, pooled2_gradient, argmax2 ? argmax2 : exact_argmax2,
                          conv2_product_gradient);
  rl_oracle_conv_weight_gradient(&rl_oracle_conv2, n, pooled1, conv2_product_gradient, &gradients[offsets[RL_CONV2_W]],
                                 &gradients[offsets[RL_CONV2_B]]);
  rl_oracle_conv_input_gradient(&rl_oracle_conv2, n, conv2_product_gradient, &parameters[offsets[RL_CONV2_W]], pooled1_gradient);
  rl_oracle_pool_gradient((size_t)n * RL_CONV1_CHANNELS, RL_CONV1_SIDE, pooled1_gradient, argmax1 ? argmax1 : exact_argmax1,
                          conv1_product_gradient);
  rl_oracle_conv_weight_gradient(&rl_oracle_conv1, n, b->x, conv1_product_gradient, &gradients[offsets[RL_CONV1_W]],
                                 &gradients[offsets[RL_CONV1_B]]);
  void *const all[] = {product1,
                       pooled1,
                       conv2_product,
                       pooled2,
                       unused,
                       exact_argmax1,
                       exact_argmax2,
                       product,
                       product_gradient,
                       pooled2_gradient,
                       conv2_product_gradient,
                       pooled1_gradient,
                       conv1_product_gradient};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  return loss;
}

static void check_tensor(const double *actual, const double *expected, rl_tensor tensor, double tolerance) {
  uint32_t offset = rl_tensor_offsets[tensor];
  char what[48];
  snprintf(what, sizeof what, "d %s", rl_tensor_names[tensor]);
  check(what, &actual[offset], &expected[offset], rl_tensor_sizes[tensor], tolerance);
}

/* One step of an engine: its inputs, the tensors between its layers, and its results, as doubles. */
typedef struct step_record {
  int n, precision;
  double learning_rate;
  batch images;
  double *before; /* parameters before the step */
  /* The same as conv2 and fc1 multiply them: rounded to FP16 in FP16, not rounded in FP32 and TF32 (the tolerances of TF32
   * include its rounding). */
  double *operands;
  double *after, *gradients, loss; /* `after`: parameters after the step */
  double *pooled1, *pooled2, *fc1_product_gradient, *pooled2_gradient, *pooled1_gradient;
  double *conv2_product_gradient; /* NULL when the engine never writes it to memory */
  uint8_t *argmax1, *argmax2;
} step_record;

typedef struct tolerances {
  double fp32, computed, stored; /* relative errors allowed for results computed in FP32, for results computed in the engine's
                                     precision, and for values that are only stored in it */
} tolerances;

static tolerances tolerances_of(int precision) {
  const double fp32 = 1e-5;
  if (precision == RL_FP32) return (tolerances){fp32, fp32, fp32};
  return (tolerances){fp32, 5e-3, precision == RL_TF32 ? 1e-3 : 5e-3};
}

static double *new_doubles_of(const float *from) {
  double *result = new_doubles(RL_PARAMETERS);
  for (int i = 0; i < RL_PARAMETERS; i++) result[i] = from[i];
  return result;
}

static void fetch_layers(step_record *step, const training *t) {
  rl_training_tensors tensors;
  must(rl_training_read_tensors(t->train, &tensors, e));
  assert_int_equal(tensors.batch, step->n);
  const double unscale = 1.0 / tensors.loss_scale;
  step->pooled1 = fetch(&tensors, tensors.pooled1, RL_CONV1_CHANNELS, POOLED1_PIXELS, 1);
  step->pooled2 = fetch(&tensors, tensors.pooled2, RL_CONV2_CHANNELS, POOLED2_PIXELS, 1);
  step->pooled1_gradient = fetch_pooled1_gradient(&tensors, unscale);
  step->pooled2_gradient = fetch(&tensors, tensors.pooled2_gradient, RL_CONV2_CHANNELS, POOLED2_PIXELS, unscale);
  step->conv2_product_gradient = tensors.conv2_product_gradient
                                     ? fetch(&tensors, tensors.conv2_product_gradient, RL_CONV2_CHANNELS, CONV2_PIXELS, unscale)
                                     : NULL;
  step->fc1_product_gradient = fetch(&tensors, tensors.fc1_product_gradient, RL_FC1_OUTPUTS, 1, unscale);
  step->argmax1 = fetch_argmax(&tensors, tensors.argmax1, RL_CONV1_CHANNELS, POOLED1_PIXELS);
  step->argmax2 = fetch_argmax(&tensors, tensors.argmax2, RL_CONV2_CHANNELS, POOLED2_PIXELS);
}

static step_record record_step(engine_case tested, uint32_t count) {
  static float raw[RL_PARAMETERS];
  float loss;
  rl_train_params params = small_training(tested, count, count);
  training t = open_training_as(params, true);
  step_record step = {.n = (int)count,
                      .precision = tested.precision,
                      .learning_rate = params.learning_rate,
                      .images = gather(0, count, count, params.seed, 0),
                      .operands = new_doubles(RL_PARAMETERS)};
  rl_model_initialise((uint64_t)params.seed, raw);
  step.before = new_doubles_of(raw);
  for (int i = 0; i < RL_PARAMETERS; i++)
    step.operands[i] = tested.precision == RL_FP16 ? round_to_half(step.before[i]) : step.before[i];
  run_epoch(&t);
  must(t.train->gradients(t.train, raw, e));
  step.gradients = new_doubles_of(raw);
  must(t.train->parameters(t.train, raw, e));
  step.after = new_doubles_of(raw);
  must(t.train->losses(t.train, &loss, e));
  step.loss = loss;
  fetch_layers(&step, &t);
  close_training(&t);
  return step;
}

static void free_step_record(step_record *step) {
  void *const all[] = {step->images.x,
                       step->images.labels,
                       step->before,
                       step->operands,
                       step->after,
                       step->gradients,
                       step->pooled1,
                       step->pooled2,
                       step->fc1_product_gradient,
                       step->pooled2_gradient,
                       step->conv2_product_gradient,
                       step->pooled1_gradient,
                       step->argmax1,
                       step->argmax2};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void check_convolutions_forward(const step_record *step, tolerances tolerance) {
  const uint32_t *offsets = rl_tensor_offsets;
  const size_t n = (size_t)step->n;
  double *product1 = new_doubles(n * RL_CONV1_CHANNELS * CONV1_PIXELS),
         *conv2_product = new_doubles(n * RL_CONV2_CHANNELS * CONV2_PIXELS);
  rl_oracle_conv_forward(&rl_oracle_conv1, step->n, step->images.x, &step->before[offsets[RL_CONV1_W]],
                         &step->before[offsets[RL_CONV1_B]], product1);
  /* Engines may round conv1's outputs to FP16 before the max-pooling compares them. Outputs that differ by at most one unit in
   * the last place can then be equal, and the engine may select either. */
  const double rounding_ratio = step->precision == RL_FP16 ? 0x1p-10 : 0;
  double *pooled1 = pool_at_argmax(n * RL_CONV1_CHANNELS, RL_CONV1_SIDE, product1, step->argmax1, 1e-5, rounding_ratio);
  check("conv1 + pool", step->pooled1, pooled1, n * POOLED1_VALUES, tolerance.stored);
  rl_oracle_conv_forward(&rl_oracle_conv2, step->n, step->pooled1, &step->operands[offsets[RL_CONV2_W]],
                         &step->before[offsets[RL_CONV2_B]], conv2_product);
  double *pooled2 = pool_at_argmax(n * RL_CONV2_CHANNELS, RL_CONV2_SIDE, conv2_product, step->argmax2,
                                   step->precision == RL_FP32 ? 1e-5 : 1e-2, 0);
  check("conv2 + pool", step->pooled2, pooled2, n * RL_FC1_INPUTS, tolerance.computed);
  free(product1), free(conv2_product), free(pooled1), free(pooled2);
}

/* Checks fc1, the head and their gradients. */
static void check_classifier(const step_record *step, tolerances tolerance) {
  static const double zero_bias[RL_FC1_OUTPUTS];
  const uint32_t *offsets = rl_tensor_offsets;
  const size_t n = (size_t)step->n;
  double *product = new_doubles(n * RL_FC1_OUTPUTS), *product_gradient = new_doubles(n * RL_FC1_OUTPUTS),
         *pooled2_gradient = new_doubles(n * RL_FC1_INPUTS), *unused = new_doubles(RL_FC1_OUTPUTS),
         *expected = new_doubles(RL_PARAMETERS);
  rl_oracle_linear_forward(step->n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, step->pooled2, &step->operands[offsets[RL_FC1_W]], zero_bias,
                           product);
  double loss =
      run_head(step->n, product, step->before, step->images.labels, step->fc1_product_gradient, product_gradient, expected);
  check("loss", &step->loss, &loss, 1, step->precision == RL_FP32 ? tolerance.fp32 : 1e-3);
  check("d fc1's product", step->fc1_product_gradient, product_gradient, n * RL_FC1_OUTPUTS, tolerance.computed);
  for (int tensor = RL_FC1_B; tensor < RL_TENSORS; tensor++)
    check_tensor(step->gradients, expected, (rl_tensor)tensor, tolerance.computed);
  rl_oracle_linear_input_gradient(step->n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, step->fc1_product_gradient,
                                  &step->operands[offsets[RL_FC1_W]], pooled2_gradient);
  check("d pool2", step->pooled2_gradient, pooled2_gradient, n * RL_FC1_INPUTS, tolerance.computed);
  rl_oracle_linear_weight_gradient(step->n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, step->pooled2, step->fc1_product_gradient,
                                   &expected[offsets[RL_FC1_W]], unused);
  check_tensor(step->gradients, expected, RL_FC1_W, tolerance.computed);
  free(product), free(product_gradient), free(pooled2_gradient), free(unused), free(expected);
}

static void check_convolutions_backward(const step_record *step, tolerances tolerance) {
  const uint32_t *offsets = rl_tensor_offsets;
  const size_t n = (size_t)step->n;
  double *conv2_product_gradient = new_doubles(n * RL_CONV2_CHANNELS * CONV2_PIXELS),
         *pooled1_gradient = new_doubles(n * POOLED1_VALUES),
         *conv1_product_gradient = new_doubles(n * RL_CONV1_CHANNELS * CONV1_PIXELS), *expected = new_doubles(RL_PARAMETERS);
  rl_oracle_pool_gradient(n * RL_CONV2_CHANNELS, RL_CONV2_SIDE, step->pooled2_gradient, step->argmax2, conv2_product_gradient);
  if (step->conv2_product_gradient)
    assert_memory_equal(step->conv2_product_gradient, conv2_product_gradient,
                        n * RL_CONV2_CHANNELS * CONV2_PIXELS * sizeof *conv2_product_gradient);
  rl_oracle_conv_weight_gradient(&rl_oracle_conv2, step->n, step->pooled1, conv2_product_gradient, &expected[offsets[RL_CONV2_W]],
                                 &expected[offsets[RL_CONV2_B]]);
  check_tensor(step->gradients, expected, RL_CONV2_W, tolerance.computed);
  check_tensor(step->gradients, expected, RL_CONV2_B, tolerance.fp32);
  rl_oracle_conv_input_gradient(&rl_oracle_conv2, step->n, conv2_product_gradient, &step->operands[offsets[RL_CONV2_W]],
                                pooled1_gradient);
  check("d pool1", step->pooled1_gradient, pooled1_gradient, n * POOLED1_VALUES, tolerance.computed);
  rl_oracle_pool_gradient(n * RL_CONV1_CHANNELS, RL_CONV1_SIDE, step->pooled1_gradient, step->argmax1, conv1_product_gradient);
  rl_oracle_conv_weight_gradient(&rl_oracle_conv1, step->n, step->images.x, conv1_product_gradient,
                                 &expected[offsets[RL_CONV1_W]], &expected[offsets[RL_CONV1_B]]);
  check_tensor(step->gradients, expected, RL_CONV1_W, tolerance.fp32);
  check_tensor(step->gradients, expected, RL_CONV1_B, tolerance.fp32);
  free(conv2_product_gradient), free(pooled1_gradient), free(conv1_product_gradient), free(expected);
}

/* Checks Adam's first step. Compares the changes of the weights, since errors in the small changes would not show in the weights
 * themselves. An FP32 weight near 0.1 represents a change of 1e-3 with a relative error of 1e-5; the tolerance is ten times
 * this error. */
static void check_update(const step_record *step) {
  double *adam = new_doubles(3 * RL_PARAMETERS), *changed = new_doubles(RL_PARAMETERS);
  memcpy(adam, step->before, RL_PARAMETERS * sizeof *adam);
  rl_oracle_adam(RL_PARAMETERS, 1, step->learning_rate, step->gradients, adam, adam + RL_PARAMETERS, adam + 2 * RL_PARAMETERS);
  for (int i = 0; i < RL_PARAMETERS; i++) {
    adam[i] -= step->before[i];
    changed[i] = step->after[i] - step->before[i];
  }
  check("Adam's change", changed, adam, RL_PARAMETERS, 1e-4);
  free(adam), free(changed);
}

static void check_network(const step_record *step) {
  double *expected = new_doubles(RL_PARAMETERS);
  double loss =
      run_network(step->n, &step->images, step->before, step->argmax1, step->argmax2, step->fc1_product_gradient, expected);
  check("whole network: loss", &step->loss, &loss, 1, 1e-5);
  check("whole network: d", step->gradients, expected, RL_PARAMETERS, 1e-5);
  free(expected);
}

/* Checks each layer alone, on the inputs that the engine itself gave it. */
static void check_step(engine_case tested, uint32_t count) {
  printf("  %s, %s, batch %u\n", tested.engine, rl_precision_names[tested.precision], count);
  const tolerances tolerance = tolerances_of(tested.precision);
  step_record step = record_step(tested, count);
  check_convolutions_forward(&step, tolerance);
  check_classifier(&step, tolerance);
  check_convolutions_backward(&step, tolerance);
  check_update(&step);
  if (tested.precision == RL_FP32) check_network(&step);
  free_step_record(&step);
}

static void test_layers(void **state) {
  (void)state;
  for (int which = 0; which < engine_case_count; which++)
    for (int i = 0; i < MAX_BATCHES; i++)
      if (batches[i]) check_step(engine_cases[which], batches[i]);
}

/* Tests that the weights are the same bit for bit whether or not the engine "persistent" stores, for tests, the tensors that it
 * otherwise keeps on chip. */
static void test_exposing_tensors_changes_nothing(void **state) {
  (void)state;
  float *weights[2] = {malloc(RL_PARAMETERS * sizeof(float)), malloc(RL_PARAMETERS * sizeof(float))};
  for (int which = 0; which < engine_case_count; which++) {
    const char *engine = engine_cases[which].engine;
    if (strcmp(engine, "persistent") != 0) continue;
    for (int exposed = 0; exposed < 2; exposed++) {
      training t = open_training_as(small_training(engine_cases[which], step_images, 2 * step_images), exposed);
      rl_training_tensors tensors;
      run_epoch(&t);
      must(t.train->parameters(t.train, weights[exposed], e));
      must(rl_training_read_tensors(t.train, &tensors, e));
      assert_int_equal(tensors.pooled1_gradient != NULL, exposed);
      close_training(&t);
    }
    assert_memory_equal(weights[0], weights[1], RL_PARAMETERS * sizeof(float));
  }
  free(weights[0]);
  free(weights[1]);
}

/* Tests that the losses of consecutive steps follow those of steps in double precision on the same images in the same order. */
static void test_losses_follow_the_oracle(void **state) {
  (void)state;
  enum { EARLY = 10 };
  const uint32_t images = steps * step_images;
  double *parameters = new_doubles(RL_PARAMETERS), *moment1 = new_doubles(RL_PARAMETERS), *moment2 = new_doubles(RL_PARAMETERS),
         *gradients = new_doubles(RL_PARAMETERS), expected[MAX_STEPS];
  float *initial = malloc(RL_PARAMETERS * sizeof *initial), losses[MAX_STEPS];
  rl_train_params params = small_training(engine_cases[0], step_images, images);
  rl_model_initialise((uint64_t)params.seed, initial);
  for (int i = 0; i < RL_PARAMETERS; i++) parameters[i] = initial[i];
  for (uint32_t step = 0; step < steps; step++) {
    batch b = gather(step * step_images, step_images, images, params.seed, 0);
    expected[step] = run_network(step_images, &b, parameters, NULL, NULL, NULL, gradients);
    rl_oracle_adam(RL_PARAMETERS, step + 1, params.learning_rate, gradients, parameters, moment1, moment2);
    free(b.x);
    free(b.labels);
  }
  /* Rounding differences grow from step to step, because Adam divides by the size of the gradient. They are often a hundred
   * times as large in the last step as in the first ten. TF32 and FP16 both have 11 bits of significand. */
  static const double early_tolerance[] = {[RL_FP32] = 1e-4, [RL_TF32] = 1e-2, [RL_FP16] = 1e-2},
                      tolerance[] = {[RL_FP32] = 1e-2, [RL_TF32] = 1e-1, [RL_FP16] = 1e-1};
  for (int which = 0; which < engine_case_count; which++) {
    const int precision = engine_cases[which].precision;
    params = small_training(engine_cases[which], step_images, images);
    training t = open_training(params);
    run_epoch(&t);
    must(t.train->losses(t.train, losses, e));
    double early = 0, worst = 0;
    for (uint32_t i = 0; i < steps; i++) {
      worst = fmax(worst, fabs(losses[i] - expected[i]));
      if (i < EARLY) early = worst;
    }
    printf(
        "  %s, %s: %u losses from %.4f to %.4f, worst difference %.2e in the first %d steps (at most %.0e) and %.2e in all steps "
        "(at most %.0e)\n",
        params.engine, rl_precision_names[precision], steps, expected[0], expected[steps - 1], early, EARLY,
        early_tolerance[precision], worst, tolerance[precision]);
    assert_true(early < early_tolerance[precision] && worst < tolerance[precision]);
    close_training(&t);
  }
  free(parameters);
  free(moment1);
  free(moment2);
  free(gradients);
  free(initial);
}

static void read_arguments(int count, char **arguments) {
  if (count < 5) return;
  steps = (uint32_t)atoi(arguments[2]);
  memset(batches, 0, sizeof batches);
  step_images = (uint32_t)atoi(arguments[3]);
  for (int i = 4; i < count && i - 4 < MAX_BATCHES; i++) batches[i - 4] = (uint32_t)atoi(arguments[i]);
}

int main(int count, char **arguments) {
  need_gpu(count > 1 ? arguments[1] : NULL);
  read_arguments(count, arguments);
  rl_error err = {0};
  if (rl_dataset_load("auto", getenv("ROOFLINED_MNIST_DIR"), &dataset, &err) < 0) {
    fprintf(stderr, "%s\n", err.message);
    return 1;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_layers), cmocka_unit_test(test_exposing_tensors_changes_nothing),
                                     cmocka_unit_test(test_losses_follow_the_oracle)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  rl_dataset_free(&dataset);
  device->ops->close(device);
  return failed;
}
