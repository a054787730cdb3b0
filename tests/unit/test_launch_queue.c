/* Tests the depth of the launch queue: first on traces where it is known, then on random traces, where the test counts the
 * waiting operations at every nanosecond. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analyze/launch_queue.h"
#include "analyze/rules.h"
#include "model/records.h"
#include "random_numbers.h"

enum { KERNEL_NAME, LAUNCH, NAME_COUNT };
static const char *const names[NAME_COUNT] = {"kernel", "cudaLaunchKernel_v7000"};

#define KERNEL(start, end, correlation_, stream_)                                                                         \
  {                                                                                                                       \
    .kind = RL_ACTIVITY_KERNEL, .name = KERNEL_NAME, .start_ns = (start), .end_ns = (end), .correlation = (correlation_), \
    .stream = (stream_)                                                                                                   \
  }
#define CALL(start, end, correlation_) \
  { .kind = RL_ACTIVITY_RUNTIME, .name = LAUNCH, .start_ns = (start), .end_ns = (end), .correlation = (correlation_) }

typedef struct analysis {
  rl_trace_events events;
  rl_trace_index index;
  rl_time_classes classes;
  rl_launch_queue queue;
} analysis;

static void analyze_trace(const rl_trace_event *items, size_t count, const char *incomplete_reason, analysis *results) {
  rl_error err = {0};
  results->events = (rl_trace_events){items, count, names, NAME_COUNT, incomplete_reason};
  assert_return_code(rl_trace_index_build(&results->events, &results->index, &err), 0);
  assert_return_code(rl_time_classes_compute(&results->index, NULL, &results->classes, &err), 0);
  assert_return_code(rl_launch_queue_compute(&results->index, &results->classes, &results->queue, &err), 0);
}

static void clear_analysis(analysis *results) {
  rl_launch_queue_clear(&results->queue);
  rl_time_classes_clear(&results->classes);
  rl_trace_index_clear(&results->index);
}

static void a_host_that_is_ahead_fills_the_queue(void **state) {
  (void)state;
  const rl_trace_event items[] = {CALL(-20, -10, 1), KERNEL(0, 100, 1, 7),   CALL(10, 20, 2),       KERNEL(100, 150, 2, 7),
                                  CALL(20, 30, 3),   KERNEL(150, 200, 3, 7), KERNEL(160, 200, 9, 8)};
  analysis results;
  analyze_trace(items, sizeof items / sizeof *items, NULL, &results);
  assert_int_equal(results.queue.total.operation_count, 3);
  assert_int_equal(results.queue.unmatched_operation_count, 1);
  assert_int_equal(results.queue.total.minimum, 0);
  assert_int_equal(results.queue.total.median, 1);
  assert_int_equal(results.queue.total.maximum, 2);
  assert_int_equal(results.queue.total.empty_ns, 70);
  assert_int_equal(results.queue.empty_idle_ns, 0);
  assert_int_equal(results.queue.stream_count, 2);
  assert_int_equal(results.queue.streams[0].stream, 7);
  assert_int_equal(results.queue.streams[0].maximum, 2);
  assert_int_equal(results.queue.streams[1].maximum, 0);
  assert_int_equal(results.queue.streams[1].empty_ns, 200);
  assert_null(rl_launch_queue_reason(&results.index, &results.queue));
  clear_analysis(&results);
}

/* The device is idle from 100 to 160 ns. The queue is empty until the launch call returns at 150 ns. */
static void an_empty_queue_of_an_idle_device_is_counted(void **state) {
  (void)state;
  const rl_trace_event items[] = {CALL(-20, -10, 1), KERNEL(0, 100, 1, 7), CALL(140, 150, 2), KERNEL(160, 200, 2, 7)};
  analysis results;
  rl_metric_value metrics[RL_QUEUE_METRIC_COUNT];
  analyze_trace(items, 4, NULL, &results);
  assert_int_equal(results.queue.empty_idle_ns, 50);
  assert_int_equal(results.queue.total.empty_ns, 190);
  assert_int_equal(results.classes.class_ns[RL_TIME_IDLE_HOST_WORK], 40);
  assert_int_equal(rl_launch_queue_metrics(&results.queue, &results.classes, NULL, metrics), RL_QUEUE_METRIC_COUNT);
  assert_float_equal(metrics[1].value, 25, 1e-12);
  clear_analysis(&results);
}

static void an_unknown_depth_has_a_reason(void **state) {
  (void)state;
  const rl_trace_event items[] = {KERNEL(0, 100, 1, 7), CALL(-20, -10, 1)};
  analysis results;
  analyze_trace(items, 1, NULL, &results);
  assert_string_equal(rl_launch_queue_reason(&results.index, &results.queue), "no operation has a recorded launch call");
  clear_analysis(&results);
  analyze_trace(items, 2, "3 records were dropped", &results);
  assert_string_equal(rl_launch_queue_reason(&results.index, &results.queue), "3 records were dropped");
  clear_analysis(&results);
}

/* --- random traces ----------------------------------------------------------------------------------------------------- */

enum { WINDOW_NS = 300, OPERATIONS = 12, STREAMS = 3 };

static double most_saved_pct;

/* Returns the number of operations of a stream (STREAMS: of all) that wait at time_ns. */
static int depth_at(const rl_trace_event *items, int count, uint32_t stream, int64_t time_ns) {
  int depth = 0;
  for (int i = 0; i < count; i += 2)
    depth +=
        items[i].end_ns <= time_ns && time_ns < items[i + 1].start_ns && (stream == STREAMS || items[i + 1].stream == stream);
  return depth;
}

static void check_depth(const rl_trace_event *items, int count, const analysis *results, const rl_queue_depth *found,
                        uint32_t stream) {
  int64_t ns_at_depth[OPERATIONS + 1] = {0}, window_ns = results->index.end_ns - results->index.start_ns, below_ns = 0;
  int minimum = -1, maximum = 0, median = 0;
  for (int64_t t = results->index.start_ns; t < results->index.end_ns; t++) ns_at_depth[depth_at(items, count, stream, t)]++;
  for (int depth = 0; depth <= OPERATIONS; depth++) {
    if (ns_at_depth[depth] > 0 && minimum < 0) minimum = depth;
    if (ns_at_depth[depth] > 0) maximum = depth;
    if (2 * below_ns < window_ns) median = depth;
    below_ns += ns_at_depth[depth];
  }
  assert_int_equal(found->empty_ns, ns_at_depth[0]);
  assert_int_equal(found->minimum, minimum < 0 ? 0 : minimum);
  assert_int_equal(found->maximum, maximum);
  assert_int_equal(found->median, median);
}

static bool is_idle_at(const analysis *results, int64_t time_ns) {
  for (size_t i = 0; i < results->index.operation_count; i++)
    if (results->index.operations[i]->start_ns <= time_ns && time_ns < results->index.operations[i]->end_ns) return false;
  return true;
}

/* Checks that the estimates of all findings add up to at most the idle time. */
static void check_that_estimates_fit_the_idle_time(const analysis *results) {
  rl_metric_value metrics[RL_TIME_METRIC_COUNT + RL_QUEUE_METRIC_COUNT];
  rl_finding findings[32];
  size_t count = rl_time_classes_metrics(&results->classes, NULL, metrics);
  count += rl_launch_queue_metrics(&results->queue, &results->classes, rl_launch_queue_reason(&results->index, &results->queue),
                                   metrics + count);
  rl_metric_values_sort(metrics, count);
  size_t found = rl_rules_apply(&(rl_metric_values){metrics, count}, findings, 32);
  int64_t window_ns = results->classes.end_ns - results->classes.start_ns, idle_ns = 0;
  double saved_pct = 0;
  for (size_t i = 0; i < results->classes.idle_count; i++)
    idle_ns += results->classes.idle[i].end_ns - results->classes.idle[i].start_ns;
  for (size_t i = 0; i < found; i++) saved_pct += isnan(findings[i].speedup_pct) ? 0 : findings[i].speedup_pct;
  if (window_ns > 0) assert_true(saved_pct <= 100.0 * (double)idle_ns / (double)window_ns + 1e-9);
  assert_true(results->queue.empty_idle_ns <= idle_ns);
  most_saved_pct = fmax(most_saved_pct, saved_pct);
}

static void check_random_trace(void) {
  rl_trace_event items[2 * OPERATIONS];
  int count = 2 * (1 + random_below(OPERATIONS));
  for (int i = 0; i < count; i += 2) {
    int call = random_below(WINDOW_NS), start = call + random_below(80);
    items[i] = (rl_trace_event)CALL(call, call + random_below(20), (uint32_t)i + 1);
    items[i + 1] = (rl_trace_event)KERNEL(start, start + random_below(40), (uint32_t)i + 1, (uint32_t)random_below(STREAMS));
  }
  analysis results;
  analyze_trace(items, (size_t)count, NULL, &results);
  check_depth(items, count, &results, &results.queue.total, STREAMS);
  for (size_t i = 0; i < results.queue.stream_count; i++)
    check_depth(items, count, &results, &results.queue.streams[i], results.queue.streams[i].stream);
  int64_t empty_idle_ns = 0, depth_ns[RL_QUEUE_SLICES] = {0};
  for (int64_t t = results.index.start_ns, slice = 0; t < results.index.end_ns; t++) {
    int depth = depth_at(items, count, STREAMS, t);
    empty_idle_ns += depth == 0 && is_idle_at(&results, t);
    while (results.queue.slice_start_ns[slice + 1] <= t) slice++;
    depth_ns[slice] += depth;
  }
  assert_int_equal(results.queue.empty_idle_ns, empty_idle_ns);
  assert_memory_equal(results.queue.depth_ns, depth_ns, sizeof depth_ns);
  check_that_estimates_fit_the_idle_time(&results);
  clear_analysis(&results);
}

static void random_queues_have_the_counted_depth(void **state) {
  (void)state;
  choose_test_seed();
  for (int i = 0; i < 2000; i++) check_random_trace();
  assert_true(most_saved_pct > 50);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_host_that_is_ahead_fills_the_queue), cmocka_unit_test(an_empty_queue_of_an_idle_device_is_counted),
      cmocka_unit_test(an_unknown_depth_has_a_reason), cmocka_unit_test(random_queues_have_the_counted_depth)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
