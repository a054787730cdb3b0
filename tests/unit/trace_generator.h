/* Generates traces with known causes of idle time: segments of random durations, each with the class that its time must have. The
 * device has one stream, which runs an operation at the end of most segments. */
#ifndef RL_TESTS_TRACE_GENERATOR_H
#define RL_TESTS_TRACE_GENERATOR_H

#include <string.h>

#include "analyze/time_classes.h"
#include "model/records.h"
#include "random_numbers.h"

enum { GENERATED_MAX_EVENTS = 4096, LAUNCHING_THREAD = 11, OTHER_THREAD = 12 };

enum {
  GENERATED_KERNEL,
  GENERATED_FIRST_KERNEL, /* its first launch call takes longer than the later ones */
  GENERATED_COPY,
  GENERATED_LAUNCH,
  GENERATED_GRAPH_LAUNCH,
  GENERATED_SYNCHRONIZE,
  GENERATED_MEMCPY,
  GENERATED_MEMCPY_ASYNC,
  GENERATED_LOADING,
  GENERATED_INSTRUMENTATION,
  GENERATED_NAME_COUNT
};
static const char *const generated_names[GENERATED_NAME_COUNT] = {"kernel",
                                                                  "first kernel",
                                                                  "memcpy HtoD",
                                                                  "cudaLaunchKernel_v7000",
                                                                  "cudaGraphLaunch_v10000",
                                                                  "cudaStreamSynchronize_v3020",
                                                                  "cudaMemcpy_v3020",
                                                                  "cudaMemcpyAsync_v3020",
                                                                  "driver loads a function",
                                                                  "CUPTI instruments"};

typedef struct generated_trace {
  rl_trace_event items[GENERATED_MAX_EVENTS];
  size_t count;
  rl_trace_events events;
  int64_t now_ns; /* the end of the last operation */
  uint32_t correlation;
  int64_t class_ns[RL_TIME_CLASS_COUNT];
  bool has_first_kernel;
} generated_trace;

static inline int64_t random_ns(int64_t max_ns) { return 1 + (int64_t)(random_bits() % (uint64_t)max_ns); }

static inline void generate_event(generated_trace *t, uint32_t kind, uint32_t name, int64_t start_ns, int64_t end_ns,
                                  uint32_t correlation, uint32_t thread) {
  t->items[t->count++] = (rl_trace_event){.kind = kind,
                                          .name = name,
                                          .start_ns = start_ns,
                                          .end_ns = end_ns,
                                          .correlation = correlation,
                                          .thread = thread,
                                          .stream = 7};
}

static inline void generate_call(generated_trace *t, uint32_t name, int64_t start_ns, int64_t end_ns, uint32_t correlation) {
  generate_event(t, RL_ACTIVITY_RUNTIME, name, start_ns, end_ns, correlation, LAUNCHING_THREAD);
}

/* Runs an operation after an idle time whose classes the caller has added. */
static inline void generate_operation(generated_trace *t, uint32_t kind, uint32_t name, int64_t start_ns, uint32_t node) {
  int64_t end_ns = start_ns + random_ns(30000);
  t->class_ns[kind == RL_ACTIVITY_KERNEL ? RL_TIME_COMPUTE : RL_TIME_COPY] += end_ns - start_ns;
  generate_event(t, kind, name, start_ns, end_ns, t->correlation, 0);
  t->items[t->count - 1].graph_node = node;
  t->now_ns = end_ns;
}

/* A launch call at now_ns + late_ns; the kernel starts after it. The time from the call to the start of
 * the kernel is added to time_class. */
static inline void generate_late_launch(generated_trace *t, int64_t late_ns, uint32_t kernel, int64_t call_ns,
                                        rl_time_class time_class) {
  int64_t call_start_ns = t->now_ns + late_ns, start_ns = call_start_ns + call_ns + random_ns(3000);
  t->class_ns[time_class] += start_ns - call_start_ns;
  generate_call(t, GENERATED_LAUNCH, call_start_ns, call_start_ns + call_ns, ++t->correlation);
  generate_operation(t, RL_ACTIVITY_KERNEL, kernel, start_ns, 0);
}

/* An operation whose call had returned when the operation before it ended. */
static inline void generate_queued(generated_trace *t, uint32_t kind, uint32_t call, int64_t gap_ns, rl_time_class time_class) {
  uint32_t name = kind == RL_ACTIVITY_KERNEL ? GENERATED_KERNEL : GENERATED_COPY;
  t->class_ns[time_class] += gap_ns;
  generate_call(t, call, t->now_ns - 40, t->now_ns - 20, ++t->correlation);
  generate_operation(t, kind, name, t->now_ns + gap_ns, 0);
}

/* Adds a part in which the launching thread synchronises, works, and launches. With by_other_thread, another thread
 * synchronises, which explains no idle time: all of it is work of the launching thread. */
static inline void generate_synchronization(generated_trace *t, bool by_other_thread) {
  int64_t synchronizing_ns = random_ns(9000), working_ns = random_ns(9000);
  generate_event(t, RL_ACTIVITY_RUNTIME, GENERATED_SYNCHRONIZE, t->now_ns - 10, t->now_ns + synchronizing_ns, ++t->correlation,
                 by_other_thread ? OTHER_THREAD : LAUNCHING_THREAD);
  t->class_ns[by_other_thread ? RL_TIME_IDLE_HOST_WORK : RL_TIME_IDLE_SYNCHRONIZATION] += synchronizing_ns;
  t->class_ns[RL_TIME_IDLE_HOST_WORK] += working_ns;
  generate_late_launch(t, synchronizing_ns + working_ns, GENERATED_KERNEL, random_ns(5000), RL_TIME_IDLE_LAUNCH_LATENCY);
}

/* A blocking copy call stages pageable memory, then the copy runs. */
static inline void generate_blocking_copy(generated_trace *t) {
  int64_t staging_ns = random_ns(9000), start_ns = t->now_ns + staging_ns;
  t->class_ns[RL_TIME_IDLE_COPY] += staging_ns;
  generate_call(t, GENERATED_MEMCPY, t->now_ns, start_ns + 1, ++t->correlation);
  generate_operation(t, RL_ACTIVITY_MEMCPY, GENERATED_COPY, start_ns, 0);
}

/* Adds two launches of a graph of three nodes, both queued in time. */
static inline void generate_graphs(generated_trace *t) {
  for (int launch = 0; launch < 2; launch++) {
    int64_t gap_ns = random_ns(50000);
    t->class_ns[RL_TIME_IDLE_GRAPH] += gap_ns;
    generate_call(t, GENERATED_GRAPH_LAUNCH, t->now_ns - 40, t->now_ns - 20, ++t->correlation);
    generate_operation(t, RL_ACTIVITY_KERNEL, GENERATED_KERNEL, t->now_ns + gap_ns, 1);
    for (uint32_t node = 2; node <= 3; node++) {
      int64_t latency_ns = random_ns(2000);
      t->class_ns[RL_TIME_IDLE_DEVICE_LATENCY] += latency_ns;
      generate_operation(t, RL_ACTIVITY_KERNEL, GENERATED_KERNEL, t->now_ns + latency_ns, node);
    }
  }
  generate_queued(t, RL_ACTIVITY_KERNEL, GENERATED_LAUNCH, 300, RL_TIME_IDLE_GRAPH);
}

/* A graph launch whose operations CUPTI did not record, until the thread synchronises. */
static inline void generate_unrecorded_graph(generated_trace *t) {
  int64_t working_ns = random_ns(9000), unknown_ns = random_ns(900000);
  t->class_ns[RL_TIME_IDLE_HOST_WORK] += working_ns + 100;
  t->class_ns[RL_TIME_IDLE_UNKNOWN] += unknown_ns;
  generate_call(t, GENERATED_GRAPH_LAUNCH, t->now_ns + working_ns, t->now_ns + working_ns + 1, ++t->correlation);
  generate_call(t, GENERATED_SYNCHRONIZE, t->now_ns + working_ns + 1, t->now_ns + working_ns + unknown_ns, ++t->correlation);
  generate_late_launch(t, working_ns + unknown_ns + 100, GENERATED_KERNEL, 50, RL_TIME_IDLE_LAUNCH_LATENCY);
}

/* The launch call contains an overhead of the driver or of CUPTI. */
static inline void generate_overhead(generated_trace *t, uint32_t name, rl_time_class time_class) {
  int64_t overhead_ns = random_ns(500000), call_ns = overhead_ns + 2, late_ns = random_ns(1000);
  t->class_ns[RL_TIME_IDLE_HOST_WORK] += late_ns;
  t->class_ns[time_class] += overhead_ns;
  t->class_ns[RL_TIME_IDLE_LAUNCH_LATENCY] -= overhead_ns;
  generate_event(t, RL_ACTIVITY_OVERHEAD, name, t->now_ns + late_ns + 1, t->now_ns + late_ns + 1 + overhead_ns,
                 t->correlation + 1, 0);
  generate_late_launch(t, late_ns, GENERATED_KERNEL, call_ns, RL_TIME_IDLE_LAUNCH_LATENCY);
}

/* The first launch of a kernel takes more than RL_FIRST_LAUNCH_MIN_FACTOR times as long as the later ones. */
static inline void generate_first_launch(generated_trace *t) {
  int64_t later_ns = 1 + random_ns(3000), first_ns = RL_FIRST_LAUNCH_MIN_FACTOR * later_ns + 1;
  if (t->has_first_kernel) return;
  t->has_first_kernel = true;
  generate_late_launch(t, 0, GENERATED_FIRST_KERNEL, first_ns, RL_TIME_IDLE_FIRST_LAUNCH);
  for (int i = 0; i < RL_FIRST_LAUNCH_MIN_LATER; i++)
    generate_late_launch(t, 0, GENERATED_FIRST_KERNEL, later_ns, RL_TIME_IDLE_LAUNCH_LATENCY);
}

static inline void generate_host_work(generated_trace *t) {
  int64_t working_ns = random_ns(90000);
  t->class_ns[RL_TIME_IDLE_HOST_WORK] += working_ns;
  generate_late_launch(t, working_ns, GENERATED_KERNEL, random_ns(5000), RL_TIME_IDLE_LAUNCH_LATENCY);
}

static inline void generate_segment(generated_trace *t) {
  int64_t latency_ns = random_ns(RL_DEVICE_LATENCY_MAX_NS);
  switch (random_bits() % 12) {
    case 0: generate_host_work(t); break;
    case 1: generate_queued(t, RL_ACTIVITY_KERNEL, GENERATED_LAUNCH, latency_ns, RL_TIME_IDLE_DEVICE_LATENCY); break;
    case 2:
      generate_queued(t, RL_ACTIVITY_KERNEL, GENERATED_LAUNCH, RL_DEVICE_LATENCY_MAX_NS + latency_ns, RL_TIME_IDLE_UNKNOWN);
      break;
    case 3:
      generate_queued(t, RL_ACTIVITY_MEMCPY, GENERATED_MEMCPY_ASYNC, latency_ns, RL_TIME_IDLE_COPY);
      generate_queued(t, RL_ACTIVITY_KERNEL, GENERATED_LAUNCH, latency_ns, RL_TIME_IDLE_COPY);
      break;
    case 4: generate_synchronization(t, false); break;
    case 5: generate_synchronization(t, true); break;
    case 6:
      generate_blocking_copy(t);
      generate_late_launch(t, 1, GENERATED_KERNEL, 1000, RL_TIME_IDLE_LAUNCH_LATENCY);
      t->class_ns[RL_TIME_IDLE_HOST_WORK]++;
      break;
    case 7: generate_graphs(t); break;
    case 8: generate_unrecorded_graph(t); break;
    case 9: generate_overhead(t, GENERATED_LOADING, RL_TIME_IDLE_FIRST_LAUNCH); break;
    case 10: generate_overhead(t, GENERATED_INSTRUMENTATION, RL_TIME_IDLE_PROFILER); break;
    default: generate_first_launch(t);
  }
}

/* Fills the trace with `segments` random segments. It begins and ends with a kernel. */
static inline void generate_trace(generated_trace *t, int segments) {
  memset(t, 0, sizeof *t);
  generate_call(t, GENERATED_LAUNCH, -2, -1, ++t->correlation);
  generate_operation(t, RL_ACTIVITY_KERNEL, GENERATED_KERNEL, 0, 0);
  for (int i = 0; i < segments; i++) generate_segment(t);
  t->events = (rl_trace_events){t->items, t->count, generated_names, GENERATED_NAME_COUNT, NULL};
}

#endif
