/* Shared memory of the machine: its layout, which all blocks of a launch have in common, and each block's own. */
#include "machine_parts.h"
#include "pool.h"

#include <cstring>

namespace simt {

/* Variables from the start, what the launch asked for from DYNAMIC_AT. */
enum : size_t { DYNAMIC_AT = STATIC_BYTES * 2, ARENA_BYTES = DYNAMIC_AT + MOST_SHARED_BYTES + 4096, POISON = 0xff };
static pool arenas = {ARENA_BYTES};

struct slot { /* the same place in every block */
  const void *key;
  size_t at, bytes;
};
static std::vector<slot> slots; /* the first: dynamic */
static size_t shared_end;

void lay_out(size_t dynamic_bytes) {
  slots.assign(1, {NULL, 0, dynamic_bytes});
  shared_end = 0;
}

void take_memory(block &b) {
  b.shared = arenas.take();
  SIMT_ASAN(__asan_poison_memory_region(b.shared, ARENA_BYTES));
}

void spoil_memory(block &b) {
  for (size_t i = 0; i < b.has.size(); i++)
    if (b.has[i]) memset(b.shared + slots[i].at, POISON, slots[i].bytes);
}

void give_memory_back(block &b) { arenas.give_back(b.shared); }

/* The slot's memory in this block, poisoned when it is first asked for. */
static void *memory_of(block &b, size_t index) {
  const slot &s = slots[index];
  if (b.has.size() <= index) b.has.resize(index + 1);
  if (!b.has[index]) {
    SIMT_ASAN(__asan_unpoison_memory_region(b.shared + s.at, s.bytes));
    memset(b.shared + s.at, POISON, s.bytes);
    b.has[index] = true;
  }
  return b.shared + s.at;
}

/* The next place that is aligned so, and no better. */
static size_t aligned_after(size_t at, size_t alignment) {
  at = (at + alignment - 1) / alignment * alignment;
  return at % (2 * alignment) ? at : at + alignment;
}

void *shared_variable(const void *key, size_t bytes, size_t alignment) {
  enum { APART = 64 };
  block &b = *self().of->of;
  for (size_t i = 1; i < slots.size(); i++)
    if (slots[i].key == key) return memory_of(b, i);
  const size_t at = aligned_after(shared_end + APART, alignment);
  shared_end = at + bytes;
  size_t all = 0;
  slots.push_back({key, at, bytes});
  for (size_t i = 1; i < slots.size(); i++) all += slots[i].bytes;
  if (all > STATIC_BYTES || shared_end > DYNAMIC_AT) die("%zu bytes of static shared memory", all);
  return memory_of(b, slots.size() - 1);
}

void *dynamic_memory(size_t alignment) {
  slot &dynamic = slots[0];
  if (dynamic.at == 0) dynamic.at = aligned_after(DYNAMIC_AT + 1, alignment);
  return memory_of(*self().of->of, 0);
}

/* A block of the cluster is told by the bits above: 0 is the block itself. */
enum : uint32_t { RANK_SHIFT = 24 };

block &block_at(uint32_t address) {
  block &own = *self().of->of;
  const uint32_t rank = address >> RANK_SHIFT;
  return rank ? *own.of->blocks[rank - 1] : own;
}

uint32_t shared_address(const void *of) {
  const unsigned char *shared = self().of->of->shared, *at = (const unsigned char *)of;
  if (at < shared || at >= shared + ARENA_BYTES) die("%p is no address of shared memory", of);
  return (uint32_t)(at - shared);
}

uint32_t address_in_cluster(uint32_t address, uint32_t rank) {
  if (rank >= cluster_blocks()) die("the cluster has no block %u", rank);
  return (address & ((1u << RANK_SHIFT) - 1)) | (rank + 1) << RANK_SHIFT;
}

void *at_shared_address(uint32_t address, size_t bytes) {
  block &b = block_at(address);
  const size_t at = address & ((1u << RANK_SHIFT) - 1);
  if (at % bytes) die("shared address %#zx is not aligned to %zu bytes", at, bytes);
  for (size_t i = 0; i < slots.size(); i++)
    if (at >= slots[i].at && at + bytes <= slots[i].at + slots[i].bytes && slots[i].at) return b.shared + at;
  die("%zu bytes at shared address %#zx are out of bounds", bytes, at);
}

uint32_t cluster_rank() { return self().of->of->rank; }
uint32_t cluster_blocks() { return (uint32_t)self().of->of->of->blocks.size(); }

}  // namespace simt
