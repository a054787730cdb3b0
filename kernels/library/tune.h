/* Timing of device work, to choose between implementations. The work is captured several times into one graph, as it will run
 * later, so that gaps between launches count and host time does not. */
#ifndef RL_LIBRARY_TUNE_H
#define RL_LIBRARY_TUNE_H

#include "device/device.h"
#include "library/choices.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets *us to the time of one enqueue(arg) in microseconds, the shortest of a few rounds. -1 when it fails or can't be captured;
 * the device stays usable. */
int rl_tune_time(int (*enqueue)(void *arg, rl_stream stream, rl_error *err), void *arg, rl_stream stream, double *us,
                 rl_error *err);
/* Fills memory with `count` reproducible values in [-1, 1), of 4 bytes (float) or 2 bytes (half). Timing on zeros is not
 * representative. */
int rl_tune_fill_noise(void *memory, size_t count, size_t value_bytes, rl_stream stream, rl_error *err);
/* Sets the scope of choices to this CUDA device, its driver, cuDNN and cuBLASLt. */
int rl_tune_set_choices_scope(const rl_device *device, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
