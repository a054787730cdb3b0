/* How long a piece of device work takes, for choosing between ways of doing it: several copies of it in one captured graph,
 * as they will run later, so that launch gaps count and host time does not. */
#ifndef RL_TRAIN_TUNE_H
#define RL_TRAIN_TUNE_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Microseconds of one enqueue(arg), the least of a few rounds, into *us. -1 when it fails or can't be captured; the device stays usable. */
int rl_tune_time(int (*enqueue)(void *arg, rl_stream stream, rl_error *err), void *arg, rl_stream stream, double *us,
                 rl_error *err);
/* Fill memory with reproducible noise in [-1, 1), count values of 4 bytes (float) or 2 (half): never time on zeros. */
int rl_tune_noise(void *memory, size_t count, size_t value_bytes, rl_stream stream, rl_error *err);

/* What was chosen for `key` before in this process, -1 when nothing was; and the note of it. A choice holds for the life of the process, so
 * that the same training opened again gives the same bits, and opens at once. One thread. */
int64_t rl_tune_recall(const char *key);
void rl_tune_remember(const char *key, int64_t choice);

#ifdef __cplusplus
}
#endif
#endif
