/* Keeps the JSON texts of the last two posted kernels that this worker received, with their hashes. The daemon sends a text
 * before the request that contains its hash. Thread-safe. */
#ifndef RL_KERNELS_SOURCE_SOURCE_CACHE_H
#define RL_KERNELS_SOURCE_SOURCE_CACHE_H

#include "source/source.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stores a copy of the text under its SHA-256. */
int rl_source_cache_put(const char *text, size_t length, rl_error *err);
/* Parses and checks the text with this hash; the caller calls rl_source_clear. Returns -1 with RL_INPUT at /source when the
 * cache does not have the text. */
int rl_source_cache_get(const char *sha256, rl_source *source, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
