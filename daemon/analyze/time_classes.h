/* Divides the time of a trace into classes. The window begins when the first operation of the device starts and ends when the
 * last one ends; an operation is a kernel, a copy, a memset or, on a CPU, a span. Each nanosecond of the window belongs to one
 * class, whatever the streams of the operations are, so the classes add up to the window.
 *
 * A gap is time in which no operation runs; it ends when an operation starts. The classes of a gap follow from the launch call of
 * that operation, which is the API call with its correlation id:
 *
 * - An instant before the call begins is `synchronization` while the call's thread is in a synchronising call, `copy` while it is
 *   in a blocking copy call, otherwise `host work`.
 * - An instant after the call began is `launch latency` if the call had not returned before the gap, with two exceptions: it is
 *   `copy` if the call is a blocking copy call (the driver stages pageable memory), and `first launch` if the call is the first
 *   launch of a kernel or graph and takes far longer than the later launches.
 * - In both cases, time in which the call's thread does CUPTI's own work is `profiler`, and time in which the driver loads
 *   code on that thread is `first launch`.
 * - If the call had returned before the gap, the operation was queued. Then the whole gap has the first class that applies:
 *   `graph` if the operation before or after the gap belongs to a graph launch, unless both belong to the same graph launch;
 *   `unknown` if the gap is longer than RL_DEVICE_LATENCY_MAX_NS; `copy` if one of the two operations is a copy from or to host
 *   memory; `device latency` otherwise, when both are nodes of one graph launch or both are operations outside graphs.
 *
 * A gap is also `unknown` if the trace is incomplete or the launch call was not recorded, and `host work` before a span of a CPU.
 * Calls of other threads do not count: another thread that synchronises does not delay the launch. All functions are pure. */
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

/* The longest gap before a queued operation that counts as device latency. A longer gap has a cause that no record shows, such as
 * an event of another process. */
#define RL_DEVICE_LATENCY_MAX_NS 20000
/* The first launch of a kernel or graph is slow if it takes more than this many times the mean of at least
 * RL_FIRST_LAUNCH_MIN_LATER later launches. */
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
  const rl_trace_event *before, *after; /* the gap that contains the interval lies between these two operations */
  const rl_trace_event *call;           /* the API call that explains the interval; NULL: none */
  bool has_launch_call;                 /* the launch call of `after` was recorded */
  uint32_t launch_thread;               /* thread of that call */
} rl_idle_interval;

typedef struct rl_time_classes {
  int64_t start_ns, end_ns; /* start and end of the window; equal if there is no operation */
  int64_t class_ns[RL_TIME_CLASS_COUNT];
  size_t interval_counts[RL_TIME_CLASS_COUNT]; /* number of intervals of each idle class; 0 for other classes */
  rl_idle_interval *idle;                      /* sorted by time, disjoint */
  size_t idle_count;
  size_t operation_count;
  int64_t host_copies_alone_ns, host_copies_beside_ns; /* copies from or to host memory run: without and beside kernels */
  int64_t device_copies_alone_ns;                      /* memsets and copies of devices run, no kernel and no other copy */
  /* Launch calls whose operation was not recorded. Idle time after such a call is RL_TIME_IDLE_UNKNOWN until the next
   * synchronising call ends. */
  size_t unrecorded_launch_count;
  size_t kernel_count;
  /* Short kernels take less than RL_SHORT_KERNEL_NS. The names of their metrics contain "small_kernels". */
  size_t short_kernel_count;
  int64_t short_kernels_ns;                       /* sum of their durations */
  int64_t device_latency_before_short_kernels_ns; /* part of RL_TIME_IDLE_DEVICE_LATENCY */
  int64_t host_time_before_short_kernels_ns;      /* part of RL_TIME_IDLE_HOST_WORK and _LAUNCH_LATENCY; only outside graphs */
} rl_time_classes;

/* Receives each part of the window with the operation to which it belongs: an index into rl_trace_index.operations. Busy time
 * belongs to the running operation that started first, idle time to the operation at whose start it ends. */
typedef struct rl_time_observer {
  void (*add)(void *context, size_t operation, rl_time_class time_class, int64_t time_ns);
  void *context;
} rl_time_observer;

/* The caller clears the result. The result points into the index. observer: NULL for none. Fails with RL_ERRNO if memory is
 * exhausted. */
int rl_time_classes_compute(const rl_trace_index *index, const rl_time_observer *observer, rl_time_classes *classes,
                            rl_error *err);
void rl_time_classes_clear(rl_time_classes *classes);

/* The metrics that the rules of the timeline read (rules_timeline.c). For each class: timeline__CLASS_pct, in percent of the
 * window, timeline__CLASS_us, and timeline__CLASS_intervals (NAN unless the class is idle). For the whole trace:
 * timeline__host_copies_alone_pct, _host_copies_beside_pct, _device_copies_alone_pct, _small_kernels, _small_kernels_latency_pct,
 * _small_kernels_launch_pct, _small_kernels_pct, _unrecorded_launches and _window_us. */
enum { RL_TIME_METRIC_COUNT = 3 * RL_TIME_CLASS_COUNT + 9 };
/* Writes the metrics, sorted by name, and returns their number. Percentages are NAN if the window is empty. Names are static.
 * no_copies_reason: why the metrics of copies are NAN; NULL: they have values. */
size_t rl_time_classes_metrics(const rl_time_classes *classes, const char *no_copies_reason,
                               rl_metric_value metrics[RL_TIME_METRIC_COUNT]);

#ifdef __cplusplus
}
#endif
#endif
