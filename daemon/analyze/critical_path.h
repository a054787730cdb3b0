/* The critical path of a trace: the chain of operations and waits that determines when its last operation ends. The path covers
 * the window from its end back to its start without gaps, so its parts add up to the window. From an operation the path goes back
 * in one of two ways:
 *
 * - If the operation's launch call had returned when the operation's last dependency ended, the path goes to that dependency.
 *   Dependencies are the previous operation of the same stream, and the operations before the event records that the stream waits
 *   for (cudaStreamWaitEvent).
 * - Otherwise the path goes to the launch call, then back through the host work of its thread to the last synchronising call that
 *   waited for the device, then to the operation that this call waited for.
 *
 * These are the edges of Holistic Trace Analysis's critical path (launch, kernel to kernel, synchronisation). The nodes of a
 * graph and the graphs in a stream are ordered by time alone: a trace does not record the edges of graphs. An operation can start
 * before the recorded end of the operation that it waits for, mostly with programmatic dependent launch. On one stream, the order
 * of the starts decides which operation waited for which. On different streams, a node of a graph can have waited for a node that
 * it overlaps only if the overlap is at most RL_NODE_OVERLAP_MAX_NS. All functions are pure. */
#ifndef RL_ANALYZE_CRITICAL_PATH_H
#define RL_ANALYZE_CRITICAL_PATH_H

#include "analyze/time_classes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Two nodes of a graph on different streams that overlap by more than this, or by more than half of the earlier node's duration,
 * are concurrent. In graphs of a training step on an H200, nodes overlap the nodes that they wait for by up to 4.7 µs. */
#define RL_NODE_OVERLAP_MAX_NS 5000

typedef enum rl_path_part {
  RL_PATH_KERNELS, /* kernels on a GPU, CPU spans on the CPU */
  RL_PATH_COPIES,
  RL_PATH_LAUNCHES,        /* launch calls, and the time from such a call to the start of its operation */
  RL_PATH_HOST_WORK,       /* host work between launch calls of a thread */
  RL_PATH_SYNCHRONIZATION, /* from the end of the operation that a call waits for to the return of that call */
  RL_PATH_DEVICE_LATENCY,  /* a gap before an operation that was already queued */
  RL_PATH_UNKNOWN,         /* a gap of more than RL_DEVICE_LATENCY_MAX_NS before an operation that was queued */
  RL_PATH_PART_COUNT
} rl_path_part;
extern const char *const rl_path_part_names[RL_PATH_PART_COUNT]; /* "kernels" … "unknown" */

typedef struct rl_path_operations { /* the operations with this name on the path */
  uint32_t name;
  size_t count;
  int64_t time_ns;
} rl_path_operations;

typedef struct rl_critical_path {
  int64_t part_ns[RL_PATH_PART_COUNT]; /* the parts add up to the window */
  rl_path_operations *names;           /* sorted by time_ns, the largest first */
  /* operation_ns[i]: time of operation i on the path; i is an index into rl_trace_index.operations. 0: the operation is not on
   * the path, or takes no time. These times add up to the parts RL_PATH_KERNELS and RL_PATH_COPIES. */
  int64_t *operation_ns;
  size_t name_count;
  size_t operation_count;
  /* Number of operations whose predecessor is known from the order in time alone, because it or its predecessor belongs to a
   * graph. */
  size_t inferred_count;
} rl_critical_path;

/* The caller clears the result. Fails with RL_ERRNO if memory is exhausted. */
int rl_critical_path_compute(const rl_trace_index *index, rl_critical_path *path, rl_error *err);
void rl_critical_path_clear(rl_critical_path *path);
/* Returns why the path is unknown; NULL: it is known. */
const char *rl_critical_path_reason(const rl_trace_index *index, const rl_time_classes *classes);

/* The metrics that the rules of the timeline read: timeline__critical_path_host_pct and _kernels_pct. */
enum { RL_PATH_METRIC_COUNT = 2 };
/* Writes the metrics, sorted by name, and returns their number. reason: why they are NAN; NULL: they are known. */
size_t rl_critical_path_metrics(const rl_critical_path *path, const rl_time_classes *classes, const char *reason,
                                rl_metric_value metrics[RL_PATH_METRIC_COUNT]);

#ifdef __cplusplus
}
#endif
#endif
