/* Disassembles functions in the background, and caches the SASS by the SHA-256 of the machine code, because a worker profiles the
 * same functions repeatedly. Not thread-safe. */
#ifndef RL_CUPTI_DISASSEMBLY_CACHE_H
#define RL_CUPTI_DISASSEMBLY_CACHE_H

#include "model/records.h"
#include "base/cubin.h"
#include "worker/code/disassembly.h"

typedef struct rl_cached_disassembly {
  char sha256[65];
  rl_disassembler disassembler; /* zeroed unless nvdisasm runs */
  rl_disassembly sass;
  char reason[RL_REASON_SIZE]; /* reason why sass is empty */
} rl_cached_disassembly;

typedef struct rl_disassembly_cache {
  rl_cached_disassembly **items;
  size_t count;
} rl_disassembly_cache;

/* Removes failed entries, so that the next request tries again (on a busy machine the first run of nvdisasm may exceed its time
 * limit). Removes all entries when there are more than 64. The caller must not hold a pointer to an entry. */
void rl_disassembly_cache_trim(rl_disassembly_cache *cache);
/* Returns the function's entry. Adds it and starts nvdisasm if there is none. Returns NULL when memory is out. */
rl_cached_disassembly *rl_disassembly_cache_request(rl_disassembly_cache *cache, const rl_cubin_function *function,
                                                    const void *cubin, size_t size);
/* Waits until nvdisasm has ended. */
void rl_cached_disassembly_wait(rl_cached_disassembly *entry);
/* Waits at most timeout_ms for the end of nvdisasm. Returns whether the SASS is available. */
bool rl_cached_disassembly_is_ready(rl_cached_disassembly *entry, int timeout_ms);
/* Returns whether nvdisasm still runs. */
bool rl_cached_disassembly_is_running(const rl_cached_disassembly *entry);
void rl_disassembly_cache_clear(rl_disassembly_cache *cache);

#endif
