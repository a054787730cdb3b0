/* Condition variables whose timed waits use CLOCK_MONOTONIC, so that setting the wall clock neither shortens nor lengthens
 * them. */
#ifndef RL_BASE_CONDITION_H
#define RL_BASE_CONDITION_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Initialises a condition variable whose timed waits use CLOCK_MONOTONIC. */
void rl_condition_init(pthread_cond_t *condition);
/* Returns the absolute time for pthread_cond_timedwait: timeout_ns from now. */
struct timespec rl_condition_deadline(int64_t timeout_ns);

#ifdef __cplusplus
}
#endif
#endif
