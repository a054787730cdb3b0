/* Tests the critical path of traces in which it is known. Then tests on generated and random traces that the times of the path's
 * parts add up to the time from the start of the trace to its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/critical_path.h"
#include "trace_generator.h"

enum { A, B, LAUNCH, GRAPH, STREAM_SYNC, EVENT_SYNC, RECORD, WAIT, NAME_COUNT };
static const char *const names[NAME_COUNT] = {"a",
                                              "b",
                                              "cudaLaunchKernel_v7000",
                                              "cudaGraphLaunch_v10000",
                                              "cudaStreamSynchronize_v3020",
                                              "cudaEventSynchronize_v3020",
                                              "cudaEventRecord_v3020",
                                              "cudaStreamWaitEvent_v3020"};

#define KERNEL(name_, stream_, start, end, correlation_)                                                    \
  {                                                                                                         \
    .kind = RL_ACTIVITY_KERNEL, .name = (name_), .stream = (stream_), .start_ns = (start), .end_ns = (end), \
    .correlation = (correlation_)                                                                           \
  }
#define NODE(name_, stream_, start, end, correlation_, node)                                                \
  {                                                                                                         \
    .kind = RL_ACTIVITY_KERNEL, .name = (name_), .stream = (stream_), .start_ns = (start), .end_ns = (end), \
    .correlation = (correlation_), .graph_node = (node)                                                     \
  }
#define CALL(name_, start, end, correlation_) \
  { .kind = RL_ACTIVITY_RUNTIME, .name = (name_), .start_ns = (start), .end_ns = (end), .correlation = (correlation_) }
#define EVENT_CALL(name_, start, end, correlation_, stream_, event_)                                                   \
  {                                                                                                                    \
    .kind = RL_ACTIVITY_RUNTIME, .name = (name_), .start_ns = (start), .end_ns = (end), .correlation = (correlation_), \
    .stream = (stream_), .event = (event_)                                                                             \
  }
#define CALL_OF_THREAD(thread_, name_, start, end, correlation_)                                                       \
  {                                                                                                                    \
    .kind = RL_ACTIVITY_RUNTIME, .name = (name_), .start_ns = (start), .end_ns = (end), .correlation = (correlation_), \
    .thread = (thread_)                                                                                                \
  }

typedef struct path_case {
  const char *name;
  rl_trace_event events[14];
  int64_t part_ns[RL_PATH_PART_COUNT];
  int64_t a_ns, b_ns; /* the times of the kernels a and b on the path */

  size_t inferred_count;
} path_case;

static const path_case cases[] = {
    {"no operation", {CALL(LAUNCH, 1, 10, 1)}, {0}, 0, 0, 0},
    {"queued kernels of one stream",
     {CALL(LAUNCH, -30, -20, 1), CALL(LAUNCH, -20, -10, 2), KERNEL(A, 7, 0, 100, 1), KERNEL(B, 7, 103, 200, 2)},
     {[RL_PATH_KERNELS] = 197, [RL_PATH_DEVICE_LATENCY] = 3},
     100,
     97,
     0},
    {"a kernel starts before the recorded end of the kernel before it on the same stream",
     {CALL(LAUNCH, -30, -20, 1), CALL(LAUNCH, -20, -10, 2), KERNEL(A, 7, 0, 9000, 1), KERNEL(B, 7, 5000, 20000, 2)},
     {[RL_PATH_KERNELS] = 20000},
     5000,
     15000,
     0},
    {"a node starts before the recorded end of the node before it on its stream",
     {CALL(GRAPH, -90, -80, 1), NODE(A, 7, 0, 9000, 1, 1), NODE(B, 7, 1000, 20000, 1, 2)},
     {[RL_PATH_KERNELS] = 20000},
     1000,
     19000,
     0},
    {"a node starts before the recorded end of a node on another stream",
     {CALL(GRAPH, -90, -80, 1), NODE(B, 7, 0, 5000, 1, 1), NODE(A, 8, 10, 15000, 1, 2), NODE(B, 7, 10000, 20000, 1, 3)},
     {[RL_PATH_KERNELS] = 19990, [RL_PATH_LAUNCHES] = 10},
     9990,
     10000,
     1},
    {"nodes on two streams overlap by more than RL_NODE_OVERLAP_MAX_NS, so that they are concurrent",
     {CALL(GRAPH, -90, -80, 1), NODE(B, 7, 0, 5000, 1, 1), NODE(A, 8, 10, 15001, 1, 2), NODE(B, 7, 10000, 20000, 1, 3)},
     {[RL_PATH_KERNELS] = 15000, [RL_PATH_DEVICE_LATENCY] = 5000},
     0,
     15000,
     0},
    {"nodes on two streams overlap by more than half of the first node, so that they are concurrent",
     {CALL(GRAPH, -90, -80, 1), NODE(B, 7, 0, 5000, 1, 1), NODE(A, 8, 5010, 8012, 1, 2), NODE(B, 7, 6510, 20000, 1, 3)},
     {[RL_PATH_KERNELS] = 5000 + 13490, [RL_PATH_DEVICE_LATENCY] = 1510},
     0,
     5000 + 13490,
     0},
    {"the host launches late and never waits, so that earlier kernels are not on the path",
     {CALL(LAUNCH, -30, -20, 1), KERNEL(A, 7, 0, 100, 1), CALL(LAUNCH, 500, 510, 2), KERNEL(B, 7, 515, 600, 2)},
     {[RL_PATH_KERNELS] = 85, [RL_PATH_LAUNCHES] = 15, [RL_PATH_HOST_WORK] = 500},
     0,
     85,
     0},
    {"the host launches two kernels late, the second while the first runs",
     {CALL(LAUNCH, -30, -20, 1), KERNEL(A, 7, 0, 100, 1), CALL(LAUNCH, 400, 420, 2), CALL_OF_THREAD(0, LAUNCH, 405, 415, 3),
      KERNEL(A, 7, 430, 440, 2), CALL(LAUNCH, 500, 510, 4), KERNEL(B, 7, 515, 600, 4)},
     {[RL_PATH_KERNELS] = 85, [RL_PATH_LAUNCHES] = 35, [RL_PATH_HOST_WORK] = 480},
     0,
     85,
     0},
    {"the host waits for a kernel, works, and launches",
     {CALL(LAUNCH, -30, -20, 1), KERNEL(A, 7, 0, 100, 1), CALL(STREAM_SYNC, 20, 110, 9), CALL(LAUNCH, 500, 510, 2),
      KERNEL(B, 7, 515, 600, 2)},
     {[RL_PATH_KERNELS] = 185, [RL_PATH_SYNCHRONIZATION] = 10, [RL_PATH_HOST_WORK] = 390, [RL_PATH_LAUNCHES] = 15},
     100,
     85,
     0},
    {"a synchronising call that does not wait is host work",
     {CALL(LAUNCH, -30, -20, 1), KERNEL(A, 7, 0, 100, 1), CALL(STREAM_SYNC, 200, 210, 9), CALL(LAUNCH, 500, 510, 2),
      KERNEL(B, 7, 515, 600, 2)},
     {[RL_PATH_KERNELS] = 85, [RL_PATH_HOST_WORK] = 500, [RL_PATH_LAUNCHES] = 15},
     0,
     85,
     0},
    {"another thread waits for the kernel",
     {CALL_OF_THREAD(5, LAUNCH, -30, -20, 1), KERNEL(A, 7, 0, 100, 1), CALL_OF_THREAD(6, STREAM_SYNC, 20, 110, 9),
      CALL_OF_THREAD(5, LAUNCH, 500, 510, 2), KERNEL(B, 7, 515, 600, 2)},
     {[RL_PATH_KERNELS] = 85, [RL_PATH_HOST_WORK] = 500, [RL_PATH_LAUNCHES] = 15},
     0,
     85,
     0},
    {"a stream waits for an event of another stream, whose kernel ends last",
     {CALL(LAUNCH, -90, -80, 1), EVENT_CALL(RECORD, -70, -60, 3, 8, 4), CALL(LAUNCH, -55, -50, 4), CALL(LAUNCH, -45, -40, 2),
      EVENT_CALL(WAIT, -35, -30, 5, 7, 4), CALL(LAUNCH, -20, -10, 6), KERNEL(A, 8, 0, 90000, 1), KERNEL(B, 7, 5, 200, 2),
      KERNEL(B, 8, 90001, 91000, 4), KERNEL(B, 7, 90002, 99000, 6)},
     {[RL_PATH_KERNELS] = 90000 + 8998, [RL_PATH_DEVICE_LATENCY] = 2},
     90000,
     8998,
     0},
    {"without the stream's wait for the event, no record explains the gap",
     {CALL(LAUNCH, -90, -80, 1), CALL(LAUNCH, -45, -40, 2), CALL(LAUNCH, -20, -10, 6), KERNEL(A, 8, 0, 90000, 1),
      KERNEL(B, 7, 5, 200, 2), KERNEL(B, 7, 90002, 99000, 6)},
     {[RL_PATH_KERNELS] = 195 + 8998, [RL_PATH_LAUNCHES] = 5, [RL_PATH_UNKNOWN] = 89802},
     0,
     195 + 8998,
     0},
    {"the host waits for an event, and a later kernel runs meanwhile",
     {CALL(LAUNCH, -90, -80, 1), EVENT_CALL(RECORD, -75, -70, 3, 7, 4), CALL(LAUNCH, -60, -50, 2), KERNEL(A, 7, 0, 100, 1),
      KERNEL(B, 7, 100, 140, 2), EVENT_CALL(EVENT_SYNC, -40, 150, 5, 0, 4), CALL(LAUNCH, 160, 170, 6), KERNEL(B, 7, 175, 200, 6)},
     {[RL_PATH_KERNELS] = 125, [RL_PATH_SYNCHRONIZATION] = 50, [RL_PATH_HOST_WORK] = 10, [RL_PATH_LAUNCHES] = 15},
     100,
     25,
     0},
    {"a graph that the host launches late is not ordered by time after the graph before it",
     {CALL(GRAPH, -90, -80, 1), NODE(A, 7, 0, 100, 1, 1), CALL(GRAPH, 400, 410, 2), NODE(B, 8, 420, 500, 2, 1)},
     {[RL_PATH_KERNELS] = 80, [RL_PATH_LAUNCHES] = 20, [RL_PATH_HOST_WORK] = 400},
     0,
     80,
     0},
    {"nodes of a graph on two streams, and the graph after it, are ordered by time",
     {CALL(GRAPH, -90, -80, 1), CALL(GRAPH, -70, -60, 2), NODE(A, 7, 0, 100, 1, 1), NODE(B, 8, 101, 400, 1, 2),
      NODE(A, 7, 102, 150, 1, 3), NODE(A, 7, 403, 500, 2, 1)},
     {[RL_PATH_KERNELS] = 100 + 299 + 97, [RL_PATH_DEVICE_LATENCY] = 4},
     197,
     299,
     2},
};

static size_t count_events(const path_case *one_case) {
  size_t count = 0;
  while (count < sizeof one_case->events / sizeof *one_case->events &&
         (one_case->events[count].start_ns != 0 || one_case->events[count].end_ns != 0))
    count++;
  return count;
}

static int64_t time_of_kernel(const rl_critical_path *path, uint32_t name) {
  for (size_t i = 0; i < path->name_count; i++)
    if (path->names[i].name == name) return path->names[i].time_ns;
  return 0;
}

static void check_that_parts_add_up(const rl_trace_index *index, const rl_critical_path *path) {
  int64_t sum_ns = 0, names_ns = 0;
  size_t operations = 0;
  for (int i = 0; i < RL_PATH_PART_COUNT; i++) {
    assert_true(path->part_ns[i] >= 0);
    sum_ns += path->part_ns[i];
  }
  for (size_t i = 0; i < path->name_count; i++) {
    names_ns += path->names[i].time_ns;
    operations += path->names[i].count;
  }
  assert_int_equal(sum_ns, index->end_ns - index->start_ns);
  assert_int_equal(names_ns, path->part_ns[RL_PATH_KERNELS] + path->part_ns[RL_PATH_COPIES]);
  assert_int_equal(operations, path->operation_count);
  sum_ns = 0, operations = 0;
  for (size_t i = 0; i < index->operation_count; i++) {
    assert_true(path->operation_ns[i] >= 0);
    sum_ns += path->operation_ns[i];
    operations += path->operation_ns[i] > 0;
  }
  assert_int_equal(sum_ns, names_ns);
  assert_true(operations <= path->operation_count);
}

static void compute_path(const rl_trace_events *events, rl_trace_index *index, rl_critical_path *path) {
  rl_error err = {0};
  assert_return_code(rl_trace_index_build(events, index, &err), 0);
  assert_return_code(rl_critical_path_compute(index, path, &err), 0);
  check_that_parts_add_up(index, path);
}

static void known_critical_paths_are_found(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const path_case *one_case = &cases[i];
    const rl_trace_events events = {one_case->events, count_events(one_case), names, NAME_COUNT, NULL};
    rl_trace_index index;
    rl_critical_path path;
    compute_path(&events, &index, &path);
    for (int k = 0; k < RL_PATH_PART_COUNT; k++)
      if (path.part_ns[k] != one_case->part_ns[k])
        fail_msg("%s: %s %lld ns, not %lld", one_case->name, rl_path_part_names[k], (long long)path.part_ns[k],
                 (long long)one_case->part_ns[k]);
    if (time_of_kernel(&path, A) != one_case->a_ns || time_of_kernel(&path, B) != one_case->b_ns ||
        path.inferred_count != one_case->inferred_count)
      fail_msg("%s: a %lld, b %lld, inferred %zu", one_case->name, (long long)time_of_kernel(&path, A),
               (long long)time_of_kernel(&path, B), path.inferred_count);
    rl_critical_path_clear(&path);
    rl_trace_index_clear(&index);
  }
}

static void paths_of_generated_traces_add_up(void **state) {
  (void)state;
  static generated_trace generated;
  choose_test_seed();
  for (int i = 0; i < 300; i++) {
    rl_trace_index index;
    rl_critical_path path;
    generate_trace(&generated, (int)(random_bits() % 24));
    compute_path(&generated.events, &index, &path);
    rl_critical_path_clear(&path);
    rl_trace_index_clear(&index);
  }
}

static rl_trace_event random_event(void) {
  uint64_t bits = random_bits();
  int64_t start_ns = (int64_t)(bits % 400), end_ns = start_ns + (int64_t)(bits >> 10) % 40;
  rl_trace_event event = {.kind = bits >> 20 & 1 ? RL_ACTIVITY_KERNEL : RL_ACTIVITY_RUNTIME,
                          .name = (uint32_t)(bits >> 21) % NAME_COUNT,
                          .start_ns = start_ns,
                          .end_ns = end_ns,
                          .correlation = (uint32_t)(bits >> 30) % 12,
                          .graph_node = (uint32_t)(bits >> 36) % 3,
                          .stream = 7 + (uint32_t)(bits >> 40) % 3,
                          .thread = (uint32_t)(bits >> 50) % 2};
  return event;
}

static void paths_of_random_traces_add_up(void **state) {
  (void)state;
  for (int i = 0; i < 3000; i++) {
    rl_trace_event items[40];
    size_t count = random_bits() % 40;
    for (size_t k = 0; k < count; k++) items[k] = random_event();
    const rl_trace_events events = {items, count, names, NAME_COUNT, NULL};
    rl_trace_index index;
    rl_critical_path path;
    compute_path(&events, &index, &path);
    rl_critical_path_clear(&path);
    rl_trace_index_clear(&index);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(known_critical_paths_are_found),
                                     cmocka_unit_test(paths_of_generated_traces_add_up),
                                     cmocka_unit_test(paths_of_random_traces_add_up)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
