/* Compares the traces of two runs, row by row: the time of the operations of each name, and the idle time of the device before
 * them. Each nanosecond of a window belongs to one row (rl_time_observer), so the rows of each run add up to its window, and the
 * differences of the rows add up to the difference of the windows. All functions are pure. */
#ifndef RL_ANALYZE_TRACE_COMPARISON_H
#define RL_ANALYZE_TRACE_COMPARISON_H

#include "analyze/time_classes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A row is RL_TRACE_SAME if its times differ by less than this ratio, because one iteration of each run can't show smaller
 * differences. */
#define RL_TRACE_CHANGE_MIN_RATIO 0.01 /* smallest change, as a share of the longer time */

typedef enum rl_trace_change {
  RL_TRACE_SAME,
  RL_TRACE_NEW,
  RL_TRACE_GONE,
  RL_TRACE_LONGER,
  RL_TRACE_SHORTER,
  RL_TRACE_CHANGE_COUNT
} rl_trace_change;
extern const char *const rl_trace_change_names[RL_TRACE_CHANGE_COUNT]; /* "same" … "shorter" */

/* The operations of one name, or the idle time of one class before them. Elements [0] belong to run a, elements [1] to run b. */
typedef struct rl_compared_time {
  const char *name;
  bool is_idle;
  rl_time_class time_class; /* class of an idle time; valid if is_idle */
  size_t count[2];          /* number of operations, or of idle intervals */
  int64_t total_ns[2];      /* sum of the durations of the operations or intervals */
  int64_t time_ns[2];       /* part of the window; less than total_ns where operations overlap */
  rl_trace_change change;
} rl_compared_time;

typedef struct rl_compared_name rl_compared_name; /* the times of the operations of one name */

/* The times of a run by name. It keeps no pointer into the index, so that two runs need not be in memory at once. */
typedef struct rl_trace_times {
  int64_t window_ns, class_ns[RL_TIME_CLASS_COUNT];
  rl_compared_name *names; /* times of the operations of each name */
  size_t count;
  char *texts; /* memory of the names' texts */
} rl_trace_times;

/* The caller clears the result. Fails with RL_ERRNO if memory is exhausted. */
int rl_trace_times_compute(const rl_trace_index *index, rl_trace_times *times, rl_error *err);
void rl_trace_times_clear(rl_trace_times *times);

typedef struct rl_trace_comparison {
  int64_t window_ns[2];
  int64_t class_ns[2][RL_TIME_CLASS_COUNT];
  rl_compared_time *rows; /* sorted by difference of time_ns, the largest first */
  size_t count;
} rl_trace_comparison;

/* The caller clears the result, whose names point into `a` and `b`. Fails with RL_ERRNO if memory is exhausted. */
int rl_trace_comparison_compute(const rl_trace_times *a, const rl_trace_times *b, rl_trace_comparison *comparison, rl_error *err);
void rl_trace_comparison_clear(rl_trace_comparison *comparison);

#ifdef __cplusplus
}
#endif
#endif
