/* Sources that came to this worker, by their hash. The daemon sends a source ahead of the request that names it; the last few
 * are kept. */
#ifndef RL_KERNELS_SOURCE_SHELF_H
#define RL_KERNELS_SOURCE_SHELF_H

#include "source/source.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Keep a copy. Any thread. */
int rl_source_cache_put(const char *text, size_t length, rl_error *err);
/* Read the source of this hash; the caller clears it. RL_INPUT when it did not come. Any thread. */
int rl_source_cache_get(const char *sha256, rl_source *source, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
