/* Shared memory of the emulator: a layout that all blocks of a launch have in common, and each block's own memory. */
#include "emulator_internal.h"
#include "pool.h"

#include <cstring>

namespace simt {

/* Static variables from offset 0 on, dynamic shared memory from DYNAMIC_OFFSET on. */
enum : size_t { DYNAMIC_OFFSET = STATIC_BYTES * 2, ARENA_BYTES = DYNAMIC_OFFSET + MAX_SHARED_BYTES + 4096, POISON = 0xff };
static pool arenas = {ARENA_BYTES};

struct variable { /* at the same offset in every block */
  const void *key;
  size_t offset, bytes;
};
static std::vector<variable> variables; /* [0]: dynamic shared memory */
static size_t static_end;

void reset_shared_layout(size_t dynamic_bytes) {
  variables.assign(1, {NULL, 0, dynamic_bytes});
  static_end = 0;
}

void allocate_shared_memory(block_state &b) {
  b.shared = arenas.allocate();
  SIMT_ASAN(__asan_poison_memory_region(b.shared, ARENA_BYTES));
}

void poison_shared_memory(block_state &b) {
  for (size_t i = 0; i < b.initialised.size(); i++)
    if (b.initialised[i]) memset(b.shared + variables[i].offset, POISON, variables[i].bytes);
}

void free_shared_memory(block_state &b) { arenas.release(b.shared); }

/* Returns the variable's memory in the block, which is poisoned at its first use. */
static void *memory_of(block_state &b, size_t index) {
  const variable &v = variables[index];
  if (b.initialised.size() <= index) b.initialised.resize(index + 1);
  if (!b.initialised[index]) {
    SIMT_ASAN(__asan_unpoison_memory_region(b.shared + v.offset, v.bytes));
    memset(b.shared + v.offset, POISON, v.bytes);
    b.initialised[index] = true;
  }
  return b.shared + v.offset;
}

/* Returns the next offset that is a multiple of the alignment and of no larger power of two. */
static size_t align_exactly(size_t offset, size_t alignment) {
  offset = (offset + alignment - 1) / alignment * alignment;
  return offset % (2 * alignment) ? offset : offset + alignment;
}

void *shared_variable(const void *key, size_t bytes, size_t alignment) {
  enum { GAP_BYTES = 64 };
  block_state &b = *running_thread().warp->block;
  for (size_t i = 1; i < variables.size(); i++)
    if (variables[i].key == key) return memory_of(b, i);
  const size_t offset = align_exactly(static_end + GAP_BYTES, alignment);
  static_end = offset + bytes;
  size_t total = 0;
  variables.push_back({key, offset, bytes});
  for (size_t i = 1; i < variables.size(); i++) total += variables[i].bytes;
  if (total > STATIC_BYTES || static_end > DYNAMIC_OFFSET) die("%zu bytes of static shared memory", total);
  return memory_of(b, variables.size() - 1);
}

void *dynamic_shared_memory(size_t alignment) {
  variable &dynamic = variables[0];
  if (dynamic.offset == 0) dynamic.offset = align_exactly(DYNAMIC_OFFSET + 1, alignment);
  return memory_of(*running_thread().warp->block, 0);
}

/* The bits of an address above the offset: 0 for the calling block, rank + 1 for a block of the cluster. */
enum : uint32_t { RANK_SHIFT = 24 };

block_state &block_of_address(uint32_t address) {
  block_state &own = *running_thread().warp->block;
  const uint32_t rank = address >> RANK_SHIFT;
  return rank ? *own.cluster->blocks[rank - 1] : own;
}

uint32_t shared_address(const void *pointer) {
  const unsigned char *shared = running_thread().warp->block->shared, *byte = (const unsigned char *)pointer;
  if (byte < shared || byte >= shared + ARENA_BYTES) die("%p is no address of shared memory", pointer);
  return (uint32_t)(byte - shared);
}

uint32_t mapa(uint32_t address, uint32_t rank) {
  if (rank >= cluster_blocks()) die("the cluster has no block %u", rank);
  return (address & ((1u << RANK_SHIFT) - 1)) | (rank + 1) << RANK_SHIFT;
}

void *shared_pointer(uint32_t address, size_t bytes) {
  block_state &b = block_of_address(address);
  const size_t offset = address & ((1u << RANK_SHIFT) - 1);
  if (offset % bytes) die("shared address %#zx is not aligned to %zu bytes", offset, bytes);
  for (const variable &v : variables)
    if (v.offset && offset >= v.offset && offset + bytes <= v.offset + v.bytes) return b.shared + offset;
  die("%zu bytes at shared address %#zx are out of bounds", bytes, offset);
}

uint32_t cluster_rank() { return running_thread().warp->block->rank; }
uint32_t cluster_blocks() { return (uint32_t)running_thread().warp->block->cluster->blocks.size(); }

}  // namespace simt
