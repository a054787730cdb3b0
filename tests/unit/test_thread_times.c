/* Tests the times of API calls by thread, on traces in which they are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/thread_times.h"
#include "model/records.h"

enum { KERNEL_NAME, LAUNCH, SYNC, MEMCPY, MALLOC, NAME_COUNT };
static const char *const names[NAME_COUNT] = {"kernel", "cudaLaunchKernel_v7000", "cudaStreamSynchronize_v3020",
                                              "cudaMemcpy_v3020", "cudaMalloc_v3020"};

#define EVENT(kind_, name_, start, end, correlation_, thread_) \
  { .kind = (kind_), .name = (name_), .start_ns = (start), .end_ns = (end), .correlation = (correlation_), .thread = (thread_) }
#define CALL(thread, name, start, end, correlation) EVENT(RL_ACTIVITY_RUNTIME, name, start, end, correlation, thread)

static void compute_thread_times(const rl_trace_event *items, size_t count, rl_thread_times *times) {
  const rl_trace_events events = {items, count, names, NAME_COUNT, NULL};
  rl_trace_index index;
  rl_time_classes classes;
  rl_error err = {0};
  assert_return_code(rl_trace_index_build(&events, &index, &err), 0);
  assert_return_code(rl_time_classes_compute(&index, NULL, &classes, &err), 0);
  assert_return_code(rl_thread_times_compute(&index, &classes, times, &err), 0);
  rl_time_classes_clear(&classes);
  rl_trace_index_clear(&index);
}

static void assert_calls(const rl_call_time *time, size_t count, int64_t time_ns) {
  assert_int_equal(time->count, count);
  assert_int_equal(time->time_ns, time_ns);
}

/* Thread 5 launches (a runtime call that contains a driver call) and copies. Thread 6 only waits. */
static void calls_count_for_their_thread(void **state) {
  (void)state;
  const rl_trace_event items[] = {CALL(5, LAUNCH, -30, -10, 1),
                                  EVENT(RL_ACTIVITY_DRIVER, LAUNCH, -25, -15, 7, 5),
                                  EVENT(RL_ACTIVITY_KERNEL, KERNEL_NAME, 0, 100, 1, 0),
                                  CALL(6, SYNC, 10, 150, 8),
                                  CALL(5, MALLOC, 110, 115, 9),
                                  CALL(5, MEMCPY, 120, 160, 2),
                                  EVENT(RL_ACTIVITY_MEMCPY, KERNEL_NAME, 130, 155, 2, 0)};
  rl_thread_times times;
  compute_thread_times(items, sizeof items / sizeof *items, &times);
  assert_int_equal(times.count, 2);
  assert_int_equal(times.items[0].thread, 5);
  assert_calls(&times.items[0].launches, 1, 20);
  assert_calls(&times.items[0].blocking_copies, 1, 40);
  assert_calls(&times.items[0].synchronizations, 0, 0);
  assert_int_equal(times.items[0].idle_ns, 30);
  assert_int_equal(times.items[1].thread, 6);
  assert_calls(&times.items[1].synchronizations, 1, 140);
  assert_int_equal(times.items[1].idle_ns, 0);
}

static void further_threads_share_a_row(void **state) {
  (void)state;
  rl_trace_event items[200];
  for (uint32_t i = 0; i < 200; i++) items[i] = (rl_trace_event)CALL(i + 1, SYNC, 10 * i, 10 * i + 5, i + 1);
  rl_thread_times times;
  compute_thread_times(items, 200, &times);
  assert_int_equal(times.count, RL_MAX_THREADS + 1);
  assert_calls(&times.items[RL_MAX_THREADS].synchronizations, 200 - RL_MAX_THREADS, 5 * (200 - RL_MAX_THREADS));
  assert_int_equal(times.items[RL_MAX_THREADS].thread, 0);
}

/* Each of two threads beyond the limit has a driver call inside its runtime call. The runtime calls of both overlap. */
static void nested_calls_of_further_threads_do_not_count(void **state) {
  (void)state;
  rl_trace_event items[RL_MAX_THREADS + 4];
  size_t count = 0;
  for (; count < RL_MAX_THREADS; count++) items[count] = (rl_trace_event)CALL((uint32_t)count + 1, SYNC, -500, -490, 0);
  for (uint32_t thread = 1001; thread <= 1002; thread++) {
    items[count++] = (rl_trace_event)CALL(thread, LAUNCH, 10 * thread, 10 * thread + 30, thread);
    items[count++] = (rl_trace_event)EVENT(RL_ACTIVITY_DRIVER, LAUNCH, 10 * thread + 5, 10 * thread + 25, thread, thread);
  }
  rl_thread_times times;
  compute_thread_times(items, count, &times);
  assert_calls(&times.items[RL_MAX_THREADS].launches, 2, 60);
}

/* Every thread launches at the same time, so no call is nested. */
static void calls_that_overlap_in_further_threads_count(void **state) {
  (void)state;
  enum { THREADS = 70 };
  rl_trace_event items[THREADS];
  for (uint32_t i = 0; i < THREADS; i++) items[i] = (rl_trace_event)CALL(i + 1, LAUNCH, i, i + 50000, i + 1);
  rl_thread_times times;
  compute_thread_times(items, THREADS, &times);
  size_t launches = 0;
  int64_t launches_ns = 0;
  for (size_t i = 0; i < times.count; i++) {
    launches += times.items[i].launches.count;
    launches_ns += times.items[i].launches.time_ns;
  }
  assert_int_equal(launches, THREADS);
  assert_int_equal(launches_ns, THREADS * 50000);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(calls_count_for_their_thread),
                                     cmocka_unit_test(further_threads_share_a_row),
                                     cmocka_unit_test(nested_calls_of_further_threads_do_not_count),
                                     cmocka_unit_test(calls_that_overlap_in_further_threads_count)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
