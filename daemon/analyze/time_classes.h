/* Divides the time of a trace into classes. The window begins with the first operation of the device and ends with the last; an
 * operation is a kernel, a copy, a memset or, on a CPU, a span. Each nanosecond of the window belongs to one class, whatever the
 * streams of the operations are, so the classes add up to the window.
 *
 * An idle interval ends when an operation starts. Its cause follows from the API call with the operation's correlation id:
 *
 *   the call has not begun    a synchronising call is in progress: synchronization; a blocking copy call: copy; else host work
 *   the call is in progress,  launch latency: the host was late. A blocking copy call: copy (the driver stages pageable memory).
 *   or began in the interval  The first launch of a kernel or graph, far longer than the later ones: first launch
 *   the call had returned     the operation was queued. Between nodes of one graph launch, or kernels: device latency. From or to
 *                             another graph launch: graph. From or to a copy: copy. More than RL_DEVICE_LATENCY_MAX_NS: unknown
 *
 * Before the call has returned, CUPTI's own work on the call's thread is profiler time, and the driver's loading of code first
 * launch. Only calls of the thread that launches the operation count: another thread that synchronises does not delay it. Pure.
 */
#ifndef RL_ANALYZE_TIME_CLASSES_H
#define RL_ANALYZE_TIME_CLASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/trace_index.h"
#include "base/error.h"
#include "model/metrics.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A gap between queued operations that is longer has a cause that no record shows, such as an event of another process. */
#define RL_DEVICE_LATENCY_MAX_NS 20000
/* The first launch of a kernel or graph is slow if it takes more than this many times the mean of at least
 * RL_FIRST_LAUNCH_MIN_LATER later ones. */
#define RL_FIRST_LAUNCH_MIN_FACTOR 4
#define RL_FIRST_LAUNCH_MIN_LATER 3

typedef enum rl_time_class {
  RL_TIME_COMPUTE,          /* kernels, no copy */
  RL_TIME_COMPUTE_AND_COPY, /* kernels and copies at once */
  RL_TIME_COPY,             /* copies and memsets, no kernel */
  RL_TIME_IDLE_HOST_WORK,
  RL_TIME_IDLE_LAUNCH_LATENCY,
  RL_TIME_IDLE_FIRST_LAUNCH,
  RL_TIME_IDLE_SYNCHRONIZATION,
  RL_TIME_IDLE_COPY,
  RL_TIME_IDLE_GRAPH,
  RL_TIME_IDLE_DEVICE_LATENCY,
  RL_TIME_IDLE_PROFILER, /* CUPTI's own work: it does not occur without a profiler */
  RL_TIME_IDLE_UNKNOWN,  /* the trace is incomplete, or no record explains the interval */
  RL_TIME_CLASS_COUNT,
  RL_TIME_FIRST_IDLE = RL_TIME_IDLE_HOST_WORK
} rl_time_class;
extern const char *const rl_time_class_names[RL_TIME_CLASS_COUNT]; /* "compute" … "idle_unknown" */
bool rl_time_class_is_idle(rl_time_class time_class);

typedef struct rl_idle_interval {
  int64_t start_ns, end_ns;
  rl_time_class time_class;
  const rl_trace_event *before, *after; /* the operations that end before and start after the gap with this interval */
  const rl_trace_event *call;           /* the API call that explains it; NULL: none */
  bool is_launched;                     /* a call launches `after`: `thread` is the thread of that call */
  uint32_t thread;
} rl_idle_interval;

typedef struct rl_time_classes {
  int64_t start_ns, end_ns; /* start and end of the window; equal if there is no operation */
  int64_t class_ns[RL_TIME_CLASS_COUNT];
  size_t intervals[RL_TIME_CLASS_COUNT]; /* number of intervals of each idle class; 0 for other classes */
  rl_idle_interval *idle;                /* sorted by time, disjoint */
  size_t idle_count;
  size_t operations;
  size_t
      unrecorded_launches; /* launch calls without an operation: the time after them is unknown until a synchronising call ends */
  size_t kernels, small_kernels; /* small: shorter than RL_SHORT_KERNEL_NS */
  int64_t small_kernels_ns;      /* sum of their durations */
  int64_t small_latency_ns;      /* part of RL_TIME_IDLE_DEVICE_LATENCY before small kernels */
  int64_t small_launch_ns;       /* part of RL_TIME_IDLE_HOST_WORK and _LAUNCH_LATENCY before small kernels outside graphs */
} rl_time_classes;

/* Receives to which operation (rl_trace_index.operations) each part of the window belongs, as the index of the operation. Busy
 * time belongs to the operation that started first of those that run, idle time to the operation that ends it. */
typedef struct rl_time_observer {
  void (*add)(void *context, size_t operation, rl_time_class time_class, int64_t time_ns);
  void *context;
} rl_time_observer;

/* The caller clears the result. Its pointers are into the index. observer: NULL: none. Fails with RL_ERRNO if memory is
 * exhausted. */
int rl_time_classes_compute(const rl_trace_index *index, const rl_time_observer *observer, rl_time_classes *classes,
                            rl_error *err);
void rl_time_classes_clear(rl_time_classes *classes);

/* The metrics that the rules of the timeline read (rules_timeline.c): of each class timeline__CLASS_pct of the window,
 * timeline__CLASS_us and, if it is idle, timeline__CLASS_intervals; and of the whole trace. */
enum { RL_TIME_METRIC_COUNT = 3 * RL_TIME_CLASS_COUNT + 6 };
/* Writes the metrics, sorted by name, and returns their number. Percentages are NAN if the window is empty. Names are static. */
size_t rl_time_classes_metrics(const rl_time_classes *classes, rl_metric_value metrics[RL_TIME_METRIC_COUNT]);

#ifdef __cplusplus
}
#endif
#endif
