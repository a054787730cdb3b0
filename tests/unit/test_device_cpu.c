/* Tests the CPU device: memory by purpose, order and number of launches, cancellation, samples, properties. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/json.h"
#include "workload.h"

const rl_engine *const rl_engines[] = {NULL};

static char launch_order[64]; /* a letter for each executed launch */

static int append_letter(void *arg, rl_stream stream, rl_error *err) {
  assert_null(stream);
  if (*(const char *)arg == '!') return rl_fail(err, RL_ERRNO, EIO, "broke");
  strncat(launch_order, arg, 1);
  return 0;
}

static const rl_launch step[] = {{"first", "data", append_letter, "a"}, {"second", "forward", append_letter, "b"}};
static const rl_launch tail[] = {{"last", "data", append_letter, "z"}};
static const rl_sequence sequences[] = {{"step", step, 2, 3}, {"never", tail, 1, 0}, {"tail", tail, 1, 1}};
static const rl_sequence_list sequence_list = {"epoch", sequences, 3};

static int open_device(void **state) {
  setenv("ROOFLINED_THREADS", "1", 1);
  *state = rl_device_open(0, NULL);
  launch_order[0] = '\0';
  return *state ? 0 : -1;
}
static int close_device(void **state) {
  rl_device *device = *state;
  device->ops->close(device);
  return 0;
}

static void memory_is_aligned_and_counted(void **state) {
  rl_device *device = *state;
  void *a, *b, *none;
  assert_int_equal(device->ops->allocate(device, RL_MEMORY_WEIGHTS, 1000, &a, NULL), 0);
  assert_int_equal(device->ops->allocate(device, RL_MEMORY_DATASET, 1, &b, NULL), 0);
  assert_int_equal(((uintptr_t)a | (uintptr_t)b) % 256, 0);
  memset(a, 1, 1000);
  assert_int_equal(device->memory_usage.bytes[RL_MEMORY_WEIGHTS], 1000);
  assert_int_equal(device->memory_usage.total_bytes, 1001);
  device->ops->release(device, a);
  device->ops->release(device, NULL);
  assert_int_equal(device->memory_usage.total_bytes, 1);
  assert_int_equal(device->memory_usage.peak_total_bytes, 1001);
  assert_int_equal(device->memory_usage.peak_bytes[RL_MEMORY_WEIGHTS], 1000);
  rl_error err = {0};
  assert_int_equal(device->ops->allocate(device, RL_MEMORY_DATASET, SIZE_MAX - 8, &none, &err), -1);
  assert_int_equal(err.code, ENOMEM);
  assert_int_equal(device->memory_usage.total_bytes, 1);
  device->ops->release(device, b);
}

typedef struct observer_log {
  int spans, cancel_calls, cancel_at; /* cancel_at: cancels in this call; 0: never */
  uint64_t done, total;
} observer_log;

static bool cancelled(void *context) {
  observer_log *log = context;
  return ++log->cancel_calls == log->cancel_at;
}
static void on_progress(void *context, uint64_t done, uint64_t total) {
  observer_log *log = context;
  assert_int_equal(done, log->done + 1);
  log->done = done, log->total = total;
}
static void on_span(void *context, const rl_span *span) {
  observer_log *log = context;
  assert_true(span->end_ns >= span->start_ns && span->launch->name);
  log->spans++;
}

static void launches_run_in_order_and_repeat(void **state) {
  rl_device *device = *state;
  rl_executable *executable;
  rl_elapsed elapsed;
  observer_log log = {0};
  rl_observer observer = {&log, cancelled, on_progress, on_span};
  assert_int_equal(device->ops->instantiate(device, &sequence_list, &executable, NULL), 0);
  assert_int_equal(device->ops->run(device, executable, &observer, &elapsed, NULL), 0);
  assert_string_equal(launch_order, "abababz");
  assert_int_equal(elapsed.stream_operations, 7);
  assert_true(elapsed.host_ms >= 0 && elapsed.device_ms == elapsed.host_ms);
  assert_int_equal(log.spans, 7);
  assert_int_equal(log.done, 4), assert_int_equal(log.total, 4);
  assert_int_equal(device->ops->run(device, executable, NULL, &elapsed, NULL), 0); /* an observer is optional */
  device->ops->free_executable(device, executable);
}

static void cancelling_stops_before_the_next_launch(void **state) {
  rl_device *device = *state;
  rl_elapsed elapsed = {.stream_operations = 99};
  rl_error err = {0};
  observer_log log = {.cancel_at = 4};
  rl_observer observer = {.context = &log, .cancelled = cancelled};
  assert_int_equal(device->ops->run_eager(device, &sequence_list, &observer, &elapsed, &err), -1);
  assert_int_equal(err.domain, RL_ERRNO), assert_int_equal(err.code, ECANCELED);
  assert_string_equal(launch_order, "aba");
  assert_int_equal(elapsed.stream_operations, 99); /* untouched on failure */
}

static void a_failing_launch_is_named(void **state) {
  rl_device *device = *state;
  const rl_launch broken[] = {{"conv", "forward", append_letter, "!"}};
  const rl_sequence once[] = {{"step", broken, 1, 1}};
  const rl_sequence_list bad = {"epoch", once, 1};
  rl_elapsed elapsed;
  rl_error err = {0};
  assert_int_equal(device->ops->run_eager(device, &bad, NULL, &elapsed, &err), -1);
  assert_string_equal(err.message, "conv: broke");
}

static void properties_describe_the_host(void **state) {
  (void)state;
  char *text = rl_device_properties(0, NULL);
  cJSON *properties = rl_json_parse(text, strlen(text), NULL);
  assert_non_null(properties);
  const cJSON *all_caches = cJSON_GetObjectItem(properties, "cache_bytes"),
              *private_cache = cJSON_GetObjectItem(properties, "private_cache_bytes");
  assert_true((cJSON_IsNull(all_caches) && cJSON_IsNull(private_cache)) ||
              cJSON_GetNumberValue(all_caches) > cJSON_GetNumberValue(private_cache));
  assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(properties, "memory_bytes")) > 1e8);
  assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(properties, "threads")), 1);
  assert_true(strlen(cJSON_GetStringValue(cJSON_GetObjectItem(properties, "openblas"))) > 0);
  assert_non_null(cJSON_GetObjectItem(properties, "isa"));
  cJSON_Delete(properties);
  free(text);
  rl_error err = {0};
  assert_null(rl_device_properties(1, &err));
  assert_null(rl_device_open(1, &err));
}

static void without_a_thread_count_all_cores_are_used(void **state) {
  (void)state;
  setenv("ROOFLINED_THREADS", "0", 1);
  rl_device *zero = rl_device_open(0, NULL);
  unsetenv("ROOFLINED_THREADS");
  rl_device *unset = rl_device_open(0, NULL);
  assert_non_null(zero);
  assert_int_equal(zero->threads, unset->threads);
  zero->ops->close(zero);
  unset->ops->close(unset);
  setenv("ROOFLINED_THREADS", "1", 1);
}

static void an_invalid_thread_count_is_refused(void **state) {
  (void)state;
  static const char *const bad[] = {"-3", "two", "2x", "99999"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    rl_error err = {0};
    setenv("ROOFLINED_THREADS", bad[i], 1);
    assert_null(rl_device_open(0, &err));
    assert_int_equal(err.domain, RL_INPUT);
  }
  setenv("ROOFLINED_THREADS", "1", 1);
}

static int busy_wait(void *arg, rl_stream stream, rl_error *err) {
  (void)stream, (void)err;
  for (int64_t until = rl_monotonic_ns() + *(const int64_t *)arg; rl_monotonic_ns() < until;) continue;
  return 0;
}

static void a_sample_is_the_time_of_one_repeat(void **state) {
  rl_device *device = *state;
  int64_t launch_ns = 40000;
  const rl_launch launches[] = {{"one", "kernel", busy_wait, &launch_ns}, {"two", "kernel", busy_wait, &launch_ns}};
  const rl_sequence sequence = {"launch", launches, 2, 7};
  for (int cache = RL_CACHE_COLD; cache <= RL_CACHE_WARM; cache++) {
    double us[5] = {0}, shortest_us = INFINITY;
    assert_int_equal(device->ops->sample(device, &sequence, (rl_cache_state)cache, 5, NULL, us, NULL), 0);
    for (int i = 0; i < 5; i++) shortest_us = us[i] < shortest_us ? us[i] : shortest_us;
    assert_true(shortest_us >= 80 && shortest_us < 800); /* two launches of 40 us */
  }
}

static void the_restore_launch_runs_before_each_repeat(void **state) {
  rl_device *device = *state;
  const rl_launch restore = {"restore", "data", append_letter, "r"};
  const rl_sequence restored = {"step", step, 2, 3, &restore};
  const rl_sequence_list whole = {"epoch", &restored, 1};
  double us[2];
  rl_elapsed elapsed;
  observer_log log = {0};
  rl_observer observer = {&log, cancelled, NULL, on_span};
  assert_int_equal(device->ops->run_eager(device, &whole, &observer, &elapsed, NULL), 0);
  assert_string_equal(launch_order, "rabrabrab");
  assert_true(elapsed.stream_operations == 6 && log.spans == 6);
  for (int cache = RL_CACHE_COLD; cache <= RL_CACHE_WARM; cache++) {
    launch_order[0] = '\0';
    assert_int_equal(device->ops->sample(device, &restored, (rl_cache_state)cache, 2, NULL, us, NULL), 0);
    assert_string_equal(launch_order, "rabrabrab"); /* one unmeasured run and two samples */
  }
  const rl_launch broken = {"restore", "data", append_letter, "!"};
  const rl_sequence breaks = {"step", step, 2, 3, &broken};
  rl_error err = {0};
  assert_int_equal(device->ops->sample(device, &breaks, RL_CACHE_WARM, 2, NULL, us, &err), -1);
  assert_string_equal(err.message, "restore: broke");
}

static void the_time_of_the_restore_launch_is_not_counted(void **state) {
  rl_device *device = *state;
  int64_t long_ns = 5000000, short_ns = 40000;
  const rl_launch restore = {"restore", "data", busy_wait, &long_ns}, one = {"one", "kernel", busy_wait, &short_ns};
  const rl_sequence sequence = {"launch", &one, 1, 7, &restore};
  for (int cache = RL_CACHE_COLD; cache <= RL_CACHE_WARM; cache++) {
    double us[5], shortest_us = INFINITY;
    assert_int_equal(device->ops->sample(device, &sequence, (rl_cache_state)cache, 5, NULL, us, NULL), 0);
    for (int i = 0; i < 5; i++) shortest_us = us[i] < shortest_us ? us[i] : shortest_us;
    assert_true(shortest_us >= 40 && shortest_us < 2000);
  }
}

static void a_pause_precedes_each_sample(void **state) {
  rl_device *device = *state;
  enum { SAMPLES = 3, PAUSE_MS = 20 };
  int64_t launch_ns = 40000;
  const rl_launch one = {"one", "kernel", busy_wait, &launch_ns};
  const rl_sequence sequence = {.name = "launch", .launches = &one, .launch_count = 1, .repeat = 7, .pause_ms = PAUSE_MS};
  for (int cache = RL_CACHE_COLD; cache <= RL_CACHE_WARM; cache++) {
    double us[SAMPLES];
    const int64_t begin_ns = rl_monotonic_ns();
    assert_int_equal(device->ops->sample(device, &sequence, (rl_cache_state)cache, SAMPLES, NULL, us, NULL), 0);
    assert_true(rl_monotonic_ns() - begin_ns >= INT64_C(1000000) * SAMPLES * PAUSE_MS);
    assert_true(fmin(us[0], fmin(us[1], us[2])) < 1e3 * PAUSE_MS);
  }
}

static bool cancel_third_call(void *context) { return ++*(int *)context == 3; }

static void sampling_can_fail_and_be_cancelled(void **state) {
  rl_device *device = *state;
  const rl_launch broken = {"third", "kernel", append_letter, "!"};
  const rl_sequence breaks = {"launch", &broken, 1, 1}, works = {"launch", tail, 1, 1};
  int calls = 0;
  rl_observer observer = {.context = &calls, .cancelled = cancel_third_call};
  double us[9];
  rl_error err = {0};
  assert_int_equal(device->ops->sample(device, &breaks, RL_CACHE_COLD, 9, NULL, us, &err), -1);
  assert_string_equal(err.message, "third: broke");
  assert_int_equal(device->ops->sample(device, &works, RL_CACHE_COLD, 9, &observer, us, &err), -1);
  assert_true(err.domain == RL_ERRNO && err.code == ECANCELED);
  assert_int_equal(strlen(launch_order), 3); /* one unmeasured run and two samples */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(memory_is_aligned_and_counted, open_device, close_device),
      cmocka_unit_test_setup_teardown(launches_run_in_order_and_repeat, open_device, close_device),
      cmocka_unit_test_setup_teardown(cancelling_stops_before_the_next_launch, open_device, close_device),
      cmocka_unit_test_setup_teardown(a_failing_launch_is_named, open_device, close_device),
      cmocka_unit_test_setup_teardown(properties_describe_the_host, open_device, close_device),
      cmocka_unit_test_setup_teardown(a_sample_is_the_time_of_one_repeat, open_device, close_device),
      cmocka_unit_test_setup_teardown(a_pause_precedes_each_sample, open_device, close_device),
      cmocka_unit_test_setup_teardown(the_restore_launch_runs_before_each_repeat, open_device, close_device),
      cmocka_unit_test_setup_teardown(the_time_of_the_restore_launch_is_not_counted, open_device, close_device),
      cmocka_unit_test_setup_teardown(sampling_can_fail_and_be_cancelled, open_device, close_device),
      cmocka_unit_test(without_a_thread_count_all_cores_are_used),
      cmocka_unit_test(an_invalid_thread_count_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
