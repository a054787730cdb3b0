/* Tests the CPU engines as instances: batch and tail sizes, determinism, saved states, loss scaling, refused parameters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "engines.h"
#include "train/direct.h"

enum { TRAIN_DIGITS = 700, TEST_DIGITS = 150 };

static rl_device *device;
static const char *engines[4] = {"reference", "blas"};          /* main appends "fused" if the CPU supports it */
static const char *const *const threaded_engines = engines + 1; /* every engine except the reference */
static float weights[RL_PARAMETERS], other_weights[RL_PARAMETERS];

static void get_losses(rl_train_instance *instance, float *losses) {
  rl_error err = {0};
  assert_ok(instance->losses(instance, losses, &err), &err);
}

static void get_weights(rl_train_instance *instance, float *values) {
  rl_error err = {0};
  assert_ok(instance->parameters(instance, values, &err), &err);
}

static void check_steps_and_tail(const char *engine) {
  static const struct {
    uint32_t batch, images, steps, tail; /* images: 0: all */
  } cases[] = {{1, 3, 3, 0},  {64, 128, 2, 0}, {64, 150, 3, 22}, {33, 34, 2, 1}, {512, 100, 1, 100}, {8192, 0, 1, TRAIN_DIGITS},
               {700, 0, 1, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_train_params params = small_params(RL_FP32, cases[i].batch, cases[i].images);
    rl_train_instance *instance = open_train(engine, device, &params);
    uint32_t images = cases[i].images ? cases[i].images : TRAIN_DIGITS;
    assert_int_equal(instance->images, images);
    assert_int_equal(instance->steps, cases[i].steps);
    assert_int_equal(instance->tail, cases[i].tail);
    assert_int_equal(instance->base.partial_dataset, cases[i].images != 0);
    assert_int_equal(instance->test_images, images < TEST_DIGITS ? images : TEST_DIGITS);
    assert_string_equal(instance->base.dataset, "custom");
    run_epoch(instance);
    run_sequence_list(instance, &instance->base.evaluation);
    rl_iteration_results results = read_train_results(instance);
    assert_true(results.images == images && isfinite(results.train_loss) && isfinite(results.test_loss));
    assert_true(results.test_accuracy_ratio >= 0 && results.test_accuracy_ratio <= 1);
    assert_true(isnan(results.loss_scale) && results.skipped_steps == 0);
    close_train(instance);
  }
}

static void steps_and_tail_follow_from_the_batch_size(void **state) {
  (void)state;
  for (const char *const *engine = threaded_engines; *engine != NULL; engine++) check_steps_and_tail(*engine);
}

/* With a negligible learning rate, the mean of the steps' losses, weighted by their numbers of images, is the same for every
 * batch size if every image is in exactly one step, the tail included. */
static void check_that_every_image_is_in_one_step(const char *engine) {
  static const uint32_t batches[] = {150, 64, 7};
  double means[3];
  for (int k = 0; k < 3; k++) {
    rl_train_params params = small_params(RL_FP32, batches[k], 150);
    params.learning_rate = 1e-12;
    rl_train_instance *instance = open_train(engine, device, &params);
    float losses[150], before[150];
    run_epoch(instance);
    get_losses(instance, before);
    run_epoch(instance); /* in another order, so that batches and their losses differ */
    get_losses(instance, losses);
    for (uint32_t i = 0; batches[k] < 150 && i + 1 < instance->steps; i++) assert_true(fabsf(losses[i] - before[i]) > 1e-7f);
    means[k] = 0;
    for (uint32_t i = 0; i < instance->steps; i++)
      means[k] += losses[i] * (instance->tail && i + 1 == instance->steps ? instance->tail : batches[k]) / 150.0;
    close_train(instance);
  }
  assert_true(fabs(means[1] / means[0] - 1) < 1e-6 && fabs(means[2] / means[0] - 1) < 1e-6);
}

static void every_image_is_in_exactly_one_step(void **state) {
  (void)state;
  for (const char *const *engine = threaded_engines; *engine != NULL; engine++) check_that_every_image_is_in_one_step(*engine);
}

static void check_that_losses_do_not_depend_on_threads(const char *engine) {
  enum { STEPS = 5 /* the last one is the tail */ };
  int threads = device->threads;
  for (int precision = RL_FP32; precision <= RL_FP16; precision += RL_FP16 - RL_FP32) {
    float curves[3][2][STEPS];
    for (int run = 0; run < 3; run++) {
      device->threads = run + 1;
      rl_train_params params = small_params(precision, 64, 64 * STEPS - 14);
      rl_train_instance *instance = open_train(engine, device, &params);
      assert_true(instance->base.deterministic);
      for (int epoch = 0; epoch < 2; epoch++) {
        run_epoch(instance);
        get_losses(instance, curves[run][epoch]);
      }
      if (run == 0) { /* after a reset, training repeats */
        rl_error err = {0};
        assert_ok(instance->base.ops->reset(&instance->base, &err), &err);
        run_epoch(instance);
        float losses_after_reset[STEPS];
        get_losses(instance, losses_after_reset);
        assert_memory_equal(losses_after_reset, curves[0][0], sizeof losses_after_reset);
      }
      close_train(instance);
    }
    assert_memory_equal(curves[1], curves[0], sizeof curves[0]);
    assert_memory_equal(curves[2], curves[0], sizeof curves[0]);
    assert_memory_not_equal(curves[0][0], curves[0][1], sizeof curves[0][0]);
  }
  device->threads = threads;
}

static void losses_do_not_depend_on_the_number_of_threads(void **state) {
  (void)state;
  for (const char *const *engine = threaded_engines; *engine != NULL; engine++)
    check_that_losses_do_not_depend_on_threads(*engine);
}

static void restore_repeats_an_epoch(void **state) {
  (void)state;
  for (const char **engine = engines; *engine != NULL; engine++)
    for (int precision = RL_FP32; precision <= RL_FP16; precision += RL_FP16 - RL_FP32) {
      rl_train_params params = small_params(precision, 8, 20);
      rl_train_instance *instance = open_train(*engine, device, &params);
      rl_error err = {0};
      float first[3], second[3];
      assert_int_equal(instance->base.ops->restore(&instance->base, &err), -1);
      run_epoch(instance);
      assert_ok(instance->base.ops->save(&instance->base, &err), &err);
      run_epoch(instance);
      get_losses(instance, first);
      get_weights(instance, weights);
      assert_ok(instance->base.ops->restore(&instance->base, &err), &err);
      run_epoch(instance);
      get_losses(instance, second);
      get_weights(instance, other_weights);
      assert_memory_equal(first, second, sizeof first);
      assert_memory_equal(weights, other_weights, sizeof weights);
      close_train(instance);
    }
}

static void overflow_halves_the_loss_scale_and_skips_the_step(void **state) {
  (void)state;
  for (const char **engine = engines; *engine != NULL; engine++) {
    rl_train_params params = small_params(RL_FP16, 8, 24);
    rl_train_instance *instance = open_train(*engine, device, &params);
    rl_error err = {0};
    get_weights(instance, weights);
    for (int i = 0; i < RL_PARAMETERS; i++) weights[i] *= 3000; /* values overflow in FP16 */
    assert_ok(instance->set_parameters(instance, weights, &err), &err);
    run_epoch(instance);
    rl_iteration_results results = read_train_results(instance);
    assert_true(results.skipped_steps == 3 && results.loss_scale == 65536 / 8);
    get_weights(instance, other_weights);
    assert_memory_equal(weights, other_weights, sizeof weights);
    assert_ok(instance->base.ops->reset(&instance->base, &err), &err); /* training works again afterwards */
    run_epoch(instance);
    results = read_train_results(instance);
    assert_true(results.skipped_steps < 3 && isfinite(results.train_loss));
    get_weights(instance, other_weights);
    assert_memory_not_equal(weights, other_weights, sizeof weights);
    close_train(instance);
  }
}

static void check_fp16_activation_bytes(const char *engine) {
  uint64_t bytes[2];
  for (int k = 0; k < 2; k++) {
    rl_train_params params = small_params(k ? RL_FP16 : RL_FP32, 64, 100);
    rl_train_instance *instance = open_train(engine, device, &params);
    bytes[k] = device->memory_usage.bytes[RL_MEMORY_ACTIVATIONS];
    close_train(instance);
    assert_int_equal(device->memory_usage.total_bytes, 0);
  }
  assert_true(bytes[1] < 0.7 * bytes[0]);
}

static void fp16_halves_activation_bytes(void **state) {
  (void)state;
  for (const char *const *engine = threaded_engines; *engine != NULL; engine++) check_fp16_activation_bytes(*engine);
}

static void errors_name_the_field(void **state) {
  (void)state;
  rl_train_params params = small_params(RL_TF32, 64, 100);
  rl_error err = {0};
  assert_null(rl_engine_find("mnist_cnn", "auto", &params, &err));
  assert_string_equal(err.json_pointer, "/precision");
  params = small_params(RL_FP32, 64, 100);
  assert_null(rl_engine_find("mnist_cnn", "cudnn", &params, &err));
  assert_string_equal(err.json_pointer, "/engine");
  bool fused = engines[2] != NULL;
  assert_string_equal(rl_engine_find("mnist_cnn", "auto", &params, &err)->description->name, fused ? "fused" : "blas");
  assert_int_equal(rl_engine_find("mnist_cnn", "fused", &params, &err) != NULL, fused);
  if (!fused) assert_string_equal(err.json_pointer, "/engine");
  strcpy(params.dataset, "flowers");
  rl_instance *instance = NULL;
  assert_int_equal(rl_engine_find("mnist_cnn", "blas", &params, &err)->open(device, &params, &instance, &err), -1);
  assert_string_equal(err.json_pointer, "/dataset");
  assert_null(instance);
  assert_int_equal(device->memory_usage.total_bytes, 0);
}

int main(void) {
  rl_error err = {0};
  device = rl_device_open(0, &err);
  if (device == NULL) return 1;
  const rl_direct *tables[RL_DIRECT_TABLES];
  if (rl_direct_list_usable(tables) > 0) engines[2] = "fused";
  char folder[64];
  use_few_digits(folder, TRAIN_DIGITS, TEST_DIGITS);
  const struct CMUnitTest tests[] = {cmocka_unit_test(steps_and_tail_follow_from_the_batch_size),
                                     cmocka_unit_test(every_image_is_in_exactly_one_step),
                                     cmocka_unit_test(losses_do_not_depend_on_the_number_of_threads),
                                     cmocka_unit_test(restore_repeats_an_epoch),
                                     cmocka_unit_test(overflow_halves_the_loss_scale_and_skips_the_step),
                                     cmocka_unit_test(fp16_halves_activation_bytes),
                                     cmocka_unit_test(errors_name_the_field)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->ops->close(device);
  remove_digits(folder);
  return failed;
}
