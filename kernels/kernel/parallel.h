/* A parallel loop over the host's thread pool, for the CPU engines, the filling of inputs and the check. */
#ifndef RL_KERNELS_KERNEL_PARALLEL_H
#define RL_KERNELS_KERNEL_PARALLEL_H

#include "device/device.h"
#include "thread_pool.h"

/* Processes indices [first, first + count). thread: number of the executing thread, from 0. */
typedef int rl_parallel_function(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err);

/* Divides the indices [0, count) into chunks of at most chunk_size and calls function once for each chunk, on all threads of
 * the pool. Starts no further chunk after the first failure and returns that failure's error. Returns -1 with RL_ERRNO,
 * ECANCELED when the device's observer asks to cancel. */
int rl_parallel_for(rl_thread_pool *thread_pool, const rl_device *device, int64_t count, int64_t chunk_size,
                    rl_parallel_function *function, void *context, rl_error *err);

#endif
