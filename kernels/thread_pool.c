/* Implements thread_pool.h. A round is one call of rl_thread_pool_run. Threads take task numbers from an atomic counter, and poll
 * for the next round before they sleep. */
#include "thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum {
  MAX_THREADS = 64,
  /* Reads of an atomic by a waiting thread before it sleeps; the next round usually starts within microseconds. */
  MAX_POLLS = 2000
};

struct rl_thread_pool {
  uint32_t thread_count; /* the caller included */
  pthread_t ids[MAX_THREADS];
  pthread_mutex_t lock;
  pthread_cond_t round_started, round_done;
  atomic_uint round; /* number of the current round, from 1 */
  /* The arguments of the current round, written before `round` is incremented. */
  rl_task *task;
  void *context;
  uint32_t task_count;
  atomic_uint next_task;
  atomic_uint busy_threads; /* threads, except the caller, that have not finished the current round */
  atomic_bool is_closing;
};

typedef struct thread_start {
  rl_thread_pool *pool;
  uint32_t thread;
} thread_start;

static void run_tasks(rl_thread_pool *pool, uint32_t thread) {
  for (uint32_t task; (task = atomic_fetch_add(&pool->next_task, 1)) < pool->task_count;) pool->task(pool->context, task, thread);
}

static inline void pause_cpu(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/* Waits until a round after last_round has started, and returns its number. */
static uint32_t wait_for_round(rl_thread_pool *pool, uint32_t last_round) {
  for (int i = 0; i < MAX_POLLS; i++) {
    uint32_t round = atomic_load(&pool->round);
    if (round != last_round) return round;
    pause_cpu();
  }
  pthread_mutex_lock(&pool->lock);
  while (atomic_load(&pool->round) == last_round) pthread_cond_wait(&pool->round_started, &pool->lock);
  pthread_mutex_unlock(&pool->lock);
  return atomic_load(&pool->round);
}

static void *thread_main(void *argument) {
  thread_start start = *(thread_start *)argument;
  free(argument);
  for (uint32_t last_round = 0;;) {
    last_round = wait_for_round(start.pool, last_round);
    if (atomic_load(&start.pool->is_closing)) return NULL;
    run_tasks(start.pool, start.thread);
    if (atomic_fetch_sub(&start.pool->busy_threads, 1) == 1) { /* the last thread wakes the caller */
      pthread_mutex_lock(&start.pool->lock);
      pthread_cond_signal(&start.pool->round_done);
      pthread_mutex_unlock(&start.pool->lock);
    }
  }
}

static void start_round(rl_thread_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  atomic_fetch_add(&pool->round, 1);
  pthread_cond_broadcast(&pool->round_started);
  pthread_mutex_unlock(&pool->lock);
}

static int core_count(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

rl_thread_pool *rl_thread_pool_open(int count, rl_error *err) {
  rl_thread_pool *pool = calloc(1, sizeof *pool);
  if (pool == NULL) {
    rl_fail_errno(err, "no memory for a thread pool");
    return NULL;
  }
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->round_started, NULL);
  pthread_cond_init(&pool->round_done, NULL);
  if (count <= 0) count = core_count();
  if (count > MAX_THREADS) count = MAX_THREADS;
  for (pool->thread_count = 1; pool->thread_count < (uint32_t)count; pool->thread_count++) {
    thread_start *start = malloc(sizeof *start);
    if (start != NULL) *start = (thread_start){pool, pool->thread_count};
    if (start == NULL || pthread_create(&pool->ids[pool->thread_count], NULL, thread_main, start) != 0) {
      free(start);
      rl_fail(err, RL_ERRNO, 0, "can't start thread %u of %d", pool->thread_count + 1, count);
      rl_thread_pool_close(pool);
      return NULL;
    }
  }
  return pool;
}

uint32_t rl_thread_pool_thread_count(const rl_thread_pool *pool) { return pool->thread_count; }

void rl_thread_pool_run(rl_thread_pool *pool, uint32_t task_count, rl_task *task, void *context) {
  if (pool->thread_count == 1 || task_count < 2) {
    for (uint32_t i = 0; i < task_count; i++) task(context, i, 0);
    return;
  }
  pool->task = task;
  pool->context = context;
  pool->task_count = task_count;
  atomic_store(&pool->next_task, 0);
  atomic_store(&pool->busy_threads, pool->thread_count - 1);
  start_round(pool);
  run_tasks(pool, 0);
  for (int i = 0; i < MAX_POLLS && atomic_load(&pool->busy_threads) != 0; i++) pause_cpu();
  if (atomic_load(&pool->busy_threads) == 0) return;
  pthread_mutex_lock(&pool->lock);
  while (atomic_load(&pool->busy_threads) != 0) pthread_cond_wait(&pool->round_done, &pool->lock);
  pthread_mutex_unlock(&pool->lock);
}

void rl_thread_pool_close(rl_thread_pool *pool) {
  if (pool == NULL) return;
  atomic_store(&pool->is_closing, true);
  start_round(pool);
  for (uint32_t i = 1; i < pool->thread_count; i++) pthread_join(pool->ids[i], NULL);
  pthread_cond_destroy(&pool->round_done);
  pthread_cond_destroy(&pool->round_started);
  pthread_mutex_destroy(&pool->lock);
  free(pool);
}
