/* Thread pools for tasks that may wait for SQL, the disk or a lock, so that MHD's threads never wait. Each pool has its own
 * threads and a bounded queue, so that slow requests of one pool do not delay requests of another. A task's connection is
 * suspended until the task has run; then a thread of MHD continues with the connection. Thread-safe. */
#ifndef RL_API_REQUEST_POOLS_H
#define RL_API_REQUEST_POOLS_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/error.h"

typedef struct rl_request_pools rl_request_pools;
typedef struct rl_pool_task rl_pool_task;

typedef enum rl_pool {
  RL_POOL_INLINE,  /* no pool: MHD's thread runs the handler, which only reads memory */
  RL_POOL_CONTROL, /* authorization, readiness, metrics, cancellation, event streams */
  RL_POOL_SUBMIT,  /* submission of jobs, which waits for the disk */
  RL_POOL_UPLOAD,  /* parts of uploaded files, and their imports */
  RL_POOL_READ,    /* queries that read up to a few hundred rows */
  RL_POOL_HEAVY,   /* traces, exports, whole reports and long lists */
  RL_POOL_COUNT
} rl_pool;

/* A task in a pool's queue. It is a member of the object on which it works, so that queueing allocates nothing. */
struct rl_pool_task {
  void (*run)(rl_pool_task *task);
  struct MHD_Connection *connection; /* suspended until the task has run; NULL: none */
  STAILQ_ENTRY(rl_pool_task) link;
};

rl_request_pools *rl_request_pools_start(rl_error *err);
/* Refuses further tasks, and returns when all accepted ones have run. */
void rl_request_pools_stop(rl_request_pools *pools);
void rl_request_pools_free(rl_request_pools *pools); /* stops first; accepts NULL */

/* Suspends the task's connection and queues the task. Returns false and does neither if the queue is full or the pools are
 * stopping. If the task has a connection, only a thread of MHD may call this function. `run` may free a task that has no
 * connection, because the pool does not access the task afterwards. */
bool rl_request_pools_submit(rl_request_pools *pools, rl_pool pool, rl_pool_task *task);
/* Like rl_request_pools_submit, but ignores the limit of the queue, so that the next step of a reply that has begun is not
 * refused. */
bool rl_request_pools_continue(rl_request_pools *pools, rl_pool pool, rl_pool_task *task);
/* Returns -1 when every thread of a pool has been running the same task for at least limit_ns. */
int rl_request_pools_check_liveness(rl_request_pools *pools, int64_t limit_ns, rl_error *err);

RL_DEFINE_CLEANUP(rl_request_pools_cleanup, rl_request_pools *, rl_request_pools_free, NULL)
#endif
