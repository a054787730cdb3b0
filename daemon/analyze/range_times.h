/* Time classes of each NVTX range name. A range is projected onto the device as in nsys's nvtx_gpu_proj reports: an operation
 * belongs to the range in which the API call with its correlation id starts, although the operation runs later.
 *
 * Each nanosecond of the window belongs to one operation (rl_time_observer), thus to the operation's innermost range and to all
 * enclosing ranges. So the own times of all names and the time outside of ranges add up to the window, and the classes of a name
 * to its time. A range is nested in the range of its thread that was open when it started, or else in the open range of the
 * process (thread 0). All functions are pure. */
#ifndef RL_ANALYZE_RANGE_TIMES_H
#define RL_ANALYZE_RANGE_TIMES_H

#include "analyze/operation_totals.h"
#include "analyze/time_classes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All ranges of one name. Time in a range inside a range of the same name counts once. */
typedef struct rl_range_time {
  uint32_t name;  /* index into rl_trace_events.names */
  uint32_t depth; /* nesting depth; 0: an outermost range */
  size_t range_count;
  size_t operation_count; /* operations launched inside these ranges */
  int64_t time_ns;        /* part of the window; sum of class_ns */
  int64_t own_ns;         /* part of time_ns that belongs to no inner range */
  int64_t projected_ns;   /* sum over the ranges: from the first operation's start to the last one's end; nsys's total */
  int64_t host_ns;        /* sum of the ranges' durations on the host */
  int64_t class_ns[RL_TIME_CLASS_COUNT];
  int64_t totals[RL_OPERATION_TOTAL_COUNT]; /* over the operations launched inside these ranges */
} rl_range_time;

typedef struct rl_range_times {
  rl_range_time *items; /* sorted by first start */
  size_t count;
  rl_range_time outside; /* the time outside of ranges; name, depth, range_count, projected_ns and host_ns are 0 */
} rl_range_times;

/* Also computes the time classes of the window. observer: receives the parts of the window; NULL: none. path_ns:
 * rl_critical_path.operation_ns; NULL: unknown. The caller clears both results. Fails with RL_ERRNO if memory is exhausted. */
int rl_range_times_compute(const rl_trace_index *index, const rl_time_observer *observer, const int64_t *path_ns,
                           rl_time_classes *classes, rl_range_times *times, rl_error *err);
void rl_range_times_clear(rl_range_times *times);

#ifdef __cplusplus
}
#endif
#endif
