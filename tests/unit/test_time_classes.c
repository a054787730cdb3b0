/* Tests the division of time into classes: first on traces in which the time of each class is known, then on random traces, in
 * which the test classifies every nanosecond as busy or idle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/thresholds.h"
#include "analyze/time_classes.h"
#include "model/records.h"
#include "random_numbers.h"

enum {
  KERNEL_NAME,
  COPY,
  DEVICE_COPY,
  OTHER_COPY,
  MEMSET,
  LAUNCH,
  GRAPH,
  SYNC,
  MEMCPY,
  MEMCPY_ASYNC,
  RANGE_NAME,
  LOADING_OVERHEAD,
  INSTRUMENTING_OVERHEAD,
  FLUSHING_OVERHEAD,
  BEGIN_CAPTURE,
  END_CAPTURE,
  NAME_COUNT
};
static const char *const names[NAME_COUNT] = {"kernel",
                                              "memcpy HtoD",
                                              "memcpy DtoD",
                                              "memcpy",
                                              "memset",
                                              "cudaLaunchKernel_v7000",
                                              "cudaGraphLaunch_v10000",
                                              "cudaStreamSynchronize_v3020",
                                              "cudaMemcpy_v3020",
                                              "cudaMemcpyAsync_v3020",
                                              "epoch 0",
                                              "driver loads a function",
                                              "CUPTI instruments",
                                              "CUPTI flushes buffers",
                                              "cudaStreamBeginCapture_v10000",
                                              "cudaStreamEndCapture_v10000"};

#define EVENT(kind_, name_, start, end, correlation_, node) \
  { .kind = (kind_), .name = (name_), .start_ns = (start), .end_ns = (end), .correlation = (correlation_), .graph_node = (node) }
#define KERNEL(start, end, correlation) EVENT(RL_ACTIVITY_KERNEL, KERNEL_NAME, start, end, correlation, 0)
#define NODE(start, end, correlation, node) EVENT(RL_ACTIVITY_KERNEL, KERNEL_NAME, start, end, correlation, node)
#define COPY_OF(start, end, correlation) EVENT(RL_ACTIVITY_MEMCPY, COPY, start, end, correlation, 0)
#define DEVICE_COPY_OF(start, end, correlation) EVENT(RL_ACTIVITY_MEMCPY, DEVICE_COPY, start, end, correlation, 0)
#define OTHER_COPY_OF(start, end, correlation) EVENT(RL_ACTIVITY_MEMCPY, OTHER_COPY, start, end, correlation, 0)
#define MEMSET_OF(start, end, correlation) EVENT(RL_ACTIVITY_MEMSET, MEMSET, start, end, correlation, 0)
#define CALL(name, start, end, correlation) EVENT(RL_ACTIVITY_RUNTIME, name, start, end, correlation, 0)
#define CALL_OF_THREAD(thread_, name_, start, end, correlation_)                                                       \
  {                                                                                                                    \
    .kind = RL_ACTIVITY_RUNTIME, .name = (name_), .start_ns = (start), .end_ns = (end), .correlation = (correlation_), \
    .thread = (thread_)                                                                                                \
  }
#define OVERHEAD(name, start, end, correlation) EVENT(RL_ACTIVITY_OVERHEAD, name, start, end, correlation, 0)
#define SPAN(start, end) EVENT(RL_ACTIVITY_CPU_SPAN, KERNEL_NAME, start, end, 0, 0)

typedef struct trace_case {
  const char *name;
  rl_trace_event events[12];
  int64_t class_ns[RL_TIME_CLASS_COUNT];
  const char *incomplete_reason;
} trace_case;

static const trace_case cases[] = {
    {"no operation", {CALL(LAUNCH, 0, 10, 1)}, {0}, NULL},
    {"streams overlap, so the gap of one stream is not idle",
     {KERNEL(0, 100, 1), KERNEL(50, 200, 2), KERNEL(150, 300, 3)},
     {[RL_TIME_COMPUTE] = 300},
     NULL},
    {"copies are not idle",
     {KERNEL(0, 100, 1), COPY_OF(100, 400, 2), KERNEL(400, 500, 3)},
     {[RL_TIME_COMPUTE] = 200, [RL_TIME_COPY] = 300},
     NULL},
    {"a copy beside a kernel",
     {KERNEL(0, 100, 1), COPY_OF(40, 130, 2)},
     {[RL_TIME_COMPUTE] = 40, [RL_TIME_COMPUTE_AND_COPY] = 60, [RL_TIME_COPY] = 30},
     NULL},
    {"the host works, then launches late",
     {KERNEL(0, 100, 1), CALL(LAUNCH, 5000, 5040, 2), KERNEL(5060, 5100, 2)},
     {[RL_TIME_COMPUTE] = 140, [RL_TIME_IDLE_HOST_WORK] = 4900, [RL_TIME_IDLE_LAUNCH_LATENCY] = 60},
     NULL},
    {"the launch call is in progress when the kernel ends",
     {KERNEL(0, 100, 1), CALL(LAUNCH, 90, 140, 2), KERNEL(160, 200, 2)},
     {[RL_TIME_COMPUTE] = 140, [RL_TIME_IDLE_LAUNCH_LATENCY] = 60},
     NULL},
    {"the launch call has returned before the kernel ends, so the gap is the device's latency",
     {KERNEL(0, 100, 1), CALL(LAUNCH, 10, 60, 2), KERNEL(102, 200, 2)},
     {[RL_TIME_COMPUTE] = 198, [RL_TIME_IDLE_DEVICE_LATENCY] = 2},
     NULL},
    {"a longer gap after such a call has an unknown cause",
     {KERNEL(0, 100, 1), CALL(LAUNCH, 10, 60, 2), KERNEL(101 + RL_DEVICE_LATENCY_MAX_NS, 200 + RL_DEVICE_LATENCY_MAX_NS, 2)},
     {[RL_TIME_COMPUTE] = 199, [RL_TIME_IDLE_UNKNOWN] = 1 + RL_DEVICE_LATENCY_MAX_NS},
     NULL},
    {"synchronising, then host work, then a launch",
     {KERNEL(0, 100, 1), CALL(SYNC, 20, 130, 7), CALL(LAUNCH, 200, 205, 2), KERNEL(210, 300, 2)},
     {[RL_TIME_COMPUTE] = 190,
      [RL_TIME_IDLE_SYNCHRONIZATION] = 30,
      [RL_TIME_IDLE_HOST_WORK] = 70,
      [RL_TIME_IDLE_LAUNCH_LATENCY] = 10},
     NULL},
    {"the same thread synchronises and launches",
     {KERNEL(0, 100, 1), CALL_OF_THREAD(5, SYNC, 20, 130, 7), CALL_OF_THREAD(5, LAUNCH, 200, 205, 2), KERNEL(210, 300, 2)},
     {[RL_TIME_COMPUTE] = 190,
      [RL_TIME_IDLE_SYNCHRONIZATION] = 30,
      [RL_TIME_IDLE_HOST_WORK] = 70,
      [RL_TIME_IDLE_LAUNCH_LATENCY] = 10},
     NULL},
    {"other threads synchronise and copy",
     {KERNEL(0, 100, 1), CALL_OF_THREAD(6, SYNC, 20, 130, 7), CALL_OF_THREAD(4, MEMCPY, 120, 190, 8),
      CALL_OF_THREAD(5, LAUNCH, 200, 205, 2), KERNEL(210, 300, 2)},
     {[RL_TIME_COMPUTE] = 190, [RL_TIME_IDLE_HOST_WORK] = 100, [RL_TIME_IDLE_LAUNCH_LATENCY] = 10},
     NULL},
    {"launches of two threads at the same time are two launches",
     {CALL_OF_THREAD(5, LAUNCH, -50, -10, 1), CALL_OF_THREAD(6, LAUNCH, -40, -20, 2), KERNEL(0, 100, 1),
      CALL_OF_THREAD(5, LAUNCH, 110, 115, 3), KERNEL(120, 200, 3)},
     {[RL_TIME_COMPUTE] = 180, [RL_TIME_IDLE_UNKNOWN] = 20},
     NULL},
    {"the driver loads code in the launch call",
     {KERNEL(0, 100, 1), CALL(LAUNCH, 90, 900, 2), OVERHEAD(LOADING_OVERHEAD, 110, 800, 2), KERNEL(950, 1000, 2)},
     {[RL_TIME_COMPUTE] = 150, [RL_TIME_IDLE_FIRST_LAUNCH] = 690, [RL_TIME_IDLE_LAUNCH_LATENCY] = 160},
     NULL},
    {"the driver loads code for another thread",
     {KERNEL(0, 100, 1), CALL_OF_THREAD(5, LAUNCH, 90, 900, 2), CALL_OF_THREAD(6, MEMCPY_ASYNC, 100, 850, 3),
      OVERHEAD(LOADING_OVERHEAD, 110, 800, 3), KERNEL(950, 1000, 2)},
     {[RL_TIME_COMPUTE] = 150, [RL_TIME_IDLE_LAUNCH_LATENCY] = 850},
     NULL},
    {"CUPTI instruments a kernel in the launch call, and flushes its buffers in its own thread",
     {KERNEL(0, 100, 1), CALL(LAUNCH, 90, 900, 2), OVERHEAD(INSTRUMENTING_OVERHEAD, 110, 800, 2),
      OVERHEAD(FLUSHING_OVERHEAD, 800, 940, 0), KERNEL(950, 1000, 2)},
     {[RL_TIME_COMPUTE] = 150, [RL_TIME_IDLE_PROFILER] = 690, [RL_TIME_IDLE_LAUNCH_LATENCY] = 160},
     NULL},
    {"a blocking copy stages pageable memory first",
     {KERNEL(0, 100, 1), CALL(MEMCPY, 150, 400, 2), COPY_OF(300, 390, 2), CALL(LAUNCH, 410, 415, 3), KERNEL(420, 500, 3)},
     {[RL_TIME_COMPUTE] = 180,
      [RL_TIME_COPY] = 90,
      [RL_TIME_IDLE_HOST_WORK] = 50 + 10,
      [RL_TIME_IDLE_COPY] = 150 + 10,
      [RL_TIME_IDLE_LAUNCH_LATENCY] = 10},
     NULL},
    {"a blocking call that copies within the device: CUDA does not wait for the copy, so the call is a launch",
     {KERNEL(0, 100, 1), CALL(MEMCPY, 150, 400, 2), DEVICE_COPY_OF(300, 390, 2), CALL(LAUNCH, 410, 415, 3), KERNEL(420, 500, 3)},
     {[RL_TIME_COMPUTE] = 180, [RL_TIME_COPY] = 90, [RL_TIME_IDLE_HOST_WORK] = 50 + 20, [RL_TIME_IDLE_LAUNCH_LATENCY] = 150 + 10},
     NULL},
    {"an asynchronous copy that was queued",
     {KERNEL(0, 100, 1), CALL(MEMCPY_ASYNC, 10, 20, 2), COPY_OF(103, 200, 2)},
     {[RL_TIME_COMPUTE] = 100, [RL_TIME_COPY] = 97, [RL_TIME_IDLE_COPY] = 3},
     NULL},
    {"a memset and a copy within the device that were queued",
     {CALL(LAUNCH, -50, -40, 1), CALL(MEMCPY_ASYNC, -39, -30, 2), CALL(MEMCPY_ASYNC, -29, -20, 3), CALL(LAUNCH, -19, -10, 4),
      KERNEL(0, 100, 1), MEMSET_OF(103, 200, 2), DEVICE_COPY_OF(204, 300, 3), KERNEL(305, 400, 4)},
     {[RL_TIME_COMPUTE] = 195, [RL_TIME_COPY] = 193, [RL_TIME_IDLE_DEVICE_LATENCY] = 12},
     NULL},
    {"a copy from the host that was queued, between kernels",
     {CALL(LAUNCH, -50, -40, 1), CALL(MEMCPY_ASYNC, -39, -30, 2), CALL(LAUNCH, -19, -10, 4), KERNEL(0, 100, 1),
      COPY_OF(103, 200, 2), KERNEL(205, 300, 4)},
     {[RL_TIME_COMPUTE] = 195, [RL_TIME_COPY] = 97, [RL_TIME_IDLE_COPY] = 8},
     NULL},
    {"a memset in a graph",
     {CALL(GRAPH, -50, -40, 1), NODE(0, 100, 1, 1), EVENT(RL_ACTIVITY_MEMSET, MEMSET, 102, 200, 1, 2), NODE(203, 300, 1, 3)},
     {[RL_TIME_COMPUTE] = 197, [RL_TIME_COPY] = 98, [RL_TIME_IDLE_DEVICE_LATENCY] = 5},
     NULL},
    {"two launches of a graph of two nodes",
     {CALL(GRAPH, -50, -40, 1), CALL(GRAPH, -30, -20, 2), NODE(0, 100, 1, 1), NODE(101, 200, 1, 2), NODE(209, 300, 2, 1),
      NODE(301, 400, 2, 2)},
     {[RL_TIME_COMPUTE] = 389, [RL_TIME_IDLE_DEVICE_LATENCY] = 2, [RL_TIME_IDLE_GRAPH] = 9},
     NULL},
    {"idle time after graph launches whose operations were not recorded has an unknown cause",
     {CALL(LAUNCH, -10, -5, 1), KERNEL(0, 10, 1), CALL(GRAPH, 20, 30, 2), CALL(GRAPH, 40, 50, 3), CALL(LAUNCH, 980, 985, 4),
      KERNEL(990, 1000, 4)},
     {[RL_TIME_COMPUTE] = 20, [RL_TIME_IDLE_HOST_WORK] = 10, [RL_TIME_IDLE_UNKNOWN] = 970},
     NULL},
    {"a synchronising call ends the time of the unrecorded launch",
     {CALL(LAUNCH, -10, -5, 1), KERNEL(0, 10, 1), CALL(GRAPH, 20, 30, 2), CALL(SYNC, 40, 500, 9), CALL(LAUNCH, 980, 985, 4),
      KERNEL(990, 1000, 4)},
     {[RL_TIME_COMPUTE] = 20,
      [RL_TIME_IDLE_HOST_WORK] = 10 + 480,
      [RL_TIME_IDLE_UNKNOWN] = 480,
      [RL_TIME_IDLE_LAUNCH_LATENCY] = 10},
     NULL},
    {"a driver call within a runtime call is the same launch",
     {KERNEL(0, 100, 1), CALL(LAUNCH, 150, 190, 2), EVENT(RL_ACTIVITY_DRIVER, LAUNCH, 160, 180, 3, 0), KERNEL(195, 200, 2)},
     {[RL_TIME_COMPUTE] = 105, [RL_TIME_IDLE_HOST_WORK] = 50, [RL_TIME_IDLE_LAUNCH_LATENCY] = 45},
     NULL},
    {"launches that stream capture adds to a graph launch nothing",
     {CALL(LAUNCH, -10, -5, 1), KERNEL(0, 10, 1), CALL(BEGIN_CAPTURE, 20, 30, 2), CALL(LAUNCH, 40, 50, 3),
      CALL(END_CAPTURE, 60, 70, 4), CALL(LAUNCH, 980, 985, 5), KERNEL(990, 1000, 5)},
     {[RL_TIME_COMPUTE] = 20, [RL_TIME_IDLE_HOST_WORK] = 970, [RL_TIME_IDLE_LAUNCH_LATENCY] = 10},
     NULL},
    {"a launch during the stream capture of another thread is not captured",
     {CALL_OF_THREAD(5, LAUNCH, -10, -5, 1), KERNEL(0, 10, 1), CALL_OF_THREAD(6, BEGIN_CAPTURE, 20, 30, 2),
      CALL_OF_THREAD(5, LAUNCH, 40, 50, 3), CALL_OF_THREAD(6, END_CAPTURE, 60, 70, 4), CALL_OF_THREAD(5, LAUNCH, 980, 985, 5),
      KERNEL(990, 1000, 5)},
     {[RL_TIME_COMPUTE] = 20, [RL_TIME_IDLE_HOST_WORK] = 30, [RL_TIME_IDLE_UNKNOWN] = 950},
     NULL},
    {"a launch after a stream capture is not captured",
     {CALL(LAUNCH, -10, -5, 1), KERNEL(0, 10, 1), CALL(BEGIN_CAPTURE, 20, 30, 2), CALL(END_CAPTURE, 60, 70, 4),
      CALL(LAUNCH, 80, 90, 3), CALL(LAUNCH, 980, 985, 5), KERNEL(990, 1000, 5)},
     {[RL_TIME_COMPUTE] = 20, [RL_TIME_IDLE_HOST_WORK] = 70, [RL_TIME_IDLE_UNKNOWN] = 910},
     NULL},
    {"launches after the begin of a stream capture that does not end have an unknown cause",
     {CALL(LAUNCH, -10, -5, 1), KERNEL(0, 10, 1), CALL(BEGIN_CAPTURE, 20, 30, 2), CALL(LAUNCH, 40, 50, 3),
      CALL(LAUNCH, 980, 985, 5), KERNEL(990, 1000, 5)},
     {[RL_TIME_COMPUTE] = 20, [RL_TIME_IDLE_HOST_WORK] = 30, [RL_TIME_IDLE_UNKNOWN] = 950},
     NULL},
    {"captures of two streams overlap, and a third stream executes a launch",
     {CALL(LAUNCH, -10, -5, 1), KERNEL(0, 10, 1), CALL(BEGIN_CAPTURE, 20, 21, 2), CALL(BEGIN_CAPTURE, 22, 23, 6),
      CALL(END_CAPTURE, 30, 31, 7), CALL(LAUNCH, 40, 50, 3), CALL(LAUNCH, 60, 70, 8), KERNEL(75, 100, 8),
      CALL(END_CAPTURE, 110, 120, 4), CALL(LAUNCH, 980, 985, 5), KERNEL(990, 1000, 5)},
     {[RL_TIME_COMPUTE] = 45, [RL_TIME_IDLE_HOST_WORK] = 50 + 880, [RL_TIME_IDLE_LAUNCH_LATENCY] = 15 + 10},
     NULL},
    {"an operation without a call",
     {KERNEL(0, 100, 1), KERNEL(150, 200, 2)},
     {[RL_TIME_COMPUTE] = 150, [RL_TIME_IDLE_UNKNOWN] = 50},
     NULL},
    {"records are missing",
     {KERNEL(0, 100, 1), CALL(LAUNCH, 5000, 5040, 2), KERNEL(5060, 5100, 2)},
     {[RL_TIME_COMPUTE] = 140, [RL_TIME_IDLE_UNKNOWN] = 4960},
     "CUPTI dropped 3 records"},
    {"spans of a CPU",
     {SPAN(0, 100), SPAN(130, 200), EVENT(RL_ACTIVITY_NVTX_RANGE, RANGE_NAME, 0, 900, 0, 0)},
     {[RL_TIME_COMPUTE] = 170, [RL_TIME_IDLE_HOST_WORK] = 30},
     NULL},
};

/* The events that rl_time_classes points to. Each call of compute_classes replaces them. */
static rl_trace_index trace_index;

static int compute_classes(const rl_trace_events *events, rl_time_classes *found, rl_error *err) {
  rl_trace_index_clear(&trace_index);
  if (rl_trace_index_build(events, &trace_index, err) < 0) return -1;
  return rl_time_classes_compute(&trace_index, NULL, found, err);
}

static size_t count_events(const trace_case *one_case) {
  size_t count = 0;
  while (count < sizeof one_case->events / sizeof *one_case->events &&
         (one_case->events[count].start_ns != 0 || one_case->events[count].end_ns != 0))
    count++;
  return count;
}

static int64_t sum_idle_intervals(const rl_time_classes *found) {
  int64_t sum = 0, end_ns = INT64_MIN;
  for (size_t i = 0; i < found->idle_count; i++) {
    assert_true(found->idle[i].start_ns >= end_ns && found->idle[i].end_ns > found->idle[i].start_ns);
    end_ns = found->idle[i].end_ns;
    sum += found->idle[i].end_ns - found->idle[i].start_ns;
  }
  return sum;
}

static void check_that_classes_add_up(const rl_time_classes *found) {
  int64_t sum = 0, idle = 0;
  size_t intervals = 0;
  for (int i = 0; i < RL_TIME_CLASS_COUNT; i++) {
    sum += found->class_ns[i];
    intervals += found->interval_counts[i];
    if (rl_time_class_is_idle((rl_time_class)i)) idle += found->class_ns[i];
    else assert_int_equal(found->interval_counts[i], 0);
  }
  assert_int_equal(intervals, found->idle_count);
  assert_int_equal(sum, found->end_ns - found->start_ns);
  assert_int_equal(idle, sum_idle_intervals(found));
}

static void known_causes_have_their_time(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const trace_case *one_case = &cases[i];
    rl_trace_events events = {one_case->events, count_events(one_case), names, NAME_COUNT, one_case->incomplete_reason};
    rl_time_classes found;
    rl_error err = {0};
    assert_return_code(compute_classes(&events, &found, &err), 0);
    for (int k = 0; k < RL_TIME_CLASS_COUNT; k++)
      if (found.class_ns[k] != one_case->class_ns[k])
        fail_msg("%s: %s %lld ns, not %lld", one_case->name, rl_time_class_names[k], (long long)found.class_ns[k],
                 (long long)one_case->class_ns[k]);
    check_that_classes_add_up(&found);
    rl_time_classes_clear(&found);
  }
}

static void idle_intervals_name_their_operations(void **state) {
  (void)state;
  const rl_trace_event items[] = {KERNEL(0, 100, 1), CALL(LAUNCH, 5000, 5040, 2), COPY_OF(5060, 5100, 2)};
  rl_trace_events events = {items, 3, names, NAME_COUNT, NULL};
  rl_time_classes found;
  rl_error err = {0};
  assert_return_code(compute_classes(&events, &found, &err), 0);
  assert_int_equal(found.idle_count, 2);
  assert_memory_equal(found.idle[0].before, &items[0], sizeof *items);
  assert_memory_equal(found.idle[0].after, &items[2], sizeof *items);
  assert_null(found.idle[0].call);
  assert_memory_equal(found.idle[1].call, &items[1], sizeof *items);
  rl_time_classes_clear(&found);
}

static void device_latency_before_short_kernels_is_summed(void **state) {
  (void)state;
  const int64_t long_ns = RL_SHORT_KERNEL_NS;
  const rl_trace_event items[] = {CALL(LAUNCH, -10, -9, 1),      CALL(LAUNCH, -8, -7, 2),
                                  CALL(LAUNCH, -6, -5, 3),       KERNEL(0, 100, 1),
                                  KERNEL(103, 103 + long_ns, 2), KERNEL(108 + long_ns, 117 + long_ns, 3)};
  rl_trace_events events = {items, 6, names, NAME_COUNT, NULL};
  rl_time_classes found;
  rl_error err = {0};
  assert_return_code(compute_classes(&events, &found, &err), 0);
  assert_int_equal(found.kernel_count, 3);
  assert_int_equal(found.short_kernel_count, 2);
  assert_int_equal(found.short_kernels_ns, 109);
  assert_int_equal(found.class_ns[RL_TIME_IDLE_DEVICE_LATENCY], 8);
  assert_int_equal(found.device_latency_before_short_kernels_ns, 5);
  rl_time_classes_clear(&found);
}

typedef struct copies_case {
  rl_trace_event events[4];
  int64_t host_alone_ns, host_beside_ns, device_alone_ns;
} copies_case;

static void copies_are_divided_by_the_memory_that_they_use(void **state) {
  (void)state;
  static const copies_case copies[] = {
      {{COPY_OF(0, 100, 1), KERNEL(60, 90, 2)}, 70, 30, 0},
      {{MEMSET_OF(0, 100, 1), KERNEL(60, 90, 2)}, 0, 0, 70},
      {{DEVICE_COPY_OF(0, 100, 1), COPY_OF(80, 120, 2)}, 40, 0, 80}, /* the copy from the host counts first */
      {{OTHER_COPY_OF(0, 100, 1)}, 0, 0, 0},
      {{MEMSET_OF(0, 100, 1), OTHER_COPY_OF(50, 70, 2)}, 0, 0, 80},
      {{KERNEL(0, 50, 1), COPY_OF(10, 20, 2), MEMSET_OF(40, 60, 3)}, 0, 10, 10},
  };
  for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
    size_t count = 0;
    while (copies[i].events[count].end_ns != 0) count++;
    rl_trace_events events = {copies[i].events, count, names, NAME_COUNT, NULL};
    rl_time_classes found;
    rl_error err = {0};
    assert_return_code(compute_classes(&events, &found, &err), 0);
    assert_int_equal(found.host_copies_alone_ns, copies[i].host_alone_ns);
    assert_int_equal(found.host_copies_beside_ns, copies[i].host_beside_ns);
    assert_int_equal(found.device_copies_alone_ns, copies[i].device_alone_ns);
    rl_time_classes_clear(&found);
  }
}

/* Returns the time of the class RL_TIME_IDLE_FIRST_LAUNCH in a trace whose first launch call takes first_ns, and whose `later`
 * launch calls take 10 ns each. */
static int64_t compute_first_launch_ns(int64_t first_ns, int later) {
  rl_trace_event items[12] = {CALL(LAUNCH, -20, -10, 90), EVENT(RL_ACTIVITY_MEMSET, COPY, 0, 100, 90, 0)};
  size_t count = 2;
  for (int i = 0; i <= later; i++) {
    int64_t start = i == 0 ? 100 : 10000 + 1000 * i, end = start + (i == 0 ? first_ns : 10);
    items[count++] = (rl_trace_event)CALL(LAUNCH, start, end, (uint32_t)i + 1);
    items[count++] = (rl_trace_event)KERNEL(end, end + 100, (uint32_t)i + 1);
  }
  rl_trace_events events = {items, count, names, NAME_COUNT, NULL};
  rl_time_classes found;
  rl_error err = {0};
  assert_return_code(compute_classes(&events, &found, &err), 0);
  int64_t time_ns = found.class_ns[RL_TIME_IDLE_FIRST_LAUNCH];
  rl_time_classes_clear(&found);
  return time_ns;
}

static void a_first_launch_is_slow_compared_with_later_launches(void **state) {
  (void)state;
  assert_int_equal(compute_first_launch_ns(41, 3), 41);
  assert_int_equal(compute_first_launch_ns(40, 3), 0);
  assert_int_equal(compute_first_launch_ns(41, 2), 0);
}

static void host_time_before_short_kernels_is_summed(void **state) {
  (void)state;
  const rl_trace_event items[] = {
      CALL(LAUNCH, -10, -9, 1), KERNEL(0, 100, 1),    CALL(LAUNCH, 120, 130, 2), KERNEL(150, 200, 2),
      CALL(GRAPH, 210, 220, 3), NODE(230, 300, 3, 1), CALL(LAUNCH, 310, 320, 4), KERNEL(330, 330 + RL_SHORT_KERNEL_NS, 4)};
  rl_trace_events events = {items, 8, names, NAME_COUNT, NULL};
  rl_time_classes found;
  rl_error err = {0};
  assert_return_code(compute_classes(&events, &found, &err), 0);
  assert_int_equal(found.short_kernel_count, 3);
  assert_int_equal(found.host_time_before_short_kernels_ns, 50);
  rl_time_classes_clear(&found);
}

static void impossible_events_are_refused(void **state) {
  (void)state;
  const rl_trace_event backwards = KERNEL(10, 9, 1), unnamed = {.end_ns = 1, .name = NAME_COUNT};
  const rl_trace_event *const items[] = {&backwards, &unnamed};
  for (int i = 0; i < 2; i++) {
    rl_trace_events events = {items[i], 1, names, NAME_COUNT, NULL};
    rl_time_classes found;
    rl_error err = {0};
    assert_int_equal(compute_classes(&events, &found, &err), -1);
    assert_int_equal(err.domain, RL_INPUT);
  }
}

/* --- random traces ----------------------------------------------------------------------------------------------------- */

enum { WINDOW_NS = 400, MAX_EVENTS = 40 };

static rl_trace_event random_event(uint32_t correlation) {
  int64_t start = random_below(WINDOW_NS), end = start + random_below(30);
  switch (random_below(5)) {
    case 0: return (rl_trace_event)COPY_OF(start, end, correlation);
    case 1: return (rl_trace_event)CALL(SYNC, start, end, correlation);
    case 2: return (rl_trace_event)CALL(MEMCPY, start, end, correlation);
    case 3: return (rl_trace_event)CALL(random_below(2) ? LAUNCH : GRAPH, start, end, correlation);
    default: return (rl_trace_event)NODE(start, end, correlation, (uint32_t)random_below(2));
  }
}

/* Returns whether a copy (`copies`) or a kernel covers the nanosecond that begins at time_ns. */
static bool is_covered(const rl_trace_event *events, int count, bool copies, int64_t time_ns) {
  for (int i = 0; i < count; i++) {
    bool kernel = events[i].kind == RL_ACTIVITY_KERNEL, copy = events[i].kind == RL_ACTIVITY_MEMCPY;
    if ((copies ? copy : kernel) && events[i].start_ns <= time_ns && time_ns < events[i].end_ns) return true;
  }
  return false;
}

static void check_random_trace(void) {
  rl_trace_event items[MAX_EVENTS];
  int count = random_below(MAX_EVENTS);
  for (int i = 0; i < count; i++) items[i] = random_event((uint32_t)random_below(12));
  rl_trace_events events = {items, (size_t)count, names, NAME_COUNT, NULL};
  rl_time_classes found;
  rl_error err = {0};
  assert_return_code(compute_classes(&events, &found, &err), 0);
  int64_t expected[RL_TIME_CLASS_COUNT] = {0}; /* of the classes that are not idle */
  for (int64_t t = found.start_ns; t < found.end_ns; t++) {
    bool kernel = is_covered(items, count, false, t), copy = is_covered(items, count, true, t);
    if (kernel || copy) expected[kernel && copy ? RL_TIME_COMPUTE_AND_COPY : kernel ? RL_TIME_COMPUTE : RL_TIME_COPY]++;
  }
  for (int k = 0; k <= RL_TIME_COPY; k++)
    if (found.class_ns[k] != expected[k]) fail_msg("%s", rl_time_class_names[k]);
  check_that_classes_add_up(&found);
  for (size_t i = 0; i < found.idle_count; i++)
    for (int64_t t = found.idle[i].start_ns; t < found.idle[i].end_ns; t++)
      assert_false(is_covered(items, count, false, t) || is_covered(items, count, true, t));
  rl_time_classes_clear(&found);
}

static void classes_of_random_traces_equal_a_scan(void **state) {
  (void)state;
  choose_test_seed();
  for (int i = 0; i < 3000; i++) check_random_trace();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(known_causes_have_their_time),
                                     cmocka_unit_test(idle_intervals_name_their_operations),
                                     cmocka_unit_test(device_latency_before_short_kernels_is_summed),
                                     cmocka_unit_test(copies_are_divided_by_the_memory_that_they_use),
                                     cmocka_unit_test(a_first_launch_is_slow_compared_with_later_launches),
                                     cmocka_unit_test(host_time_before_short_kernels_is_summed),
                                     cmocka_unit_test(impossible_events_are_refused),
                                     cmocka_unit_test(classes_of_random_traces_equal_a_scan)};
  int rc = cmocka_run_group_tests(tests, NULL, NULL);
  rl_trace_index_clear(&trace_index);
  return rc;
}
