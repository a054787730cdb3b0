/* A thread pool that runs numbered tasks on its threads and on the calling thread. Any thread may run any task, so each task must
 * write only data that belongs to its number. Then the results do not depend on the number of threads. */
#ifndef RL_KERNELS_THREAD_POOL_H
#define RL_KERNELS_THREAD_POOL_H

#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

typedef struct rl_thread_pool rl_thread_pool;
/* thread: index of the executing thread in the pool; 0 is the caller of rl_thread_pool_run. */
typedef void rl_task(void *context, uint32_t task, uint32_t thread);

/* Creates a pool of `count` threads, at most 64; the calling thread is one of them. count 0: one thread for each core of the
 * affinity mask. Returns NULL and fills err on failure. */
rl_thread_pool *rl_thread_pool_open(int count, rl_error *err);
uint32_t rl_thread_pool_thread_count(const rl_thread_pool *pool); /* the caller included */
/* Calls task for the numbers 0 to task_count - 1 and returns when all these calls have returned. Only one thread at a time may
 * call it. */
void rl_thread_pool_run(rl_thread_pool *pool, uint32_t task_count, rl_task *task, void *context);
void rl_thread_pool_close(rl_thread_pool *pool); /* NULL is allowed */

RL_DEFINE_CLEANUP(rl_thread_pool_cleanup, rl_thread_pool *, rl_thread_pool_close, NULL)

#endif
