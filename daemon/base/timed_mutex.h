/* A mutex whose timed locks use CLOCK_MONOTONIC, so that setting the wall clock neither shortens nor lengthens them.
 * pthread_mutex_clocklock does the same, but ThreadSanitizer does not support it. */
#ifndef RL_BASE_TIMED_MUTEX_H
#define RL_BASE_TIMED_MUTEX_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_timed_mutex {
  pthread_mutex_t guard; /* guards is_locked; held only briefly */
  pthread_cond_t unlocked;
  bool is_locked;
} rl_timed_mutex;

void rl_timed_mutex_init(rl_timed_mutex *mutex);
void rl_timed_mutex_destroy(rl_timed_mutex *mutex); /* no thread may hold the mutex or wait for it */
void rl_timed_mutex_lock(rl_timed_mutex *mutex);
/* Waits at most timeout_ns. Returns whether it locked the mutex. */
bool rl_timed_mutex_lock_within(rl_timed_mutex *mutex, int64_t timeout_ns);
void rl_timed_mutex_unlock(rl_timed_mutex *mutex);

#ifdef __cplusplus
}
#endif
#endif
