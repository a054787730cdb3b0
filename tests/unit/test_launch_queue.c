/* Tests traces whose launch queue has a known depth, then compares random traces with a count at every nanosecond. */
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

enum { K, LAUNCH, NAME_COUNT };
static const char *const names[NAME_COUNT] = {"kernel", "cudaLaunchKernel_v7000"};

#define KERNEL(start, end, correlation_, stream_)                                                               \
  {                                                                                                             \
    .kind = RL_ACTIVITY_KERNEL, .name = K, .start_ns = (start), .end_ns = (end), .correlation = (correlation_), \
    .stream = (stream_)                                                                                         \
  }
#define CALL(start, end, correlation_) \
  { .kind = RL_ACTIVITY_RUNTIME, .name = LAUNCH, .start_ns = (start), .end_ns = (end), .correlation = (correlation_) }

typedef struct result {
  rl_trace_events events;
  rl_trace_index index;
  rl_time_classes classes;
  rl_launch_queue queue;
} result;

static void compute(const rl_trace_event *items, size_t count, const char *incomplete_reason, result *r) {
  rl_error err = {0};
  r->events = (rl_trace_events){items, count, names, NAME_COUNT, incomplete_reason};
  assert_return_code(rl_trace_index_build(&r->events, &r->index, &err), 0);
  assert_return_code(rl_time_classes_compute(&r->index, NULL, &r->classes, &err), 0);
  assert_return_code(rl_launch_queue_compute(&r->index, &r->classes, &r->queue, &err), 0);
}

static void clear(result *r) {
  rl_launch_queue_clear(&r->queue);
  rl_time_classes_clear(&r->classes);
  rl_trace_index_clear(&r->index);
}

static void a_host_that_is_ahead_fills_the_queue(void **state) {
  (void)state;
  const rl_trace_event items[] = {CALL(-20, -10, 1), KERNEL(0, 100, 1, 7),   CALL(10, 20, 2),       KERNEL(100, 150, 2, 7),
                                  CALL(20, 30, 3),   KERNEL(150, 200, 3, 7), KERNEL(160, 200, 9, 8)};
  result r;
  compute(items, sizeof items / sizeof *items, NULL, &r);
  assert_int_equal(r.queue.total.operation_count, 3);
  assert_int_equal(r.queue.unmatched_operation_count, 1);
  assert_int_equal(r.queue.total.minimum, 0);
  assert_int_equal(r.queue.total.median, 1);
  assert_int_equal(r.queue.total.maximum, 2);
  assert_int_equal(r.queue.total.empty_ns, 70);
  assert_int_equal(r.queue.empty_idle_ns, 0);
  assert_int_equal(r.queue.stream_count, 2);
  assert_int_equal(r.queue.streams[0].stream, 7);
  assert_int_equal(r.queue.streams[0].maximum, 2);
  assert_int_equal(r.queue.streams[1].maximum, 0);
  assert_int_equal(r.queue.streams[1].empty_ns, 200);
  assert_null(rl_launch_queue_reason(&r.index, &r.queue));
  clear(&r);
}

/* The device is idle from 100 to 160: 50 ns before the launch call returns, then 10 with the kernel in the queue. */
static void an_empty_queue_of_an_idle_device_is_counted(void **state) {
  (void)state;
  const rl_trace_event items[] = {CALL(-20, -10, 1), KERNEL(0, 100, 1, 7), CALL(140, 150, 2), KERNEL(160, 200, 2, 7)};
  result r;
  rl_metric_value metrics[RL_QUEUE_METRIC_COUNT];
  compute(items, 4, NULL, &r);
  assert_int_equal(r.queue.empty_idle_ns, 50);
  assert_int_equal(r.queue.total.empty_ns, 190);
  assert_int_equal(r.classes.class_ns[RL_TIME_IDLE_HOST_WORK], 40);
  assert_int_equal(rl_launch_queue_metrics(&r.queue, &r.classes, NULL, metrics), RL_QUEUE_METRIC_COUNT);
  assert_float_equal(metrics[1].value, 25, 1e-12);
  clear(&r);
}

static void an_unknown_depth_has_a_reason(void **state) {
  (void)state;
  const rl_trace_event items[] = {KERNEL(0, 100, 1, 7), CALL(-20, -10, 1)};
  result r;
  compute(items, 1, NULL, &r);
  assert_string_equal(rl_launch_queue_reason(&r.index, &r.queue), "no operation has a recorded launch call");
  clear(&r);
  compute(items, 2, "3 records were dropped", &r);
  assert_string_equal(rl_launch_queue_reason(&r.index, &r.queue), "3 records were dropped");
  clear(&r);
}

/* --- random traces ----------------------------------------------------------------------------------------------------- */

enum { WINDOW_NS = 300, OPERATIONS = 12, STREAMS = 3 };

static double most_saved_pct;

static int random_below(int limit) { return (int)(random_bits() % (uint64_t)limit); }

/* Returns the number of operations of a stream (STREAMS: of all) that wait at time_ns. */
static int depth_at(const rl_trace_event *items, int count, uint32_t stream, int64_t time_ns) {
  int depth = 0;
  for (int i = 0; i < count; i += 2)
    depth +=
        items[i].end_ns <= time_ns && time_ns < items[i + 1].start_ns && (stream == STREAMS || items[i + 1].stream == stream);
  return depth;
}

static void check_depth(const rl_trace_event *items, int count, const result *r, const rl_queue_depth *found, uint32_t stream) {
  int64_t ns_at_depth[OPERATIONS + 1] = {0}, window_ns = r->index.end_ns - r->index.start_ns, below_ns = 0;
  int minimum = -1, maximum = 0, median = 0;
  for (int64_t t = r->index.start_ns; t < r->index.end_ns; t++) ns_at_depth[depth_at(items, count, stream, t)]++;
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

static bool is_idle_at(const result *r, int64_t time_ns) {
  for (size_t i = 0; i < r->index.operation_count; i++)
    if (r->index.operations[i]->start_ns <= time_ns && time_ns < r->index.operations[i]->end_ns) return false;
  return true;
}

/* The findings of all rules together never claim more than the idle time. */
static void check_savings(const result *r) {
  rl_metric_value metrics[RL_TIME_METRIC_COUNT + RL_QUEUE_METRIC_COUNT];
  rl_finding findings[32];
  size_t count = rl_time_classes_metrics(&r->classes, metrics);
  count += rl_launch_queue_metrics(&r->queue, &r->classes, rl_launch_queue_reason(&r->index, &r->queue), metrics + count);
  rl_metric_values_sort(metrics, count);
  size_t found = rl_rules_apply(&(rl_metric_values){metrics, count}, findings, 32);
  int64_t window_ns = r->classes.end_ns - r->classes.start_ns, idle_ns = 0;
  double saved_pct = 0;
  for (size_t i = 0; i < r->classes.idle_count; i++) idle_ns += r->classes.idle[i].end_ns - r->classes.idle[i].start_ns;
  for (size_t i = 0; i < found; i++) saved_pct += isnan(findings[i].speedup_pct) ? 0 : findings[i].speedup_pct;
  if (window_ns > 0) assert_true(saved_pct <= 100.0 * (double)idle_ns / (double)window_ns + 1e-9);
  assert_true(r->queue.empty_idle_ns <= idle_ns);
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
  result r;
  compute(items, (size_t)count, NULL, &r);
  check_depth(items, count, &r, &r.queue.total, STREAMS);
  for (size_t i = 0; i < r.queue.stream_count; i++) check_depth(items, count, &r, &r.queue.streams[i], r.queue.streams[i].stream);
  int64_t empty_idle_ns = 0, depth_ns[RL_QUEUE_SLICES] = {0};
  for (int64_t t = r.index.start_ns, slice = 0; t < r.index.end_ns; t++) {
    int depth = depth_at(items, count, STREAMS, t);
    empty_idle_ns += depth == 0 && is_idle_at(&r, t);
    while (r.queue.slice_start_ns[slice + 1] <= t) slice++;
    depth_ns[slice] += depth;
  }
  assert_int_equal(r.queue.empty_idle_ns, empty_idle_ns);
  assert_memory_equal(r.queue.depth_ns, depth_ns, sizeof depth_ns);
  check_savings(&r);
  clear(&r);
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
