/* An entry is running (its nvdisasm process has not ended), ready (it has SASS) or failed (it has a reason). At most 16 processes
 * run at a time. */
#include "worker/cupti/disassembly_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ENTRIES = 64, MAX_PROCESSES = 16 };

static void free_entry(rl_cached_disassembly *entry) {
  rl_disassembler_stop(&entry->disassembler);
  rl_disassembly_clear(&entry->sass);
  free(entry);
}

void rl_disassembly_cache_clear(rl_disassembly_cache *cache) {
  for (size_t i = 0; i < cache->count; i++) free_entry(cache->items[i]);
  free(cache->items);
  *cache = (rl_disassembly_cache){0};
}

bool rl_cached_disassembly_is_running(const rl_cached_disassembly *entry) { return entry->disassembler.process.pid != 0; }
static bool has_failed(const rl_cached_disassembly *entry) {
  return !rl_cached_disassembly_is_running(entry) && entry->sass.count == 0;
}

void rl_disassembly_cache_trim(rl_disassembly_cache *cache) {
  size_t kept = 0;
  if (cache->count > MAX_ENTRIES) rl_disassembly_cache_clear(cache);
  for (size_t i = 0; i < cache->count; i++)
    if (has_failed(cache->items[i])) free_entry(cache->items[i]);
    else cache->items[kept++] = cache->items[i];
  cache->count = kept;
}

static rl_cached_disassembly *find(const rl_disassembly_cache *cache, const char *sha256) {
  for (size_t i = 0; i < cache->count; i++)
    if (strcmp(cache->items[i]->sha256, sha256) == 0) return cache->items[i];
  return NULL;
}

static size_t count_running(const rl_disassembly_cache *cache) {
  size_t count = 0;
  for (size_t i = 0; i < cache->count; i++) count += rl_cached_disassembly_is_running(cache->items[i]);
  return count;
}

static void set_reason(rl_cached_disassembly *entry, const rl_error *why) {
  snprintf(entry->reason, sizeof entry->reason, "%s", why->message);
}

rl_cached_disassembly *rl_disassembly_cache_request(rl_disassembly_cache *cache, const rl_cubin_function *function,
                                                    const void *cubin, size_t size) {
  rl_error why = {0};
  rl_cached_disassembly *entry = find(cache, function->sha256);
  if (entry != NULL) return entry;
  for (size_t i = 0; i < cache->count && count_running(cache) >= MAX_PROCESSES; i++) rl_cached_disassembly_wait(cache->items[i]);
  rl_cached_disassembly **grown = realloc(cache->items, (cache->count + 1) * sizeof *grown);
  if (grown != NULL) cache->items = grown;
  if (grown == NULL || (entry = calloc(1, sizeof *entry)) == NULL) return NULL;
  snprintf(entry->sha256, sizeof entry->sha256, "%s", function->sha256);
  if (rl_disassembler_start(NULL, cubin, size, function->symbol_index, &entry->disassembler, &why) < 0) set_reason(entry, &why);
  return cache->items[cache->count++] = entry;
}

bool rl_cached_disassembly_is_ready(rl_cached_disassembly *entry, int timeout_ms) {
  if (rl_process_exits_within(&entry->disassembler.process, timeout_ms)) rl_cached_disassembly_wait(entry);
  return entry->sass.count > 0;
}

void rl_cached_disassembly_wait(rl_cached_disassembly *entry) {
  rl_error why = {0};
  if (rl_cached_disassembly_is_running(entry) && rl_disassembler_finish(&entry->disassembler, &entry->sass, &why) < 0)
    set_reason(entry, &why);
}
