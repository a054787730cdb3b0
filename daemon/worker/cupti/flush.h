/* Cold caches: in front of kernels that are launched while armed, the copy engine reads more than L2 holds, on the same stream,
 * and writes it all to one small place, since lines that are dirty would be written back during the kernel and be counted as its
 * traffic. Then code is loaded and unloaded, for which the driver empties the caches of instructions and constants. Neither is a
 * range of the range profiler, where each costs a millisecond in most passes. The addresses of what is allocated are translated
 * before the first of them, as they are in a program that runs: the start of the range profiler makes the device forget them, and
 * whichever kernel comes first would wait for half a microsecond. */
#ifndef RL_CUPTI_FLUSH_H
#define RL_CUPTI_FLUSH_H

#include <driver_types.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct rl_flush rl_flush;

/* For the current context. */
int rl_flush_open(rl_flush **flush, rl_error *err);
void rl_flush_close(rl_flush *flush);
/* L2 alone, now, on a stream; a failure is remembered for rl_flush_disarm. */
void rl_flush_run(rl_flush *flush, cudaStream_t stream);
/* before[i]: whether to flush in front of launch i of the `count` to come. */
int rl_flush_arm(rl_flush *flush, const bool *before, uint64_t count, rl_error *err);
/* How many launches there were since it was armed; an error when a flush failed. */
int rl_flush_disarm(rl_flush *flush, uint64_t *launches, rl_error *err);

#endif
