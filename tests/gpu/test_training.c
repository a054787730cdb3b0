/* Tests every training engine on the GPU: results repeat bit for bit, with and without a CUDA graph; an overflow skips
 * the step; cancellation and progress work; the network learns MNIST. Arguments: [ENGINE [BATCH]]. With BATCH, the program runs
 * only the tests of overflows, at that batch size, and of the tail; the emulator of tests/simt is too slow for the other tests.
 */
#include <errno.h>

#include "fixture.h"

static uint64_t hash_values(const float *values, size_t count) {
  uint64_t hash = 0;
  for (size_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, &values[i], sizeof bits);
    hash = rl_hash64(hash ^ bits);
  }
  return hash;
}

static uint64_t hash_parameters(training *t) {
  float *weights = malloc(RL_PARAMETERS * sizeof *weights);
  must(t->train->parameters(t->train, weights, e));
  const uint64_t hash = hash_values(weights, RL_PARAMETERS);
  free(weights);
  return hash;
}

static uint64_t hash_moments(training *t) {
  float *moments = malloc(2 * RL_PARAMETERS * sizeof *moments);
  must(t->train->moments(t->train, moments, moments + RL_PARAMETERS, e));
  const uint64_t hash = hash_values(moments, 2 * RL_PARAMETERS);
  free(moments);
  return hash;
}

static void test_same_seed_same_bits(void **state) {
  (void)state;
  for (int which = 0; which < engine_case_count; which++) {
    rl_train_params params = small_training(engine_cases[which], 64, 1000); /* 15 steps of 64 images and one of 40 */
    training t = open_training(params);
    run_epoch(&t);
    run_epoch(&t);
    uint64_t first = hash_parameters(&t);
    must(t.instance->ops->reset(t.instance, e));
    run_epoch(&t);
    assert_int_not_equal(hash_parameters(&t), first);
    must(t.instance->ops->save(t.instance, e));
    run_epoch(&t);
    if (t.instance->deterministic) assert_int_equal(hash_parameters(&t), first);
    else assert_non_null(t.instance->deterministic_note);
    must(t.instance->ops->restore(t.instance, e));
    rl_elapsed eager = {0}, graph = {0};
    must(device->ops->run_eager(device, &t.instance->iteration, NULL, &eager, e));
    if (t.instance->deterministic) assert_int_equal(hash_parameters(&t), first);
    must(device->ops->run(device, t.epoch, NULL, &graph, e));
    assert_int_equal(eager.stream_operations, graph.stream_operations);
    close_training(&t);
    t = open_training(params); /* the second instance reads the choices that the first one made by timing from the cache */
    run_epoch(&t);
    run_epoch(&t);
    if (t.instance->deterministic) assert_int_equal(hash_parameters(&t), first);
    close_training(&t);
    params.seed++;
    t = open_training(params);
    run_epoch(&t);
    run_epoch(&t);
    assert_int_not_equal(hash_parameters(&t), first);
    close_training(&t);
  }
}

static int64_t batch = 64;

/* Trains with a tail whose gradients `fused` may add up in more blocks than those of the other step: of 260 and 290 images on a
 * GPU, of 8 and 9 in the emulator. If the buffers were too small, AddressSanitizer and memcheck would report it. */
static void test_the_tail_fits_into_the_buffers(void **state) {
  (void)state;
  const bool emulated = batch < 64;
  for (int which = 0; which < engine_case_count; which++) {
    if (emulated && strcmp(engine_cases[which].engine, "fused") != 0)
      continue; /* the number grows with the batch in all others */
    training t = open_training(small_training(engine_cases[which], emulated ? 9 : 290, emulated ? 17 : 550));
    rl_iteration_results report;
    const uint64_t before = hash_parameters(&t);
    run_epoch(&t);
    must(t.instance->ops->read_results(t.instance, &report, e));
    assert_true(isfinite(report.train_loss));
    assert_true(hash_parameters(&t) != before);
    close_training(&t);
  }
}

/* Trains two steps, sets the weights of one tensor so large that gradients overflow, and trains two more. With conv2.weight, the
 * activations overflow; with fc2.weight, whose sign alternates from class to class, only the gradients do in FP16, and the logits
 * in the other precisions. The engine must skip the last two steps: weights and moments stay the same, and in FP16, the loss
 * scale is halved twice. */
static void check_overflow(engine_case tested, rl_tensor tensor) {
  const bool alternating = tensor == RL_FC2_W, fp16 = tested.precision == RL_FP16;
  const float large = fp16 ? 6e4f : 3e38f;
  training t = open_training(small_training(tested, batch, 2 * batch));
  float *weights = malloc(RL_PARAMETERS * sizeof *weights);
  const uint64_t no_moments = hash_moments(&t);
  run_epoch(&t);
  must(t.train->parameters(t.train, weights, e));
  for (uint32_t i = 0; i < rl_tensor_sizes[tensor]; i++)
    weights[rl_tensor_offsets[tensor] + i] = alternating && i / RL_FC1_OUTPUTS % 2 ? -large : large;
  must(t.train->set_parameters(t.train, weights, e));
  const uint64_t before = hash_parameters(&t), moments = hash_moments(&t);
  assert_true(moments != no_moments);
  run_epoch(&t);
  rl_iteration_results report;
  must(t.instance->ops->read_results(t.instance, &report, e));
  assert_true(hash_parameters(&t) == before);
  assert_true(hash_moments(&t) == moments);
  assert_true(report.skipped_steps == 2);
  assert_true(!fp16 || report.loss_scale == 16384);
  must(t.instance->ops->reset(t.instance, e));
  run_epoch(&t);
  must(t.instance->ops->read_results(t.instance, &report, e));
  assert_true(report.train_loss < 3);
  assert_true(report.skipped_steps == 0);
  assert_true(!fp16 || report.loss_scale == 65536);
  free(weights);
  close_training(&t);
}

/* `persistent` skips steps in every precision, because its sums over the grid are fixed-point numbers. */
static void test_overflow_skips_the_step(void **state) {
  (void)state;
  for (int which = 0; which < engine_case_count; which++) {
    const bool fp16 = engine_cases[which].precision == RL_FP16;
    if (fp16) check_overflow(engine_cases[which], RL_CONV2_W);
    if (fp16 || strcmp(engine_cases[which].engine, "persistent") == 0) check_overflow(engine_cases[which], RL_FC2_W);
  }
}

static void fill_tensor(float *weights, rl_tensor tensor, uint32_t count, float value) {
  for (uint32_t i = 0; i < count; i++) weights[rl_tensor_offsets[tensor] + i] = value;
}

/* Trains one step of `images` images from weights with which every image that is not of class 0 has the same gradient of every
 * weight of conv2. conv1's outputs are 4, conv2's 1, and fc1's so large that the softmax is 1 for class 0. Returns whether the
 * step was skipped. */
static bool skips_conv2_gradient(engine_case tested, int64_t images, double gradient) {
  const double pooled1 = 4, fc1_weight = 0.125,
               fc2_weight = gradient * (double)images / (RL_POOLED2_PIXELS * pooled1 * RL_FC1_OUTPUTS * fc1_weight);
  training t = open_training(small_training(tested, images, images));
  float *weights = calloc(RL_PARAMETERS, sizeof *weights);
  fill_tensor(weights, RL_CONV1_B, RL_CONV1_CHANNELS, (float)pooled1);
  fill_tensor(weights, RL_CONV2_W, rl_tensor_sizes[RL_CONV2_W], (float)(1 / (9 * RL_CONV1_CHANNELS * pooled1)));
  fill_tensor(weights, RL_FC1_W, rl_tensor_sizes[RL_FC1_W], (float)fc1_weight);
  fill_tensor(weights, RL_FC2_W, RL_FC1_OUTPUTS, (float)fc2_weight);
  must(t.train->set_parameters(t.train, weights, e));
  const uint64_t before = hash_parameters(&t);
  run_epoch(&t);
  const bool skipped = hash_parameters(&t) == before;
  free(weights);
  close_training(&t);
  return skipped;
}

/* In TF32, `persistent` adds up the gradients of conv2's weights for every 64th image of a step and stores these sums as FP16
 * numbers below 2⁸ (tile_tensor_float.cuh). */
static void test_large_gradient_of_conv2_skips_the_step(void **state) {
  (void)state;
  for (int which = 0; which < engine_case_count; which++) {
    const engine_case tested = engine_cases[which];
    if (tested.precision == RL_FP16) continue; /* has a loss scale */
    const bool has_limit = strcmp(tested.engine, "persistent") == 0 && tested.precision == RL_TF32;
    assert_false(skips_conv2_gradient(tested, batch, 250));
    assert_true(skips_conv2_gradient(tested, batch, 262) == has_limit);
    if (!has_limit) continue;
    assert_false(skips_conv2_gradient(tested, 64 + batch, 125)); /* two images have up to 250 */
    assert_true(skips_conv2_gradient(tested, 64 + batch, 131));
  }
}

static void test_auto_chooses_the_fastest_engine(void **state) {
  (void)state;
  static const struct {
    int precision;
    int64_t batch;
    const char *engine;
  } cases[] = {{RL_FP32, 64, "persistent"},  {RL_TF32, 64, "persistent"},   {RL_FP16, 64, "persistent"},
               {RL_FP32, 512, "persistent"}, {RL_TF32, 512, "persistent"},  {RL_FP16, 128, "persistent"},
               {RL_FP16, 256, "fused"},      {RL_FP32, 4096, "persistent"}, {RL_TF32, 4096, "persistent"},
               {RL_FP16, 4096, "fused"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_train_params params = small_training((engine_case){"auto", cases[i].precision}, cases[i].batch, 0);
    assert_string_equal(rl_engine_find("mnist_cnn", "auto", &params, NULL)->description->name, cases[i].engine);
  }
}

static bool cancel(void *context) {
  (*(int *)context)++;
  return true;
}

static void test_cancellation(void **state) {
  (void)state;
  training t = open_training(small_training(engine_cases[0], 64, 1000));
  int polls = 0;
  rl_observer observer = {.context = &polls, .cancelled = cancel};
  rl_elapsed elapsed = {0};
  rl_error err = {0};
  assert_int_equal(device->ops->run(device, t.epoch, &observer, &elapsed, &err), -1);
  assert_int_equal(err.domain, RL_ERRNO);
  assert_int_equal(err.code, ECANCELED);
  assert_int_equal(polls, 1);
  run_epoch(&t); /* the device still works */
  close_training(&t);
}

typedef struct progress {
  uint64_t done, total, calls;
} progress;

static void record_progress(void *context, uint64_t done, uint64_t total) {
  progress *last = context;
  assert_true(done >= last->done && done <= total);
  *last = (progress){done, total, last->calls + 1};
}

static void test_progress_ends_at_the_end(void **state) {
  (void)state;
  training t = open_training(small_training((engine_case){"fused", RL_FP16}, 1, 1500));
  progress last = {0};
  rl_observer observer = {.context = &last, .progress = record_progress};
  rl_elapsed elapsed = {0};
  must(device->ops->run(device, t.epoch, &observer, &elapsed, e));
  assert_int_equal(last.done, 1501); /* the shuffle and 1500 steps of one image */
  assert_int_equal(last.total, 1501);
  assert_true(last.calls > 2);
  close_training(&t);
}

static void test_learns_mnist(void **state) {
  (void)state;
  enum { SEEDS = 3, EPOCHS = 5 };
  for (int which = 0; which < engine_case_count; which++) {
    double after_one = 0, after_five = 0;
    for (int seed = 1; seed <= SEEDS; seed++) {
      rl_train_params params = small_training(engine_cases[which], 64, 0);
      params.seed = seed;
      training t = open_training(params);
      if (strcmp(t.instance->dataset, "mnist") != 0) {
        close_training(&t);
        skip();
      }
      rl_iteration_results report = {0};
      for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        rl_elapsed elapsed = {0};
        run_epoch(&t);
        must(device->ops->run(device, t.test, NULL, &elapsed, e));
        must(t.instance->ops->read_results(t.instance, &report, e));
        if (epoch == 1) after_one += report.test_accuracy_ratio / SEEDS;
      }
      after_five += report.test_accuracy_ratio / SEEDS;
      close_training(&t);
    }
    printf("  %s, %s: accuracy %.4f after 1 epoch, %.4f after %d (mean of %d seeds)\n", engine_cases[which].engine,
           rl_precision_names[engine_cases[which].precision], after_one, after_five, EPOCHS, SEEDS);
    assert_true(after_one >= 0.975 && after_five >= 0.988);
  }
}

int main(int count, char **arguments) {
  char cache[] = "/tmp/rooflined-choices-XXXXXX"; /* an empty cache; the choices that the engines store there make later instances
                                                     deterministic */
  if (mkdtemp(cache)) setenv("ROOFLINED_CACHE_DIR", cache, 1);
  need_gpu(count > 1 ? arguments[1] : NULL);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_seed_same_bits),
                                     cmocka_unit_test(test_overflow_skips_the_step),
                                     cmocka_unit_test(test_large_gradient_of_conv2_skips_the_step),
                                     cmocka_unit_test(test_the_tail_fits_into_the_buffers),
                                     cmocka_unit_test(test_auto_chooses_the_fastest_engine),
                                     cmocka_unit_test(test_cancellation),
                                     cmocka_unit_test(test_progress_ends_at_the_end),
                                     cmocka_unit_test(test_learns_mnist)};
  const struct CMUnitTest emulated[] = {cmocka_unit_test(test_overflow_skips_the_step),
                                        cmocka_unit_test(test_large_gradient_of_conv2_skips_the_step),
                                        cmocka_unit_test(test_the_tail_fits_into_the_buffers)};
  if (count > 2) batch = atoi(arguments[2]);
  int failed = count > 2 ? cmocka_run_group_tests(emulated, NULL, NULL) : cmocka_run_group_tests(tests, NULL, NULL);
  device->ops->close(device);
  return failed;
}
