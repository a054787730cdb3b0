#include "thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum {
  MAX_THREADS = 64,
  SPINS = 2000 /* polls before a thread sleeps: launches follow each other within microseconds */
};

struct rl_thread_pool {
  uint32_t count;
  pthread_t ids[MAX_THREADS];
  pthread_mutex_t lock;
  pthread_cond_t round_started, round_done;
  atomic_uint round; /* number of the current call of rl_thread_pool_run */
  /* Of the current round, written before `round` is incremented. */
  rl_task *task;
  void *context;
  uint32_t tasks;
  atomic_uint next_task, busy_threads;
  atomic_bool quit;
};

typedef struct thread_start {
  rl_thread_pool *threads;
  uint32_t number;
} thread_start;

static void run_tasks(rl_thread_pool *threads, uint32_t number) {
  for (uint32_t task; (task = atomic_fetch_add(&threads->next_task, 1)) < threads->tasks;)
    threads->task(threads->context, task, number);
}

static inline void pause_cpu(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/* Waits for a round other than `seen` and returns its number. */
static uint32_t await_round(rl_thread_pool *threads, uint32_t seen) {
  for (int i = 0; i < SPINS; i++) {
    uint32_t round = atomic_load(&threads->round);
    if (round != seen) return round;
    pause_cpu();
  }
  pthread_mutex_lock(&threads->lock);
  while (atomic_load(&threads->round) == seen) pthread_cond_wait(&threads->round_started, &threads->lock);
  pthread_mutex_unlock(&threads->lock);
  return atomic_load(&threads->round);
}

static void *thread_main(void *argument) {
  thread_start own = *(thread_start *)argument;
  free(argument);
  for (uint32_t seen = 0;;) {
    seen = await_round(own.threads, seen);
    if (atomic_load(&own.threads->quit)) return NULL;
    run_tasks(own.threads, own.number);
    if (atomic_fetch_sub(&own.threads->busy_threads, 1) == 1) { /* the last one wakes the caller */
      pthread_mutex_lock(&own.threads->lock);
      pthread_cond_signal(&own.threads->round_done);
      pthread_mutex_unlock(&own.threads->lock);
    }
  }
}

static void start_round(rl_thread_pool *threads) {
  pthread_mutex_lock(&threads->lock);
  atomic_fetch_add(&threads->round, 1);
  pthread_cond_broadcast(&threads->round_started);
  pthread_mutex_unlock(&threads->lock);
}

static int core_count(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

rl_thread_pool *rl_thread_pool_open(int count, rl_error *err) {
  rl_thread_pool *threads = calloc(1, sizeof *threads);
  if (threads == NULL) {
    rl_fail_errno(err, "threads");
    return NULL;
  }
  pthread_mutex_init(&threads->lock, NULL);
  pthread_cond_init(&threads->round_started, NULL);
  pthread_cond_init(&threads->round_done, NULL);
  if (count <= 0) count = core_count();
  if (count > MAX_THREADS) count = MAX_THREADS;
  for (threads->count = 1; threads->count < (uint32_t)count; threads->count++) {
    thread_start *start = malloc(sizeof *start);
    if (start != NULL) *start = (thread_start){threads, threads->count};
    if (start == NULL || pthread_create(&threads->ids[threads->count], NULL, thread_main, start) != 0) {
      free(start);
      rl_fail(err, RL_SYS, 0, "can't start thread %u of %d", threads->count + 1, count);
      rl_thread_pool_close(threads);
      return NULL;
    }
  }
  return threads;
}

uint32_t rl_thread_pool_count(const rl_thread_pool *threads) { return threads->count; }

void rl_thread_pool_run(rl_thread_pool *threads, uint32_t tasks, rl_task *task, void *context) {
  if (threads->count == 1 || tasks < 2) {
    for (uint32_t i = 0; i < tasks; i++) task(context, i, 0);
    return;
  }
  threads->task = task;
  threads->context = context;
  threads->tasks = tasks;
  atomic_store(&threads->next_task, 0);
  atomic_store(&threads->busy_threads, threads->count - 1);
  start_round(threads);
  run_tasks(threads, 0);
  for (int i = 0; i < SPINS && atomic_load(&threads->busy_threads) != 0; i++) pause_cpu();
  if (atomic_load(&threads->busy_threads) == 0) return;
  pthread_mutex_lock(&threads->lock);
  while (atomic_load(&threads->busy_threads) != 0) pthread_cond_wait(&threads->round_done, &threads->lock);
  pthread_mutex_unlock(&threads->lock);
}

void rl_thread_pool_close(rl_thread_pool *threads) {
  if (threads == NULL) return;
  atomic_store(&threads->quit, true);
  start_round(threads);
  for (uint32_t i = 1; i < threads->count; i++) pthread_join(threads->ids[i], NULL);
  pthread_cond_destroy(&threads->round_done);
  pthread_cond_destroy(&threads->round_started);
  pthread_mutex_destroy(&threads->lock);
  free(threads);
}
