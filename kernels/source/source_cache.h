/* Keeps the last two sources that this worker received, by their hash. The daemon sends a source before the request that contains
 * its hash. Thread-safe. */
#ifndef RL_KERNELS_SOURCE_SOURCE_CACHE_H
#define RL_KERNELS_SOURCE_SOURCE_CACHE_H

#include "source/source.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stores a copy of the text under its SHA-256. */
int rl_source_cache_put(const char *text, size_t length, rl_error *err);
/* Parses the source with this hash; the caller calls rl_source_clear. RL_INPUT at /source: the cache does not have it. */
int rl_source_cache_get(const char *sha256, rl_source *source, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
