/* Implements request_pools.h. A pool has an array of threads and a queue, which a mutex guards. A stopping pool refuses new
 * tasks, and its threads end when the queue is empty. Each thread records when its task began, so that
 * rl_request_pools_check_liveness notices a pool whose threads all hang. */
#include "api/request_pools.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"

enum { MAX_POOL_THREADS = 4 };

static const struct pool_size {
  const char *name; /* name of the pool's threads; at most 15 characters */
  int threads, max_queued;
  int nice; /* above 0: a lower priority than MHD's threads, so that cheap requests are answered first */
} sizes[RL_POOL_COUNT] = {
    [RL_POOL_CONTROL] = {"http-control", 2, 4096, 0}, [RL_POOL_SUBMIT] = {"http-submit", 2, 256, 0},
    [RL_POOL_UPLOAD] = {"http-upload", 2, 256, 5},    [RL_POOL_READ] = {"http-read", 4, 512, 2},
    [RL_POOL_HEAVY] = {"http-heavy", 2, 64, 10},
};

typedef struct pool_thread {
  pthread_t id;
  struct thread_pool *pool;
  _Atomic int64_t busy_since_ns; /* rl_monotonic_ns at the start of the task; 0: the thread waits for a task */
} pool_thread;

/* `lock` guards queue, queued and stopping. Only the thread that starts and stops the pool changes the other members, except the
 * atomic times busy_since_ns. */
typedef struct thread_pool {
  const struct pool_size *size;
  pthread_mutex_t lock;
  pthread_cond_t changed; /* a task was queued, or the pool stops */
  STAILQ_HEAD(, rl_pool_task) queue;
  int queued;
  bool stopping;
  int started_threads;
  pool_thread threads[MAX_POOL_THREADS];
} thread_pool;

struct rl_request_pools {
  thread_pool pools[RL_POOL_COUNT]; /* pools[RL_POOL_INLINE] has no threads */
};

/* Returns the next task; NULL when the pool stops and its queue is empty. */
static rl_pool_task *take_task(thread_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  while (STAILQ_EMPTY(&pool->queue) && !pool->stopping) pthread_cond_wait(&pool->changed, &pool->lock);
  rl_pool_task *task = STAILQ_FIRST(&pool->queue);
  if (task != NULL) {
    STAILQ_REMOVE_HEAD(&pool->queue, link);
    pool->queued--;
  }
  pthread_mutex_unlock(&pool->lock);
  return task;
}

static void *run_thread(void *context) {
  pool_thread *thread = context;
  rl_pool_task *task;
  pthread_setname_np(pthread_self(), thread->pool->size->name);
  (void)setpriority(PRIO_PROCESS, 0, thread->pool->size->nice); /* on Linux, this sets the priority of the calling thread only */
  while ((task = take_task(thread->pool)) != NULL) {
    struct MHD_Connection *connection = task->connection;
    atomic_store(&thread->busy_since_ns, rl_monotonic_ns());
    task->run(task);
    atomic_store(&thread->busy_since_ns, 0);
    if (connection != NULL) MHD_resume_connection(connection);
  }
  return NULL;
}

static bool enqueue(thread_pool *pool, rl_pool_task *task, int max_queued) {
  pthread_mutex_lock(&pool->lock);
  bool accepted = !pool->stopping && pool->queued < max_queued;
  if (accepted) {
    if (task->connection != NULL) MHD_suspend_connection(task->connection);
    STAILQ_INSERT_TAIL(&pool->queue, task, link);
    pool->queued++;
    pthread_cond_signal(&pool->changed);
  }
  pthread_mutex_unlock(&pool->lock);
  return accepted;
}

bool rl_request_pools_submit(rl_request_pools *pools, rl_pool pool, rl_pool_task *task) {
  return enqueue(&pools->pools[pool], task, sizes[pool].max_queued);
}

/* Ignores the limit of the queue, because a refusal would leave the reply incomplete. The queue stays bounded, because each reply
 * or event stream has at most one task in it. */
bool rl_request_pools_continue(rl_request_pools *pools, rl_pool pool, rl_pool_task *task) {
  return enqueue(&pools->pools[pool], task, INT32_MAX);
}

static int start_threads(thread_pool *pool, rl_error *err) {
  for (; pool->started_threads < pool->size->threads; pool->started_threads++) {
    pool_thread *thread = &pool->threads[pool->started_threads];
    thread->pool = pool;
    int rc = pthread_create(&thread->id, NULL, run_thread, thread);
    if (rc != 0) return rl_fail(err, RL_ERRNO, rc, "the thread %s can't be started: %s", pool->size->name, strerror(rc));
  }
  return 0;
}

rl_request_pools *rl_request_pools_start(rl_error *err) {
  RL_CLEANUP(rl_request_pools_cleanup) rl_request_pools *pools = calloc(1, sizeof *pools);
  if (pools == NULL) {
    rl_fail(err, RL_ERRNO, 0, "out of memory for the HTTP server");
    return NULL;
  }
  for (int i = 0; i < RL_POOL_COUNT; i++) {
    thread_pool *pool = &pools->pools[i];
    pool->size = &sizes[i];
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->changed, NULL);
    STAILQ_INIT(&pool->queue);
  }
  for (int i = 0; i < RL_POOL_COUNT; i++)
    if (start_threads(&pools->pools[i], err) < 0) return NULL;
  return rl_take_ownership(&pools);
}

static void stop_pool(thread_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  pool->stopping = true;
  pthread_cond_broadcast(&pool->changed);
  pthread_mutex_unlock(&pool->lock);
  for (; pool->started_threads > 0; pool->started_threads--) pthread_join(pool->threads[pool->started_threads - 1].id, NULL);
}

void rl_request_pools_stop(rl_request_pools *pools) {
  for (int i = 0; i < RL_POOL_COUNT; i++) stop_pool(&pools->pools[i]);
}

void rl_request_pools_free(rl_request_pools *pools) {
  if (pools == NULL) return;
  rl_request_pools_stop(pools);
  for (int i = 0; i < RL_POOL_COUNT; i++) {
    pthread_cond_destroy(&pools->pools[i].changed);
    pthread_mutex_destroy(&pools->pools[i].lock);
  }
  free(pools);
}

static int count_busy_since(const thread_pool *pool, int64_t since_ns) {
  int count = 0;
  for (int i = 0; i < pool->size->threads; i++) {
    int64_t busy_since_ns = atomic_load(&pool->threads[i].busy_since_ns);
    count += busy_since_ns != 0 && busy_since_ns <= since_ns;
  }
  return count;
}

int rl_request_pools_check_liveness(rl_request_pools *pools, int64_t limit_ns, rl_error *err) {
  int64_t since_ns = rl_monotonic_ns() - limit_ns;
  for (int i = 0; i < RL_POOL_COUNT; i++) {
    const thread_pool *pool = &pools->pools[i];
    if (pool->size->threads > 0 && count_busy_since(pool, since_ns) == pool->size->threads)
      return rl_fail(err, RL_HTTP, 0, "each of the %d threads %s has been busy with one request for %.1f s", pool->size->threads,
                     pool->size->name, (double)limit_ns / 1e9);
  }
  return 0;
}
