/* The time that each thread spends in launch calls, synchronising calls and blocking copies, and the idle time before the
 * operations that it launches. All functions are pure. */
#ifndef RL_ANALYZE_THREAD_TIMES_H
#define RL_ANALYZE_THREAD_TIMES_H

#include "analyze/time_classes.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RL_MAX_THREADS = 64 };

typedef struct rl_call_time {
  size_t count;    /* number of calls; a driver call inside a runtime call is not counted */
  int64_t time_ns; /* sum of their durations */
} rl_call_time;

typedef struct rl_thread_time {
  uint32_t thread; /* 0: unknown, or several further threads */
  rl_call_time launches, synchronizations, blocking_copies;
  int64_t idle_ns;     /* idle time before operations that the thread launches */
  int64_t last_end_ns; /* end of the thread's last counted call; its calls that start before are nested in it */
} rl_thread_time;

typedef struct rl_thread_times {
  rl_thread_time items[RL_MAX_THREADS + 1]; /* sorted by first call; the last item has all threads beyond RL_MAX_THREADS */
  size_t count;
} rl_thread_times;

/* classes: computed from the same index. Fails with RL_ERRNO if memory is exhausted. */
int rl_thread_times_compute(const rl_trace_index *index, const rl_time_classes *classes, rl_thread_times *times, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
