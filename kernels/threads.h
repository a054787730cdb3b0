/* A crew of threads that shares numbered tasks. The caller works too. Which thread does which task is left to chance, so
 * a task writes only what belongs to its number, and results don't depend on how many threads there are. */
#ifndef RL_KERNELS_THREADS_H
#define RL_KERNELS_THREADS_H

#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

typedef struct rl_threads rl_threads;
typedef void rl_task(void *context, uint32_t task, uint32_t thread); /* thread: 0 .. count-1, for scratch */

/* count threads in all, the caller's among them; 0: one for each core that this process may use, at most 64. */
rl_threads *rl_threads_open(int count, rl_error *err);
uint32_t rl_threads_count(const rl_threads *threads);
/* Run task 0 .. tasks-1 and return when all are done. One caller at a time. */
void rl_threads_run(rl_threads *threads, uint32_t tasks, rl_task *task, void *context);
void rl_threads_close(rl_threads *threads); /* NULL is allowed */

RL_DEFINE_CLEANUP(rl_threads_auto, rl_threads *, rl_threads_close, NULL)

#endif
