#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum { MOST = 64, PATIENCE = 2000 }; /* polls before sleeping: launches follow each other within microseconds */

struct rl_threads {
  uint32_t count;
  pthread_t ids[MOST];
  pthread_mutex_t lock;
  pthread_cond_t wake, idle;
  rl_task *task; /* of the current round, with context and tasks: written under the lock, before `round` */
  void *context;
  uint32_t tasks;
  atomic_uint round, next, busy;
  atomic_bool quit;
};

typedef struct seat { /* what a new thread is told */
  rl_threads *threads;
  uint32_t number;
} seat;

static void work(rl_threads *threads, uint32_t number) {
  for (uint32_t task; (task = atomic_fetch_add(&threads->next, 1)) < threads->tasks;)
    threads->task(threads->context, task, number);
}

static inline void breathe(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static uint32_t await_round(rl_threads *threads, uint32_t seen) {
  for (int i = 0; i < PATIENCE; i++) {
    uint32_t round = atomic_load(&threads->round);
    if (round != seen) return round;
    breathe();
  }
  pthread_mutex_lock(&threads->lock);
  while (atomic_load(&threads->round) == seen) pthread_cond_wait(&threads->wake, &threads->lock);
  pthread_mutex_unlock(&threads->lock);
  return atomic_load(&threads->round);
}

static void *live(void *argument) {
  seat own = *(seat *)argument;
  free(argument);
  for (uint32_t seen = 0;;) {
    seen = await_round(own.threads, seen);
    if (atomic_load(&own.threads->quit)) return NULL;
    work(own.threads, own.number);
    if (atomic_fetch_sub(&own.threads->busy, 1) == 1) { /* the last one out tells the caller */
      pthread_mutex_lock(&own.threads->lock);
      pthread_cond_signal(&own.threads->idle);
      pthread_mutex_unlock(&own.threads->lock);
    }
  }
}

static void start_round(rl_threads *threads) {
  pthread_mutex_lock(&threads->lock);
  atomic_fetch_add(&threads->round, 1);
  pthread_cond_broadcast(&threads->wake);
  pthread_mutex_unlock(&threads->lock);
}

static int cores(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

rl_threads *rl_threads_open(int count, rl_error *err) {
  rl_threads *threads = calloc(1, sizeof *threads);
  if (threads == NULL) {
    rl_fail_errno(err, "threads");
    return NULL;
  }
  pthread_mutex_init(&threads->lock, NULL);
  pthread_cond_init(&threads->wake, NULL);
  pthread_cond_init(&threads->idle, NULL);
  if (count <= 0) count = cores();
  if (count > MOST) count = MOST;
  for (threads->count = 1; threads->count < (uint32_t)count; threads->count++) {
    seat *place = malloc(sizeof *place);
    if (place != NULL) *place = (seat){threads, threads->count};
    if (place == NULL || pthread_create(&threads->ids[threads->count], NULL, live, place) != 0) {
      free(place);
      rl_fail(err, RL_SYS, 0, "can't start thread %u of %d", threads->count + 1, count);
      rl_threads_close(threads);
      return NULL;
    }
  }
  return threads;
}

uint32_t rl_threads_count(const rl_threads *threads) { return threads->count; }

void rl_threads_run(rl_threads *threads, uint32_t tasks, rl_task *task, void *context) {
  if (threads->count == 1 || tasks < 2) {
    for (uint32_t i = 0; i < tasks; i++) task(context, i, 0);
    return;
  }
  threads->task = task;
  threads->context = context;
  threads->tasks = tasks;
  atomic_store(&threads->next, 0);
  atomic_store(&threads->busy, threads->count - 1);
  start_round(threads);
  work(threads, 0);
  for (int i = 0; i < PATIENCE && atomic_load(&threads->busy) != 0; i++) breathe();
  if (atomic_load(&threads->busy) == 0) return;
  pthread_mutex_lock(&threads->lock);
  while (atomic_load(&threads->busy) != 0) pthread_cond_wait(&threads->idle, &threads->lock);
  pthread_mutex_unlock(&threads->lock);
}

void rl_threads_close(rl_threads *threads) {
  if (threads == NULL) return;
  atomic_store(&threads->quit, true);
  start_round(threads);
  for (uint32_t i = 1; i < threads->count; i++) pthread_join(threads->ids[i], NULL);
  pthread_cond_destroy(&threads->idle);
  pthread_cond_destroy(&threads->wake);
  pthread_mutex_destroy(&threads->lock);
  free(threads);
}
