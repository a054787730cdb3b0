/* The launch queue over time: the operations whose launch call has returned but that have not started. An empty queue while the
 * device is idle means that the host launches too late. All functions are pure. */
#ifndef RL_ANALYZE_LAUNCH_QUEUE_H
#define RL_ANALYZE_LAUNCH_QUEUE_H

#include "analyze/time_classes.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RL_QUEUE_SLICES = 100 };

typedef struct rl_queue_depth {
  uint32_t stream;
  size_t operation_count;           /* operations with a recorded launch call */
  int64_t minimum, median, maximum; /* median: the depth is at most this for half of the window */
  int64_t empty_ns;                 /* part of the window in which the queue is empty */
} rl_queue_depth;

typedef struct rl_launch_queue {
  rl_queue_depth total;    /* depth over all streams together */
  rl_queue_depth *streams; /* sorted by stream number */
  size_t stream_count;
  size_t unmatched_operation_count;            /* operations without a recorded launch call; no depth counts them */
  int64_t empty_idle_ns;                       /* part of total.empty_ns in which the device is idle for a known cause */
  int64_t depth_ns[RL_QUEUE_SLICES];           /* sum of depth × time in each slice of the window */
  int64_t slice_start_ns[RL_QUEUE_SLICES + 1]; /* slices differ in length by at most 1 ns */
} rl_launch_queue;

/* classes: computed from the same index. The caller clears the result. Fails with RL_ERRNO if memory is exhausted. */
int rl_launch_queue_compute(const rl_trace_index *index, const rl_time_classes *classes, rl_launch_queue *queue, rl_error *err);
void rl_launch_queue_clear(rl_launch_queue *queue);

/* The metrics that the rules of the timeline read: timeline__queue_depth_median and timeline__queue_empty_idle_pct. */
enum { RL_QUEUE_METRIC_COUNT = 2 };
/* Writes the metrics, sorted by name, and returns their number. reason: why they are NAN; NULL: they are known. */
size_t rl_launch_queue_metrics(const rl_launch_queue *queue, const rl_time_classes *classes, const char *reason,
                               rl_metric_value metrics[RL_QUEUE_METRIC_COUNT]);
/* Returns why the depth is unknown; NULL: it is known. */
const char *rl_launch_queue_reason(const rl_trace_index *index, const rl_launch_queue *queue);

#ifdef __cplusplus
}
#endif
#endif
