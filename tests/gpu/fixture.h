/* Helpers for the tests that run on a GPU or on the emulator of tests/simt: they open the device, open training engines, and
 * skip the test on machines without a GPU. */
#ifndef RL_TESTS_GPU_FIXTURE_H
#define RL_TESTS_GPU_FIXTURE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "train/view.h"

static rl_device *device; /* opened by need_gpu */

typedef struct training {
  rl_instance *instance;
  rl_train_instance *train;    /* `instance` under its own type */
  rl_executable *epoch, *test; /* execute one epoch, and the evaluation on the test images */
  uint64_t bytes_before;       /* bytes of device memory in use before the instance was opened */
} training;

/* Evaluates CALL, whose last argument must be written as `e`, an error that the macro declares. Fails the test with the error's
 * message when CALL returns a negative number. */
#define must(CALL)                                                 \
  do {                                                             \
    rl_error must_error = {0}, *e = &must_error;                   \
    if ((CALL) < 0) fail_msg("%s: %s", #CALL, must_error.message); \
    (void)e;                                                       \
  } while (0)

typedef struct engine_case {
  const char *engine;
  int precision;
} engine_case;
/* The training engines to test, each with every precision that it supports on this device. need_gpu fills the table. */
enum { MAX_ENGINE_CASES = 24 };
static engine_case engine_cases[MAX_ENGINE_CASES];
static int engine_case_count;

/* Returns default parameters for the engine case, with `batch` images per step and the first `images` of the data set. */
static inline rl_train_params small_training(engine_case tested, int64_t batch, int64_t images) {
  rl_train_params params;
  rl_mnist_cnn.defaults(&params);
  params.precision = tested.precision;
  snprintf(params.engine, sizeof params.engine, "%s", tested.engine);
  params.batch_size = batch;
  params.max_images = images;
  return params;
}

/* Opens the engine that `params` names and instantiates its epoch and evaluation. With `exposed`, the engine also stores the
 * tensors of rl_training_read_tensors that it would otherwise keep on chip. */
static inline training open_training_as(rl_train_params params, bool exposed) {
  training t = {.bytes_before = device->memory_usage.total_bytes};
  rl_error err = {0};
  const rl_engine *engine = rl_engine_find("mnist_cnn", params.engine, &params, &err);
  if (!engine) fail_msg("%s", err.message);
  must(engine->open(device, &params, &t.instance, e));
  t.train = (rl_train_instance *)t.instance;
  if (exposed) must(rl_training_expose_tensors(t.train, e));
  must(device->ops->instantiate(device, &t.instance->iteration, &t.epoch, e));
  must(device->ops->instantiate(device, &t.instance->evaluation, &t.test, e));
  return t;
}

static inline training open_training(rl_train_params params) { return open_training_as(params, false); }

/* Closes the instance and asserts that it freed all of its device memory. */
static inline void close_training(training *t) {
  device->ops->free_executable(device, t->epoch);
  device->ops->free_executable(device, t->test);
  t->instance->ops->close(t->instance);
  assert_int_equal(device->memory_usage.total_bytes, t->bytes_before);
}

static inline void run_epoch(training *t) {
  rl_elapsed elapsed = {0};
  must(device->ops->run(device, t->epoch, NULL, &elapsed, e));
  assert_true(elapsed.device_ms > 0 && elapsed.host_ms > 0 && elapsed.stream_operations > 0);
}

/* Adds to engine_cases the engine `wanted_name`, or all engines when it is NULL. The emulator must support every precision of an
 * engine: otherwise a test of a kernel that does not fit, for example into shared memory, would test only the others. */
static inline void list_engine_cases(const char *wanted_name) {
  for (const rl_engine *const *each = rl_engines; *each; each++) {
    const bool wanted = strcmp((*each)->description->workload, "mnist_cnn") == 0 &&
                        (!wanted_name || strcmp((*each)->description->name, wanted_name) == 0);
    for (int precision = RL_FP32; precision <= RL_FP16 && wanted; precision++) {
      const engine_case candidate = {(*each)->description->name, precision};
      const rl_train_params params = small_training(candidate, 64, 0);
      rl_error err = {0};
      if (rl_engine_supports(*each, &params, &err) == 0 && engine_case_count < MAX_ENGINE_CASES)
        engine_cases[engine_case_count++] = candidate;
#ifdef RL_EMULATED
      else {
        fprintf(stderr, "the emulator can't run %s in %s: %s\n", candidate.engine, rl_precision_names[precision], err.message);
        exit(1);
      }
#endif
    }
  }
}

/* Opens the GPU and fills engine_cases with one engine, or with all when `engine` is NULL. Ends the program with status 77 and
 * prints the reason when there is no GPU or no such engine. */
static inline void need_gpu(const char *engine) {
  rl_error err = {0};
  if (rl_device_count(&err) == 0) {
    printf("skipped: %s\n", err.message);
    exit(77);
  }
  device = rl_device_open(0, &err);
  if (!device) {
    fprintf(stderr, "%s\n", err.message);
    exit(1);
  }
  list_engine_cases(engine);
  if (engine_case_count == 0) {
    printf("skipped: this device has no engine %s\n", engine ? engine : "for training");
    exit(77);
  }
}

#endif
