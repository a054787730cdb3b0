/* Implements condition.h: pthread_cond_init sets the clock of timed waits. */
#include "base/condition.h"

#include "base/clock.h"

void rl_condition_init(pthread_cond_t *condition) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &monotonic);
  pthread_condattr_destroy(&monotonic);
}

struct timespec rl_condition_deadline(int64_t timeout_ns) {
  const int64_t until_ns = rl_monotonic_ns() + timeout_ns;
  return (struct timespec){.tv_sec = (time_t)(until_ns / 1000000000), .tv_nsec = (long)(until_ns % 1000000000)};
}
