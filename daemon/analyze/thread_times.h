/* The time that each thread spends in launch calls, synchronising calls and blocking copies, and the idle time before the
 * operations that it launches. Pure. */
#ifndef RL_ANALYZE_THREAD_TIMES_H
#define RL_ANALYZE_THREAD_TIMES_H

#include "analyze/time_classes.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RL_MAX_THREADS = 64 };

typedef struct rl_call_time {
  size_t count;    /* of outer calls: a driver call in a runtime call does not count */
  int64_t time_ns; /* sum of their durations */
} rl_call_time;

typedef struct rl_thread_time {
  uint32_t thread; /* 0: unknown, or of a further thread */
  rl_call_time launches, synchronizations, blocking_copies;
  int64_t idle_ns; /* before operations that the thread launches */
  int64_t last_end_ns;
} rl_thread_time;

typedef struct rl_thread_times {
  rl_thread_time items[RL_MAX_THREADS + 1]; /* in order of the first call; the last one has all further threads */
  size_t count;
} rl_thread_times;

/* classes: of the same index. */
void rl_thread_times_compute(const rl_trace_index *index, const rl_time_classes *classes, rl_thread_times *times);

#ifdef __cplusplus
}
#endif
#endif
