/* Makes caches cold before kernel launches, for measurements under the range profiler. While flushing is enabled, the following
 * happens before each selected launch, on the stream of the launch:
 *
 * - L2, RL_L2_FULL: the copy engine copies more bytes than L2 holds. The copies write to one small chunk, because dirty lines
 *   in L2 would be written back during the kernel and counted as traffic of the kernel. L2 is then full of clean lines.
 * - L2, RL_L2_EMPTY: the copies go from the small chunk to other memory, because each dirty line is in one place, and clean
 *   lines can be in both halves of L2. Then a kernel discards these lines.
 * - Instruction and constant caches: a module is loaded and unloaded, so that the driver invalidates these caches.
 *
 * A flush for RL_L2_FULL launches no kernel, because that would be a range of the range profiler, which costs 1 ms in most
 * passes.
 * Before the first launch a copy reads each page of all allocated memory: starting the range profiler invalidates the TLBs, and
 * without the copy the first kernel would wait 0.5 us for address translation. */
#ifndef RL_CUPTI_CACHE_FLUSH_H
#define RL_CUPTI_CACHE_FLUSH_H

#include <driver_types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct rl_cache_flush rl_cache_flush;

/* Allocates memory for the flushes in the current context. state: RL_L2_FULL or RL_L2_EMPTY (model/profile.h). */
int rl_cache_flush_open(rl_cache_flush **flush, int state, rl_error *err);
void rl_cache_flush_close(rl_cache_flush *flush); /* NULL is allowed */
/* Returns the number of kernels that one flush launches. Each is a range of the range profiler before the flushed launch's. */
size_t rl_cache_flush_kernel_count(const rl_cache_flush *flush);
/* Enqueues a flush of L2 alone on the stream. A failure is reported by rl_cache_flush_disable. */
void rl_cache_flush_l2(rl_cache_flush *flush, cudaStream_t stream);
/* Flushes the caches before each launch i with flush_before[i], until rl_cache_flush_disable. flush_before: `count` entries,
 * which must stay valid until then. */
int rl_cache_flush_enable(rl_cache_flush *flush, const bool *flush_before, uint64_t count, rl_error *err);
/* Returns the number of launches since rl_cache_flush_enable in *launches. Returns -1 when a flush failed. */
int rl_cache_flush_disable(rl_cache_flush *flush, uint64_t *launches, rl_error *err);

#endif
