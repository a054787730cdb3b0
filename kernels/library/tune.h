/* How long a piece of device work takes, for choosing between ways of doing it: several copies of it in one captured graph,
 * as they will run later, so that launch gaps count and host time does not. */
#ifndef RL_LIBRARY_TUNE_H
#define RL_LIBRARY_TUNE_H

#include <stdbool.h>

#include "device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Microseconds of one enqueue(arg), the least of a few rounds, into *us. -1 when it fails or can't be captured; the device stays
 * usable. */
int rl_tune_time(int (*enqueue)(void *arg, rl_stream stream, rl_error *err), void *arg, rl_stream stream, double *us,
                 rl_error *err);
/* Fill memory with reproducible noise in [-1, 1), count values of 4 bytes (float) or 2 (half): never time on zeros. */
int rl_tune_noise(void *memory, size_t count, size_t value_bytes, rl_stream stream, rl_error *err);

/* Choices that timing made, kept in $ROOFLINED_CACHE_DIR/choices.tsv, so that another process (the other worker of the same
 * device, or the next daemon) runs the same kernels and gets the same bits, and opens at once; without that folder, for the life
 * of the process. scope: what a choice is good for, the device and the libraries' versions; told before anything is recalled. A
 * file that can't be read or written only costs timing again, and so does a choice beyond the 4096th. One thread; processes may
 * share the file, and each sees what the others add. */
void rl_tune_scope(const char *scope);
int rl_tune_device(const rl_device *device, rl_error *err); /* the scope of a CUDA device, here and now */
int64_t rl_tune_recall(const char *key);                    /* -1 when nothing was chosen */
void rl_tune_remember(const char *key, int64_t choice);
bool rl_tune_lasts(void);       /* beyond this process */
const char *rl_tune_note(void); /* why results may differ from one process to another; NULL: they don't */

#ifdef __cplusplus
}
#endif
#endif
