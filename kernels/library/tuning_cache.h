/* The tuning cache: for each operation and shape, the algorithm that was the fastest when tune.h timed it. The choices are stored
 * in $ROOFLINED_CACHE_DIR/choices.tsv. Other worker processes read the file, so that they run the same kernels, get bit-identical
 * results and need no timing. Without the variable, entries last as long as the process. When the file can't be read or written,
 * and after the 4096th entry, algorithms are timed again. Only one thread of a process may use the cache. */
#ifndef RL_LIBRARY_TUNING_CACHE_H
#define RL_LIBRARY_TUNING_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the text that precedes the keys of all later calls. It names the device and the versions of the libraries. Call this
 * function before the other functions. */
void rl_tuning_cache_set_key_prefix(const char *prefix);
/* Returns the algorithm stored under this key (operation and shape): an index, whose meaning is the caller's. Returns -1 if
 * there is none. */
int64_t rl_tuning_cache_find(const char *key);
/* Adds an entry. Does nothing when the key already has one. */
void rl_tuning_cache_add(const char *key, int64_t algorithm);
/* Returns true when the entries are stored in the file. */
bool rl_tuning_cache_is_persistent(void);
/* Returns why two processes may choose different algorithms and get different results; NULL: both choose the same. */
const char *rl_tuning_cache_nondeterminism_reason(void);

#ifdef __cplusplus
}
#endif
#endif
