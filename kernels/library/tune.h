/* Tuning: an engine that can run an operation with several algorithms (of cuBLASLt, cuDNN, or its own kernels) times each of
 * them when an instance is opened, and uses the fastest. tuning_cache.h stores the results, so that later instances need no
 * timing. The algorithm is timed inside a CUDA graph, as it will run later: the time includes gaps between launches and excludes
 * host time. */
#ifndef RL_LIBRARY_TUNE_H
#define RL_LIBRARY_TUNE_H

#include "device/device.h"
#include "library/tuning_cache.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets *us to the device time of the work that one enqueue(arg) enqueues, in microseconds: the shortest of a few rounds.
 * Returns -1 when enqueue fails or can't be captured; the device stays usable. */
int rl_tune_measure_us(int (*enqueue)(void *arg, rl_stream stream, rl_error *err), void *arg, rl_stream stream, double *us,
                       rl_error *err);
/* Fills memory with `count` reproducible values in [-1, 1), of 4 bytes (float) or 2 bytes (half). Times measured on zeros are
 * not representative. */
int rl_tune_fill_noise(void *memory, size_t count, size_t value_bytes, rl_stream stream, rl_error *err);
/* Sets the key prefix of the tuning cache to the name of this CUDA device and the versions of its driver, cuDNN and cuBLASLt. */
int rl_tune_set_cache_key_prefix(const rl_device *device, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
