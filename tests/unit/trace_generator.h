/* Generates traces whose idle time has known causes. A trace is a sequence of random segments. Each segment adds to class_ns the
 * time that the analysis must find in each class. The device has one stream. Nearly every segment ends with a kernel. */
#ifndef RL_TESTS_TRACE_GENERATOR_H
#define RL_TESTS_TRACE_GENERATOR_H

#include <string.h>

#include "analyze/time_classes.h"
#include "model/records.h"
#include "random_numbers.h"

enum { MAX_GENERATED_EVENTS = 4096, LAUNCHING_THREAD = 11, OTHER_THREAD = 12 };

enum {
  GENERATED_KERNEL,
  GENERATED_FIRST_KERNEL, /* its first launch call takes longer than the later ones */
  GENERATED_COPY_OPERATION,
  GENERATED_LAUNCH_CALL,
  GENERATED_GRAPH_LAUNCH_CALL,
  GENERATED_SYNCHRONIZE_CALL,
  GENERATED_MEMCPY_CALL,
  GENERATED_MEMCPY_ASYNC_CALL,
  GENERATED_LOADING_OVERHEAD,
  GENERATED_CUPTI_OVERHEAD,
  GENERATED_BEGIN_CAPTURE_CALL,
  GENERATED_END_CAPTURE_CALL,
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
                                                                  "CUPTI instruments",
                                                                  "cudaStreamBeginCapture_v10000",
                                                                  "cudaStreamEndCapture_v10000"};

typedef struct generated_trace {
  rl_trace_event items[MAX_GENERATED_EVENTS];
  size_t count;
  rl_trace_events events;
  int64_t now_ns; /* the end of the last operation */
  uint32_t correlation;
  int64_t class_ns[RL_TIME_CLASS_COUNT]; /* the expected result of the analysis */
  bool has_first_kernel;
} generated_trace;

/* Returns a number from 1 to max_ns. */
static inline int64_t random_duration_ns(int64_t max_ns) { return 1 + (int64_t)(random_bits() % (uint64_t)max_ns); }

static inline void generate_event(generated_trace *trace, uint32_t kind, uint32_t name, int64_t start_ns, int64_t end_ns,
                                  uint32_t correlation, uint32_t thread) {
  trace->items[trace->count++] = (rl_trace_event){.kind = kind,
                                                  .name = name,
                                                  .start_ns = start_ns,
                                                  .end_ns = end_ns,
                                                  .correlation = correlation,
                                                  .thread = thread,
                                                  .stream = 7};
}

static inline void generate_call(generated_trace *trace, uint32_t name, int64_t start_ns, int64_t end_ns, uint32_t correlation) {
  generate_event(trace, RL_ACTIVITY_RUNTIME, name, start_ns, end_ns, correlation, LAUNCHING_THREAD);
}

/* Adds an operation that starts at start_ns and has a random duration. Adds this duration to class_ns. The caller adds the idle
 * time before the operation. node: number of the operation's node in its graph; 0: the operation belongs to no graph. */
static inline void generate_operation(generated_trace *trace, uint32_t kind, uint32_t name, int64_t start_ns, uint32_t node) {
  int64_t end_ns = start_ns + random_duration_ns(30000);
  trace->class_ns[kind == RL_ACTIVITY_KERNEL ? RL_TIME_COMPUTE : RL_TIME_COPY] += end_ns - start_ns;
  generate_event(trace, kind, name, start_ns, end_ns, trace->correlation, 0);
  trace->items[trace->count - 1].graph_node = node;
  trace->now_ns = end_ns;
}

/* Adds a launch call of call_ns, which starts delay_ns after the last operation has ended, and its kernel, which starts after the
 * call. Adds the time from the start of the call to the start of the kernel to time_class. */
static inline void generate_launch(generated_trace *trace, int64_t delay_ns, uint32_t kernel, int64_t call_ns,
                                   rl_time_class time_class) {
  int64_t call_start_ns = trace->now_ns + delay_ns, start_ns = call_start_ns + call_ns + random_duration_ns(3000);
  trace->class_ns[time_class] += start_ns - call_start_ns;
  generate_call(trace, GENERATED_LAUNCH_CALL, call_start_ns, call_start_ns + call_ns, ++trace->correlation);
  generate_operation(trace, RL_ACTIVITY_KERNEL, kernel, start_ns, 0);
}

/* Adds an operation that starts gap_ns after the end of the operation before it. The call that issued it returned before that
 * end. Adds gap_ns to time_class. */
static inline void generate_queued_operation(generated_trace *trace, uint32_t kind, uint32_t call, int64_t gap_ns,
                                             rl_time_class time_class) {
  uint32_t name = kind == RL_ACTIVITY_KERNEL ? GENERATED_KERNEL : GENERATED_COPY_OPERATION;
  trace->class_ns[time_class] += gap_ns;
  generate_call(trace, call, trace->now_ns - 40, trace->now_ns - 20, ++trace->correlation);
  generate_operation(trace, kind, name, trace->now_ns + gap_ns, 0);
}

/* Adds a segment in which the launching thread synchronises, works on the host, and launches. With by_other_thread, another
 * thread synchronises. The launching thread then does not wait, so the whole idle time is its host work. */
static inline void generate_synchronization(generated_trace *trace, bool by_other_thread) {
  int64_t synchronizing_ns = random_duration_ns(9000), working_ns = random_duration_ns(9000);
  generate_event(trace, RL_ACTIVITY_RUNTIME, GENERATED_SYNCHRONIZE_CALL, trace->now_ns - 10, trace->now_ns + synchronizing_ns,
                 ++trace->correlation, by_other_thread ? OTHER_THREAD : LAUNCHING_THREAD);
  trace->class_ns[by_other_thread ? RL_TIME_IDLE_HOST_WORK : RL_TIME_IDLE_SYNCHRONIZATION] += synchronizing_ns;
  trace->class_ns[RL_TIME_IDLE_HOST_WORK] += working_ns;
  generate_launch(trace, synchronizing_ns + working_ns, GENERATED_KERNEL, random_duration_ns(5000), RL_TIME_IDLE_LAUNCH_LATENCY);
}

/* Adds a blocking copy call, which stages pageable memory, and the copy, which starts before the call returns. */
static inline void generate_blocking_copy(generated_trace *trace) {
  int64_t staging_ns = random_duration_ns(9000), start_ns = trace->now_ns + staging_ns;
  trace->class_ns[RL_TIME_IDLE_COPY] += staging_ns;
  generate_call(trace, GENERATED_MEMCPY_CALL, trace->now_ns, start_ns + 1, ++trace->correlation);
  generate_operation(trace, RL_ACTIVITY_MEMCPY, GENERATED_COPY_OPERATION, start_ns, 0);
}

/* Adds two launches of a graph of three nodes, then a kernel. Each call has returned before the device becomes idle. */
static inline void generate_graphs(generated_trace *trace) {
  for (int launch = 0; launch < 2; launch++) {
    int64_t gap_ns = random_duration_ns(50000);
    trace->class_ns[RL_TIME_IDLE_GRAPH] += gap_ns;
    generate_call(trace, GENERATED_GRAPH_LAUNCH_CALL, trace->now_ns - 40, trace->now_ns - 20, ++trace->correlation);
    generate_operation(trace, RL_ACTIVITY_KERNEL, GENERATED_KERNEL, trace->now_ns + gap_ns, 1);
    for (uint32_t node = 2; node <= 3; node++) {
      int64_t latency_ns = random_duration_ns(2000);
      trace->class_ns[RL_TIME_IDLE_DEVICE_LATENCY] += latency_ns;
      generate_operation(trace, RL_ACTIVITY_KERNEL, GENERATED_KERNEL, trace->now_ns + latency_ns, node);
    }
  }
  generate_queued_operation(trace, RL_ACTIVITY_KERNEL, GENERATED_LAUNCH_CALL, 300, RL_TIME_IDLE_GRAPH);
}

/* Adds a graph launch whose operations CUPTI did not record, a synchronisation that waits for them, and a launch. The class of
 * the time of the synchronisation is unknown. */
static inline void generate_unrecorded_graph(generated_trace *trace) {
  int64_t working_ns = random_duration_ns(9000), unknown_ns = random_duration_ns(900000);
  trace->class_ns[RL_TIME_IDLE_HOST_WORK] += working_ns + 100;
  trace->class_ns[RL_TIME_IDLE_UNKNOWN] += unknown_ns;
  generate_call(trace, GENERATED_GRAPH_LAUNCH_CALL, trace->now_ns + working_ns, trace->now_ns + working_ns + 1,
                ++trace->correlation);
  generate_call(trace, GENERATED_SYNCHRONIZE_CALL, trace->now_ns + working_ns + 1, trace->now_ns + working_ns + unknown_ns,
                ++trace->correlation);
  generate_launch(trace, working_ns + unknown_ns + 100, GENERATED_KERNEL, 50, RL_TIME_IDLE_LAUNCH_LATENCY);
}

/* Adds a launch call that contains an overhead of the driver or of CUPTI. */
static inline void generate_overhead(generated_trace *trace, uint32_t name, rl_time_class time_class) {
  int64_t overhead_ns = random_duration_ns(500000), call_ns = overhead_ns + 2, delay_ns = random_duration_ns(1000);
  trace->class_ns[RL_TIME_IDLE_HOST_WORK] += delay_ns;
  trace->class_ns[time_class] += overhead_ns;
  trace->class_ns[RL_TIME_IDLE_LAUNCH_LATENCY] -= overhead_ns;
  generate_event(trace, RL_ACTIVITY_OVERHEAD, name, trace->now_ns + delay_ns + 1, trace->now_ns + delay_ns + 1 + overhead_ns,
                 trace->correlation + 1, 0);
  generate_launch(trace, delay_ns, GENERATED_KERNEL, call_ns, RL_TIME_IDLE_LAUNCH_LATENCY);
}

/* Adds launches of GENERATED_FIRST_KERNEL. The call of the first launch takes more than RL_FIRST_LAUNCH_MIN_FACTOR times as long
 * as the calls of the later launches. Does nothing if the trace already has these launches. */
static inline void generate_first_launch(generated_trace *trace) {
  int64_t later_ns = 1 + random_duration_ns(3000), first_ns = RL_FIRST_LAUNCH_MIN_FACTOR * later_ns + 1;
  if (trace->has_first_kernel) return;
  trace->has_first_kernel = true;
  generate_launch(trace, 0, GENERATED_FIRST_KERNEL, first_ns, RL_TIME_IDLE_FIRST_LAUNCH);
  for (int i = 0; i < RL_FIRST_LAUNCH_MIN_LATER; i++)
    generate_launch(trace, 0, GENERATED_FIRST_KERNEL, later_ns, RL_TIME_IDLE_LAUNCH_LATENCY);
}

/* Adds a launch for which the host works after the last operation has ended. */
static inline void generate_host_work(generated_trace *trace) {
  int64_t working_ns = random_duration_ns(90000);
  trace->class_ns[RL_TIME_IDLE_HOST_WORK] += working_ns;
  generate_launch(trace, working_ns, GENERATED_KERNEL, random_duration_ns(5000), RL_TIME_IDLE_LAUNCH_LATENCY);
}

/* Adds a stream capture of three launches, which launch nothing, and a launch. */
static inline void generate_capture(generated_trace *trace) {
  int64_t start_ns = trace->now_ns, capturing_ns = 5 * random_duration_ns(3000);
  trace->class_ns[RL_TIME_IDLE_HOST_WORK] += capturing_ns;
  for (uint32_t i = 0; i < 5; i++)
    generate_call(trace,
                  i == 0   ? GENERATED_BEGIN_CAPTURE_CALL
                  : i == 4 ? GENERATED_END_CAPTURE_CALL
                           : GENERATED_LAUNCH_CALL,
                  start_ns + i * capturing_ns / 5, start_ns + (i + 1) * capturing_ns / 5, ++trace->correlation);
  generate_launch(trace, capturing_ns, GENERATED_KERNEL, 50, RL_TIME_IDLE_LAUNCH_LATENCY);
}

static inline void generate_segment(generated_trace *trace) {
  int64_t latency_ns = random_duration_ns(RL_DEVICE_LATENCY_MAX_NS);
  switch (random_bits() % 13) {
    case 0: generate_host_work(trace); break;
    case 1:
      generate_queued_operation(trace, RL_ACTIVITY_KERNEL, GENERATED_LAUNCH_CALL, latency_ns, RL_TIME_IDLE_DEVICE_LATENCY);
      break;
    case 2:
      generate_queued_operation(trace, RL_ACTIVITY_KERNEL, GENERATED_LAUNCH_CALL, RL_DEVICE_LATENCY_MAX_NS + latency_ns,
                                RL_TIME_IDLE_UNKNOWN);
      break;
    case 3:
      generate_queued_operation(trace, RL_ACTIVITY_MEMCPY, GENERATED_MEMCPY_ASYNC_CALL, latency_ns, RL_TIME_IDLE_COPY);
      generate_queued_operation(trace, RL_ACTIVITY_KERNEL, GENERATED_LAUNCH_CALL, latency_ns, RL_TIME_IDLE_COPY);
      break;
    case 4: generate_synchronization(trace, false); break;
    case 5: generate_synchronization(trace, true); break;
    case 6:
      generate_blocking_copy(trace);
      generate_launch(trace, 1, GENERATED_KERNEL, 1000, RL_TIME_IDLE_LAUNCH_LATENCY);
      trace->class_ns[RL_TIME_IDLE_HOST_WORK]++;
      break;
    case 7: generate_graphs(trace); break;
    case 8: generate_unrecorded_graph(trace); break;
    case 9: generate_overhead(trace, GENERATED_LOADING_OVERHEAD, RL_TIME_IDLE_FIRST_LAUNCH); break;
    case 10: generate_overhead(trace, GENERATED_CUPTI_OVERHEAD, RL_TIME_IDLE_PROFILER); break;
    case 11: generate_capture(trace); break;
    default: generate_first_launch(trace);
  }
}

/* Fills the trace with a kernel and then `segments` random segments. The last event on the device is a kernel. */
static inline void generate_trace(generated_trace *trace, int segments) {
  memset(trace, 0, sizeof *trace);
  generate_call(trace, GENERATED_LAUNCH_CALL, -2, -1, ++trace->correlation);
  generate_operation(trace, RL_ACTIVITY_KERNEL, GENERATED_KERNEL, 0, 0);
  for (int i = 0; i < segments; i++) generate_segment(trace);
  trace->events = (rl_trace_events){trace->items, trace->count, generated_names, GENERATED_NAME_COUNT, NULL};
}

#endif
