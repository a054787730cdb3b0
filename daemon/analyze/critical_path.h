/* The critical path of a trace: the chain of operations and waits that determines when its last operation ends. A path goes back
 * from the end of the window to its start without a hole, so its parts add up to the window. It goes from an operation
 *
 *   to the operation that ended last of those that it waits for: the one before it in its stream, and those before the event
 *   records that its stream waits for (cudaStreamWaitEvent), if the launch call had returned by then;
 *   else to its launch call, and from there back through the host work of that thread to the last synchronising call that waited
 *   for the device, and to the operation that ended this call.
 *
 * These are the edges of Holistic Trace Analysis's critical path (launch, kernel to kernel, synchronisation). The nodes of a
 * graph and the graphs in a stream are ordered by time alone: a trace has no edges of graphs. Pure. */
#ifndef RL_ANALYZE_CRITICAL_PATH_H
#define RL_ANALYZE_CRITICAL_PATH_H

#include "analyze/time_classes.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rl_path_part {
  RL_PATH_KERNELS, /* on a CPU: spans */
  RL_PATH_COPIES,
  RL_PATH_LAUNCHES,        /* launch calls, and the time from such a call to the start of its operation */
  RL_PATH_HOST_WORK,       /* of a thread between launch calls */
  RL_PATH_SYNCHRONIZATION, /* from the end of the operation that a call waits for to the return of that call */
  RL_PATH_DEVICE_LATENCY,  /* before an operation that was queued */
  RL_PATH_UNKNOWN,         /* a gap of more than RL_DEVICE_LATENCY_MAX_NS before an operation that was queued */
  RL_PATH_PART_COUNT
} rl_path_part;
extern const char *const rl_path_part_names[RL_PATH_PART_COUNT]; /* "kernels" … "unknown" */

typedef struct rl_path_operations { /* the operations of a name on the path */
  uint32_t name;
  size_t count;
  int64_t time_ns;
} rl_path_operations;

typedef struct rl_critical_path {
  int64_t part_ns[RL_PATH_PART_COUNT]; /* add up to the window */
  rl_path_operations *names;           /* by time, the most first */
  size_t name_count;
  size_t operations; /* on the path */
  size_t inferred;   /* those whose predecessor follows from time alone, because a graph launched one of the two */
} rl_critical_path;

/* The caller clears the result. RL_ERRNO: out of memory. */
int rl_critical_path_compute(const rl_trace_index *index, rl_critical_path *path, rl_error *err);
void rl_critical_path_clear(rl_critical_path *path);
/* Returns why the path is unknown; NULL: it is known. */
const char *rl_critical_path_reason(const rl_trace_index *index, const rl_time_classes *classes);

/* The metrics that the rules of the timeline read. */
enum { RL_PATH_METRIC_COUNT = 2 };
/* Writes the metrics, sorted by name, and returns their number. reason: why they are NAN; NULL: they are known. */
size_t rl_critical_path_metrics(const rl_critical_path *path, const rl_time_classes *classes, const char *reason,
                                rl_metric_value metrics[RL_PATH_METRIC_COUNT]);

#ifdef __cplusplus
}
#endif
#endif
