/* Every layer of every engine, forward and backward, against the double-precision oracle, which gets the engine's own inputs and
 * its pooling and ReLU decisions; the whole network in FP32; and 50 losses in a row. Arguments, for tests/simt, where the
 * defaults take too long: an engine (default: all), the steps whose losses are compared, the images per step, and batches. */
#include "data/dataset.h"
#include "fixture.h"
#include "train/oracle.h"

enum {
  P1_PIXELS = RL_POOLED1_SIDE * RL_POOLED1_SIDE,
  P1_VALUES = RL_CONV1_CHANNELS * P1_PIXELS,
  P2_PIXELS = RL_POOLED2_SIDE * RL_POOLED2_SIDE,
  H1_PIXELS = RL_CONV1_SIDE * RL_CONV1_SIDE,
  H2_PIXELS = RL_CONV2_SIDE * RL_CONV2_SIDE
};

enum { MAX_STEPS = 50, MAX_BATCHES = 16 };
static rl_dataset dataset;
static uint32_t steps = MAX_STEPS, step_images = 16,
                batches[MAX_BATCHES] = {1, 3, 32, 64, 129, 269 /* more than any kernel runs concurrently */};

static double *new_doubles(size_t count) {
  double *result = calloc(count, sizeof *result);
  assert_non_null(result);
  return result;
}

/* Checks ‖actual − expected‖ / ‖expected‖ < tolerance; NaN and an all-zero reference fail. */
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
  int last = exponent - 11 < -24 ? -24 : exponent - 11;
  return ldexp(nearbyint(ldexp(value, -last)), last);
}

/* Returns a device tensor of planes × map values per image as doubles in NCHW. */
static double *fetch(const rl_training_tensors *t, const void *from, size_t planes, size_t map, double factor) {
  size_t count = t->batch * planes * map, bytes = t->fp16 ? 2 : 4;
  unsigned char *raw = malloc(count * bytes);
  double *result = new_doubles(count);
  must(device->ops->download(device, raw, from, count * bytes, e));
  for (size_t i = 0; i < count; i++) {
    double value = t->fp16 ? from_half(((uint16_t *)raw)[i]) : (double)((float *)raw)[i];
    size_t n = i / (planes * map), index = i % (planes * map);
    result[t->channels_last ? (n * planes + index % planes) * map + index / planes : i] = value * factor;
  }
  free(raw);
  return result;
}

static uint8_t *fetch_argmax(const rl_training_tensors *t, const uint8_t *from, size_t planes, size_t map) {
  size_t count = t->batch * planes * map;
  uint8_t *raw = malloc(count), *result = malloc(count);
  assert_true(raw && result);
  must(device->ops->download(device, raw, from, count, e));
  for (size_t i = 0; i < count; i++) {
    size_t n = i / (planes * map), index = i % (planes * map);
    result[t->channels_last ? (n * planes + index % planes) * map + index / planes : i] = raw[i];
  }
  free(raw);
  return result;
}

/* Pools x[planes][size][size] at the positions in argmax. Fails if a pooled value differs from its window's maximum by more than
 * `slack`, which covers rounding. */
static double *pool_at_argmax(size_t planes, int size, const double *x, const uint8_t *argmax, double slack) {
  int half = size / 2;
  double *y = new_doubles(planes * half * half);
  for (size_t i = 0; i < planes * half * half; i++) {
    const double *corner = &x[i / (half * half) * size * size + i % (half * half) / half * 2 * size + i % half * 2];
    double greatest = 0;
    for (int position = 0; position < 4; position++) greatest = fmax(greatest, corner[position / 2 * size + position % 2]);
    y[i] = argmax[i] == RL_ARGMAX_RELU_ZERO ? 0 : corner[argmax[i] / 2 * size + argmax[i] % 2];
    if (fabs(greatest - y[i]) > slack) fail_msg("a window was pooled to %g; its maximum is %g", y[i], greatest);
  }
  return y;
}

typedef struct batch { /* a step's images and labels, shuffled */
  double *x;
  uint8_t *labels;
} batch;

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

/* Computes fc1's bias and ReLU, fc2 and the loss, and their gradients; returns the loss. engine_d_fc1 (may be NULL): its
 * zeros decide about ReLU where the hidden value is within rounding of 0. */
static double run_head(int n, const double *product, const double *w, const uint8_t *labels, const double *engine_d_fc1,
                       double *d_hidden, double *gradients) {
  const double *b1 = &w[rl_tensor_offsets[RL_FC1_B]], *w2 = &w[rl_tensor_offsets[RL_FC2_W]],
               *b2 = &w[rl_tensor_offsets[RL_FC2_B]];
  double *hidden = new_doubles(n * RL_FC1_OUTPUTS), *logits = new_doubles(n * RL_CLASSES),
         *d_logits = new_doubles(n * RL_CLASSES);
  for (int i = 0; i < n * RL_FC1_OUTPUTS; i++) hidden[i] = fmax(0, product[i] + b1[i % RL_FC1_OUTPUTS]);
  rl_oracle_linear_forward(n, RL_FC1_OUTPUTS, RL_CLASSES, hidden, w2, b2, logits);
  double loss = rl_oracle_loss(n, logits, labels, 1, d_logits, NULL);
  rl_oracle_linear_input_gradient(n, RL_FC1_OUTPUTS, RL_CLASSES, d_logits, w2, d_hidden);
  for (int i = 0; i < n * RL_FC1_OUTPUTS; i++)
    if (engine_d_fc1 && fabs(product[i] + b1[i % RL_FC1_OUTPUTS]) < 1e-3 ? engine_d_fc1[i] == 0 : hidden[i] == 0) d_hidden[i] = 0;
  rl_oracle_linear_weight_gradient(n, RL_FC1_OUTPUTS, RL_CLASSES, hidden, d_logits, &gradients[rl_tensor_offsets[RL_FC2_W]],
                                   &gradients[rl_tensor_offsets[RL_FC2_B]]);
  for (int k = 0; k < RL_FC1_OUTPUTS; k++) gradients[rl_tensor_offsets[RL_FC1_B] + k] = 0;
  for (int i = 0; i < n * RL_FC1_OUTPUTS; i++) gradients[rl_tensor_offsets[RL_FC1_B] + i % RL_FC1_OUTPUTS] += d_hidden[i];
  free(hidden);
  free(logits);
  free(d_logits);
  return loss;
}

/* Computes one step of the whole network in double and returns the loss. argmax1, argmax2: the positions to pool;
 * NULL: the exact ones. */
static double run_network(int n, const batch *b, const double *w, const uint8_t *argmax1, const uint8_t *argmax2,
                          const double *engine_d_fc1, double *gradients) {
  static const double none[RL_FC1_OUTPUTS];
  const uint32_t *offsets = rl_tensor_offsets;
  double *y1 = new_doubles((size_t)n * RL_CONV1_CHANNELS * H1_PIXELS), *p1,
         *y2 = new_doubles((size_t)n * RL_CONV2_CHANNELS * H2_PIXELS), *p2, *unused = new_doubles(RL_FC1_OUTPUTS);
  uint8_t *own1 = malloc((size_t)n * P1_VALUES), *own2 = malloc((size_t)n * RL_FC1_INPUTS);
  rl_oracle_conv_forward(&rl_oracle_conv1, n, b->x, &w[offsets[RL_CONV1_W]], &w[offsets[RL_CONV1_B]], y1);
  if (argmax1) p1 = pool_at_argmax((size_t)n * RL_CONV1_CHANNELS, RL_CONV1_SIDE, y1, argmax1, 1e-3);
  else rl_oracle_pool_forward((size_t)n * RL_CONV1_CHANNELS, RL_CONV1_SIDE, y1, p1 = new_doubles((size_t)n * P1_VALUES), own1);
  rl_oracle_conv_forward(&rl_oracle_conv2, n, p1, &w[offsets[RL_CONV2_W]], &w[offsets[RL_CONV2_B]], y2);
  if (argmax2) p2 = pool_at_argmax((size_t)n * RL_CONV2_CHANNELS, RL_CONV2_SIDE, y2, argmax2, 1e-3);
  else
    rl_oracle_pool_forward((size_t)n * RL_CONV2_CHANNELS, RL_CONV2_SIDE, y2, p2 = new_doubles((size_t)n * RL_FC1_INPUTS), own2);
  double *product = new_doubles(n * RL_FC1_OUTPUTS), *d_hidden = new_doubles(n * RL_FC1_OUTPUTS),
         *d_p2 = new_doubles((size_t)n * RL_FC1_INPUTS);
  rl_oracle_linear_forward(n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, p2, &w[offsets[RL_FC1_W]], none, product);
  double loss = run_head(n, product, w, b->labels, engine_d_fc1, d_hidden, gradients);
  rl_oracle_linear_weight_gradient(n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, p2, d_hidden, &gradients[offsets[RL_FC1_W]], unused);
  rl_oracle_linear_input_gradient(n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, d_hidden, &w[offsets[RL_FC1_W]], d_p2);
  double *d_y2 = new_doubles((size_t)n * RL_CONV2_CHANNELS * H2_PIXELS), *d_p1 = new_doubles((size_t)n * P1_VALUES),
         *d_y1 = new_doubles((size_t)n * RL_CONV1_CHANNELS * H1_PIXELS);
  rl_oracle_pool_gradient((size_t)n * RL_CONV2_CHANNELS, RL_CONV2_SIDE, d_p2, argmax2 ? argmax2 : own2, d_y2);
  rl_oracle_conv_weight_gradient(&rl_oracle_conv2, n, p1, d_y2, &gradients[offsets[RL_CONV2_W]], &gradients[offsets[RL_CONV2_B]]);
  rl_oracle_conv_input_gradient(&rl_oracle_conv2, n, d_y2, &w[offsets[RL_CONV2_W]], d_p1);
  rl_oracle_pool_gradient((size_t)n * RL_CONV1_CHANNELS, RL_CONV1_SIDE, d_p1, argmax1 ? argmax1 : own1, d_y1);
  rl_oracle_conv_weight_gradient(&rl_oracle_conv1, n, b->x, d_y1, &gradients[offsets[RL_CONV1_W]],
                                 &gradients[offsets[RL_CONV1_B]]);
  void *const all[] = {y1, p1, y2, p2, unused, own1, own2, product, d_hidden, d_p2, d_y2, d_p1, d_y1};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  return loss;
}

static void check_tensor(const double *actual, const double *expected, rl_tensor tensor, double tolerance) {
  uint32_t offset = rl_tensor_offsets[tensor];
  char what[48];
  snprintf(what, sizeof what, "d %s", rl_tensor_names[tensor]);
  check(what, &actual[offset], &expected[offset], rl_tensor_sizes[tensor], tolerance);
}

/* One step of an engine: its inputs, the tensors between its layers, and its results. */
typedef struct step_record {
  int n, precision;
  double learning_rate;
  batch images;
  double *w, *multiplied;                       /* parameters before the step; rounded as multiplied */
  double *after, *gradients, loss;              /* parameters after the step */
  double *p1, *p2, *d_fc1, *d_p2, *d_y2, *d_p1; /* d_y2: NULL where it is not in memory */
  uint8_t *argmax1, *argmax2;
} step_record;

typedef struct tolerances {
  double exact, computed, stored; /* of FP32 results; of results computed in the precision; of values stored in it */
} tolerances;

static tolerances tolerances_of(int precision) {
  const double fp32 = 1e-5;
  if (precision == RL_FP32) return (tolerances){fp32, fp32, fp32};
  return (tolerances){fp32, 5e-3, precision == RL_TF32 ? 1e-3 : 5e-3};
}

static double *parameters_of(const float *from) {
  double *result = new_doubles(RL_PARAMETERS);
  for (int i = 0; i < RL_PARAMETERS; i++) result[i] = from[i];
  return result;
}

static void fetch_layers(step_record *s, const training *t) {
  rl_training_tensors v;
  must(rl_training_view(t->train, &v, e));
  assert_int_equal(v.batch, s->n);
  const double unscale = 1.0 / v.loss_scale;
  s->p1 = fetch(&v, v.pooled1, RL_CONV1_CHANNELS, P1_PIXELS, 1);
  s->p2 = fetch(&v, v.pooled2, RL_CONV2_CHANNELS, P2_PIXELS, 1);
  s->d_p1 = fetch(&v, v.d_pooled1, RL_CONV1_CHANNELS, P1_PIXELS, unscale);
  s->d_p2 = fetch(&v, v.d_pooled2, RL_CONV2_CHANNELS, P2_PIXELS, unscale);
  s->d_y2 = v.d_product2 ? fetch(&v, v.d_product2, RL_CONV2_CHANNELS, H2_PIXELS, unscale) : NULL;
  s->d_fc1 = fetch(&v, v.d_fc1, RL_FC1_OUTPUTS, 1, unscale);
  s->argmax1 = fetch_argmax(&v, v.argmax1, RL_CONV1_CHANNELS, P1_PIXELS);
  s->argmax2 = fetch_argmax(&v, v.argmax2, RL_CONV2_CHANNELS, P2_PIXELS);
}

static step_record record_step(engine_case which, uint32_t count) {
  static float raw[RL_PARAMETERS];
  float loss;
  rl_train_params params = small_training(which, count, count);
  training t = open_training_as(params, true);
  step_record s = {.n = (int)count,
                   .precision = which.precision,
                   .learning_rate = params.learning_rate,
                   .images = gather(0, count, count, params.seed, 0),
                   .multiplied = new_doubles(RL_PARAMETERS)};
  rl_model_initialise((uint64_t)params.seed, raw);
  s.w = parameters_of(raw);
  for (int i = 0; i < RL_PARAMETERS; i++) s.multiplied[i] = which.precision == RL_FP16 ? round_to_half(s.w[i]) : s.w[i];
  run_epoch(&t);
  must(t.train->gradients(t.train, raw, e));
  s.gradients = parameters_of(raw);
  must(t.train->parameters(t.train, raw, e));
  s.after = parameters_of(raw);
  must(t.train->losses(t.train, &loss, e));
  s.loss = loss;
  fetch_layers(&s, &t);
  close_training(&t);
  return s;
}

static void free_step_record(step_record *s) {
  void *const all[] = {s->images.x, s->images.labels, s->w,    s->multiplied, s->after, s->gradients, s->p1,
                       s->p2,       s->d_fc1,         s->d_p2, s->d_y2,       s->d_p1,  s->argmax1,   s->argmax2};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void check_convolutions_forward(const step_record *s, tolerances tolerance) {
  const uint32_t *offsets = rl_tensor_offsets;
  const size_t n = (size_t)s->n;
  double *y1 = new_doubles(n * RL_CONV1_CHANNELS * H1_PIXELS), *y2 = new_doubles(n * RL_CONV2_CHANNELS * H2_PIXELS);
  rl_oracle_conv_forward(&rl_oracle_conv1, s->n, s->images.x, &s->w[offsets[RL_CONV1_W]], &s->w[offsets[RL_CONV1_B]], y1);
  double *p1 = pool_at_argmax(n * RL_CONV1_CHANNELS, RL_CONV1_SIDE, y1, s->argmax1, 1e-5);
  check("conv1 + pool", s->p1, p1, n * P1_VALUES, tolerance.stored);
  rl_oracle_conv_forward(&rl_oracle_conv2, s->n, s->p1, &s->multiplied[offsets[RL_CONV2_W]], &s->w[offsets[RL_CONV2_B]], y2);
  double *p2 = pool_at_argmax(n * RL_CONV2_CHANNELS, RL_CONV2_SIDE, y2, s->argmax2, s->precision == RL_FP32 ? 1e-5 : 1e-2);
  check("conv2 + pool", s->p2, p2, n * RL_FC1_INPUTS, tolerance.computed);
  free(y1), free(y2), free(p1), free(p2);
}

/* fc1, the head and their gradients. */
static void check_classifier(const step_record *s, tolerances tolerance) {
  static const double none[RL_FC1_OUTPUTS];
  const uint32_t *offsets = rl_tensor_offsets;
  const size_t n = (size_t)s->n;
  double *product = new_doubles(n * RL_FC1_OUTPUTS), *d_hidden = new_doubles(n * RL_FC1_OUTPUTS),
         *d_p2 = new_doubles(n * RL_FC1_INPUTS), *unused = new_doubles(RL_FC1_OUTPUTS), *expected = new_doubles(RL_PARAMETERS);
  rl_oracle_linear_forward(s->n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, s->p2, &s->multiplied[offsets[RL_FC1_W]], none, product);
  double loss = run_head(s->n, product, s->w, s->images.labels, s->d_fc1, d_hidden, expected);
  check("loss", &s->loss, &loss, 1, s->precision == RL_FP32 ? tolerance.exact : 1e-3);
  check("d fc1's product", s->d_fc1, d_hidden, n * RL_FC1_OUTPUTS, tolerance.computed);
  for (int tensor = RL_FC1_B; tensor < RL_TENSORS; tensor++)
    check_tensor(s->gradients, expected, (rl_tensor)tensor, tolerance.computed);
  rl_oracle_linear_input_gradient(s->n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, s->d_fc1, &s->multiplied[offsets[RL_FC1_W]], d_p2);
  check("d pool2", s->d_p2, d_p2, n * RL_FC1_INPUTS, tolerance.computed);
  rl_oracle_linear_weight_gradient(s->n, RL_FC1_INPUTS, RL_FC1_OUTPUTS, s->p2, s->d_fc1, &expected[offsets[RL_FC1_W]], unused);
  check_tensor(s->gradients, expected, RL_FC1_W, tolerance.computed);
  free(product), free(d_hidden), free(d_p2), free(unused), free(expected);
}

static void check_convolutions_backward(const step_record *s, tolerances tolerance) {
  const uint32_t *offsets = rl_tensor_offsets;
  const size_t n = (size_t)s->n;
  double *d_y2 = new_doubles(n * RL_CONV2_CHANNELS * H2_PIXELS), *d_p1 = new_doubles(n * P1_VALUES),
         *d_y1 = new_doubles(n * RL_CONV1_CHANNELS * H1_PIXELS), *expected = new_doubles(RL_PARAMETERS);
  rl_oracle_pool_gradient(n * RL_CONV2_CHANNELS, RL_CONV2_SIDE, s->d_p2, s->argmax2, d_y2);
  if (s->d_y2) assert_memory_equal(s->d_y2, d_y2, n * RL_CONV2_CHANNELS * H2_PIXELS * sizeof *d_y2);
  rl_oracle_conv_weight_gradient(&rl_oracle_conv2, s->n, s->p1, d_y2, &expected[offsets[RL_CONV2_W]],
                                 &expected[offsets[RL_CONV2_B]]);
  check_tensor(s->gradients, expected, RL_CONV2_W, tolerance.computed);
  check_tensor(s->gradients, expected, RL_CONV2_B, tolerance.exact);
  rl_oracle_conv_input_gradient(&rl_oracle_conv2, s->n, d_y2, &s->multiplied[offsets[RL_CONV2_W]], d_p1);
  check("d pool1", s->d_p1, d_p1, n * P1_VALUES, tolerance.computed);
  rl_oracle_pool_gradient(n * RL_CONV1_CHANNELS, RL_CONV1_SIDE, s->d_p1, s->argmax1, d_y1);
  rl_oracle_conv_weight_gradient(&rl_oracle_conv1, s->n, s->images.x, d_y1, &expected[offsets[RL_CONV1_W]],
                                 &expected[offsets[RL_CONV1_B]]);
  check_tensor(s->gradients, expected, RL_CONV1_W, tolerance.exact);
  check_tensor(s->gradients, expected, RL_CONV1_B, tolerance.exact);
  free(d_y2), free(d_p1), free(d_y1), free(expected);
}

/* Compares the change of the weights by Adam's first step, not the weights, which would hide errors. */
static void check_update(const step_record *s) {
  double *adam = new_doubles(3 * RL_PARAMETERS), *changed = new_doubles(RL_PARAMETERS);
  memcpy(adam, s->w, RL_PARAMETERS * sizeof *adam);
  rl_oracle_adam(RL_PARAMETERS, 1, s->learning_rate, s->gradients, adam, adam + RL_PARAMETERS, adam + 2 * RL_PARAMETERS);
  for (int i = 0; i < RL_PARAMETERS; i++) {
    adam[i] -= s->w[i];
    changed[i] = s->after[i] - s->w[i];
  }
  check("Adam's change", changed, adam, RL_PARAMETERS, 1e-4); /* weights near 0.1 hold a change of 1e-3 to 1e-5 */
  free(adam), free(changed);
}

static void check_network(const step_record *s) {
  double *expected = new_doubles(RL_PARAMETERS);
  double loss = run_network(s->n, &s->images, s->w, s->argmax1, s->argmax2, s->d_fc1, expected);
  check("whole network: loss", &s->loss, &loss, 1, 1e-5);
  check("whole network: d", s->gradients, expected, RL_PARAMETERS, 1e-5);
  free(expected);
}

/* Checks each layer on the engine's own inputs. */
static void check_step(engine_case which, uint32_t count) {
  printf("  %s, %s, batch %u\n", which.engine, rl_precision_names[which.precision], count);
  const tolerances tolerance = tolerances_of(which.precision);
  step_record s = record_step(which, count);
  check_convolutions_forward(&s, tolerance);
  check_classifier(&s, tolerance);
  check_convolutions_backward(&s, tolerance);
  check_update(&s);
  if (which.precision == RL_FP32) check_network(&s);
  free_step_record(&s);
}

static void test_layers(void **state) {
  (void)state;
  for (int which = 0; which < engine_case_count; which++)
    for (int i = 0; i < MAX_BATCHES; i++)
      if (batches[i]) check_step(engine_cases[which], batches[i]);
}

/* Storing tensors that an engine keeps on chip, for tests, changes no bit of the weights. */
static void test_exposing_tensors_changes_nothing(void **state) {
  (void)state;
  float *weights[2] = {malloc(RL_PARAMETERS * sizeof(float)), malloc(RL_PARAMETERS * sizeof(float))};
  for (int which = 0; which < engine_case_count; which++) {
    const char *engine = engine_cases[which].engine;
    if (strcmp(engine, "persistent") != 0) continue;
    for (int exposed = 0; exposed < 2; exposed++) {
      training t = open_training_as(small_training(engine_cases[which], step_images, 2 * step_images), exposed);
      rl_training_tensors v;
      run_epoch(&t);
      must(t.train->parameters(t.train, weights[exposed], e));
      must(rl_training_view(t.train, &v, e));
      assert_int_equal(v.d_pooled1 != NULL, exposed);
      close_training(&t);
    }
    assert_memory_equal(weights[0], weights[1], RL_PARAMETERS * sizeof(float));
  }
  free(weights[0]);
  free(weights[1]);
}

/* Compares losses with those of steps in double, with the engine's order of images. */
static void test_losses_follow_the_oracle(void **state) {
  (void)state;
  enum { EARLY = 10 };
  const uint32_t images = steps * step_images;
  double *w = new_doubles(RL_PARAMETERS), *m = new_doubles(RL_PARAMETERS), *v = new_doubles(RL_PARAMETERS),
         *g = new_doubles(RL_PARAMETERS), expected[MAX_STEPS];
  float *initial = malloc(RL_PARAMETERS * sizeof *initial), losses[MAX_STEPS];
  rl_train_params params = small_training(engine_cases[0], step_images, images);
  rl_model_initialise((uint64_t)params.seed, initial);
  for (int i = 0; i < RL_PARAMETERS; i++) w[i] = initial[i];
  for (uint32_t step = 0; step < steps; step++) {
    batch b = gather(step * step_images, step_images, images, params.seed, 0);
    expected[step] = run_network(step_images, &b, w, NULL, NULL, NULL, g);
    rl_oracle_adam(RL_PARAMETERS, step + 1, params.learning_rate, g, w, m, v);
    free(b.x);
    free(b.labels);
  }
  /* Rounding differences grow from step to step, because Adam divides by the size of the gradient: a hundredfold from the first
   * ten steps to the last is common. TF32 and FP16 both have 11 bits of significand. */
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
    printf("  %s, %s: %u losses from %.4f to %.4f, worst difference %.2e in the first %d (at most %.0e), %.2e (at most %.0e)\n",
           params.engine, rl_precision_names[precision], steps, expected[0], expected[steps - 1], early, EARLY,
           early_tolerance[precision], worst, tolerance[precision]);
    assert_true(early < early_tolerance[precision] && worst < tolerance[precision]);
    close_training(&t);
  }
  free(w);
  free(m);
  free(v);
  free(g);
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
