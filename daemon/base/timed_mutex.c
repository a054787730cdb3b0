/* Implements timed_mutex.h with a flag and a condition variable. */
#include "base/timed_mutex.h"

#include "base/condition.h"

void rl_timed_mutex_init(rl_timed_mutex *mutex) {
  pthread_mutex_init(&mutex->guard, NULL);
  rl_condition_init(&mutex->unlocked);
  mutex->is_locked = false;
}

void rl_timed_mutex_destroy(rl_timed_mutex *mutex) {
  pthread_cond_destroy(&mutex->unlocked);
  pthread_mutex_destroy(&mutex->guard);
}

void rl_timed_mutex_lock(rl_timed_mutex *mutex) {
  pthread_mutex_lock(&mutex->guard);
  while (mutex->is_locked) pthread_cond_wait(&mutex->unlocked, &mutex->guard);
  mutex->is_locked = true;
  pthread_mutex_unlock(&mutex->guard);
}

bool rl_timed_mutex_lock_within(rl_timed_mutex *mutex, int64_t timeout_ns) {
  const struct timespec deadline = rl_condition_deadline(timeout_ns);
  int code = 0;
  pthread_mutex_lock(&mutex->guard);
  while (mutex->is_locked && code == 0) code = pthread_cond_timedwait(&mutex->unlocked, &mutex->guard, &deadline);
  const bool locks = !mutex->is_locked;
  if (locks) mutex->is_locked = true;
  pthread_mutex_unlock(&mutex->guard);
  return locks;
}

void rl_timed_mutex_unlock(rl_timed_mutex *mutex) {
  pthread_mutex_lock(&mutex->guard);
  mutex->is_locked = false;
  pthread_mutex_unlock(&mutex->guard);
  pthread_cond_signal(&mutex->unlocked);
}
