/* Implements the shared memory of the emulator. All blocks of a launch have the same layout of variables, but each block has its
 * own memory. */
#include "emulator_internal.h"
#include "pool.h"

#include <cstring>

namespace simt {

/* Offsets in the memory of a block: dynamic shared memory begins near 0, because a descriptor of wgmma has only 18 bits of an
 * address; static variables begin at STATIC_OFFSET. POISON fills a variable before its first use: all bytes 0xff are NaN. */
enum : size_t { STATIC_OFFSET = MAX_SHARED_BYTES + 4096, ARENA_BYTES = STATIC_OFFSET + STATIC_BYTES * 2, POISON = 0xff };
static pool arenas = {ARENA_BYTES};

struct variable { /* a shared variable, which has the same offset in every block */
  const void *key;
  size_t offset, bytes;
};
static std::vector<variable> variables; /* [0]: dynamic shared memory */
static size_t static_end;

void reset_shared_layout(size_t dynamic_bytes) {
  variables.assign(1, {NULL, 0, dynamic_bytes});
  static_end = STATIC_OFFSET;
}

void allocate_shared_memory(block_state &block) {
  block.shared = arenas.allocate();
  SIMT_ASAN(__asan_poison_memory_region(block.shared, ARENA_BYTES));
}

void poison_shared_memory(block_state &block) {
  for (size_t i = 0; i < block.initialised.size(); i++)
    if (block.initialised[i]) memset(block.shared + variables[i].offset, POISON, variables[i].bytes);
}

void free_shared_memory(block_state &block) { arenas.release(block.shared); }

/* Returns the memory of a variable in the block. At the first use in this block, fills it with POISON. */
static void *memory_of(block_state &block, size_t index) {
  const variable &entry = variables[index];
  if (block.initialised.size() <= index) block.initialised.resize(index + 1);
  if (!block.initialised[index]) {
    SIMT_ASAN(__asan_unpoison_memory_region(block.shared + entry.offset, entry.bytes));
    memset(block.shared + entry.offset, POISON, entry.bytes);
    block.initialised[index] = true;
  }
  return block.shared + entry.offset;
}

/* Returns the next offset that is a multiple of the alignment and of no larger power of two. */
static size_t align_exactly(size_t offset, size_t alignment) {
  offset = (offset + alignment - 1) / alignment * alignment;
  return offset % (2 * alignment) ? offset : offset + alignment;
}

void *shared_variable(const void *key, size_t bytes, size_t alignment) {
  enum { GAP_BYTES = 64 };
  block_state &block = *running_thread().warp->block;
  for (size_t i = 1; i < variables.size(); i++)
    if (variables[i].key == key) return memory_of(block, i);
  const size_t offset = align_exactly(static_end + GAP_BYTES, alignment);
  static_end = offset + bytes;
  size_t total = 0;
  variables.push_back({key, offset, bytes});
  for (size_t i = 1; i < variables.size(); i++) total += variables[i].bytes;
  if (total > STATIC_BYTES || static_end > ARENA_BYTES) die("%zu bytes of static shared memory", total);
  return memory_of(block, variables.size() - 1);
}

void *dynamic_shared_memory(size_t alignment) {
  variable &dynamic = variables[0];
  if (dynamic.offset == 0) dynamic.offset = align_exactly(1, alignment);
  return memory_of(*running_thread().warp->block, 0);
}

/* The bits of a shared address from RANK_SHIFT on: 0 means the calling block, rank + 1 the block with this rank in the cluster.
 * The lower bits are the offset. */
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

void *shared_pointer(uint32_t address, size_t bytes) { return shared_pointer(address, bytes, bytes); }

void *shared_pointer(uint32_t address, size_t bytes, size_t alignment) {
  block_state &block = block_of_address(address);
  const size_t offset = address & ((1u << RANK_SHIFT) - 1);
  if (offset % alignment) die("shared address %#zx is not aligned to %zu bytes", offset, alignment);
  for (const variable &entry : variables)
    if (entry.offset && offset >= entry.offset && offset + bytes <= entry.offset + entry.bytes) return block.shared + offset;
  die("%zu bytes at shared address %#zx are out of bounds", bytes, offset);
}

uint32_t cluster_rank() { return running_thread().warp->block->rank; }
uint32_t cluster_blocks() { return (uint32_t)running_thread().warp->block->cluster->blocks.size(); }

}  // namespace simt
