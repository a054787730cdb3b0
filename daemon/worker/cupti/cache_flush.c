/* A callback of the subscriber counts kernel launches. Before a launch i with flush_before[i], the callback enqueues copies
 * larger than L2 on the launch's stream, perhaps followed by the kernel of discard_l2.cu, and loads and unloads a module. Errors
 * in the callback are kept and returned by rl_cache_flush_disable. */
#include "worker/cupti/cache_flush.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdlib.h>

#include "embedded.h"
#include "model/profile.h"
#include "worker/cupti/driver_entry_point.h"
#include "worker/cupti/aliased_mapping.h"
#include "worker/cupti/check.h"
#include "worker/cupti/subscriber.h"

extern const rl_embedded rl_empty_kernel_fatbin[]; /* empty_kernel.cu */
extern const rl_embedded rl_discard_l2_fatbin[];   /* discard_l2.cu */

/* MIN_FLUSH_BYTES fills an L2 of 60 MB. RL_L2_FULL: the written chunk stays dirty in L2. */
static const size_t MIN_FLUSH_BYTES = 128 << 20, CHUNK_BYTES = 4 << 20;
static const size_t PAGE_BYTES = 2 << 20, TOUCHED_BYTES = 64; /* TOUCHED_BYTES of each page are read */
enum { DISCARDING_BLOCKS_PER_SM = 8, DISCARDING_THREADS = 256 };

/* Functions of the driver API that are resolved at run time. */
/* clang-format off */
#define DRIVER_FUNCTIONS(APPLY) \
  APPLY(cuModuleLoadData) APPLY(cuModuleUnload) APPLY(cuModuleGetFunction) APPLY(cuLaunchKernel)
/* clang-format on */

struct rl_cache_flush {
  char *memory; /* RL_L2_FULL: read by the copies. RL_L2_EMPTY: written by the copies, then discarded */
  size_t memory_bytes;
  rl_aliased_mapping chunk; /* the other side of the copies */
#define MEMBER(NAME) __typeof__(NAME) *NAME;
  DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
  CUmodule discard_module;     /* NULL: L2 stays full */
  CUfunction discard_function; /* rl_discard_l2 */
  unsigned discarding_blocks;
  const bool *flush_before; /* flush_before[i]: whether the caches are flushed before launch i; `count` entries */
  uint64_t count, launches; /* launches: number of launches since rl_cache_flush_enable */
  cudaError_t copy_result;
  CUresult load_result, discard_result;
};

size_t rl_cache_flush_kernel_count(const rl_cache_flush *flush) { return flush->discard_module != NULL ? 1 : 0; }

/* Enqueues the kernel that discards the lines of both sides of the copies. */
static void discard_lines(rl_cache_flush *flush, cudaStream_t stream) {
  size_t chunk_bytes = flush->chunk.mapped ? CHUNK_BYTES : flush->chunk.bytes;
  void *arguments[] = {&flush->memory, &flush->memory_bytes, &flush->chunk.address, &chunk_bytes};
  if (flush->discard_result == CUDA_SUCCESS)
    flush->discard_result = flush->cuLaunchKernel(flush->discard_function, flush->discarding_blocks, 1, 1, DISCARDING_THREADS, 1,
                                                  1, 0, stream, arguments, NULL);
}

void rl_cache_flush_l2(rl_cache_flush *flush, cudaStream_t stream) {
  const bool discards = flush->discard_module != NULL;
  const size_t bytes = flush->chunk.bytes;
  for (size_t offset = 0; offset < flush->memory_bytes && flush->copy_result == cudaSuccess; offset += bytes) {
    void *part = flush->memory + offset;
    flush->copy_result = cudaMemcpyAsync(discards ? part : flush->chunk.address, discards ? flush->chunk.address : part, bytes,
                                         cudaMemcpyDeviceToDevice, stream);
  }
  if (discards) discard_lines(flush, stream);
}

/* Loads and unloads a module: the driver then invalidates the instruction and constant caches. */
static void invalidate_code_caches(rl_cache_flush *flush) {
  CUmodule module;
  if (flush->load_result == CUDA_SUCCESS) flush->load_result = flush->cuModuleLoadData(&module, rl_empty_kernel_fatbin[0].text);
  if (flush->load_result == CUDA_SUCCESS) flush->load_result = flush->cuModuleUnload(module);
}

static size_t min_size(size_t a, size_t b) { return a < b ? a : b; }

/* Copies TOUCHED_BYTES of each page, so that the TLBs hold its translation. Ignores a failure: the memory of a destroyed context
 * cannot be read. */
static void touch_pages(const rl_aliased_mapping *chunk, const rl_device_allocation *memory, cudaStream_t stream) {
  const size_t width = min_size(TOUCHED_BYTES, memory->bytes);
  if (width == 0) return;
  const size_t pages = min_size((memory->bytes - width) / PAGE_BYTES + 1, chunk->bytes / width);
  if (cudaMemcpy2DAsync(chunk->address, width, (const void *)memory->address, PAGE_BYTES, width, pages, cudaMemcpyDeviceToDevice,
                        stream) != cudaSuccess)
    (void)cudaGetLastError();
}

static void touch_allocations(const rl_cache_flush *flush, cudaStream_t stream) {
  size_t count = 0;
  rl_device_allocation *allocations = rl_device_allocations_copy(&count);
  for (size_t i = 0; i < count; i++) touch_pages(&flush->chunk, &allocations[i], stream);
  free(allocations);
}

static void on_launch(void *context, bool entering, const rl_driver_launch *launch) {
  rl_cache_flush *flush = context;
  if (!entering) return;
  uint64_t index = flush->launches++;
  if (index == 0) touch_allocations(flush, launch->stream);
  if (index >= flush->count || !flush->flush_before[index]) return;
  rl_cache_flush_l2(flush, launch->stream);
  invalidate_code_caches(flush);
}

/* Allocates the memory on one side of the copies: at least `bytes`, rounded up to a multiple of the size of one copy. */
static int allocate_memory(rl_cache_flush *flush, size_t bytes, rl_error *err) {
  const size_t copy_bytes = flush->chunk.bytes;
  flush->memory_bytes = (bytes + copy_bytes - 1) / copy_bytes * copy_bytes;
  if (rl_cuda_check(cudaMalloc((void **)&flush->memory, flush->memory_bytes), "memory for the cache flush", err) < 0) return -1;
  return rl_cuda_check(cudaMemset(flush->memory, 0, flush->memory_bytes), "cudaMemset", err);
}

static int resolve_driver(rl_cache_flush *flush, rl_error *err) {
#define FIND(NAME) \
  if ((*(void **)&flush->NAME = rl_driver_entry_point(#NAME, err)) == NULL) return -1;
  DRIVER_FUNCTIONS(FIND)
#undef FIND
  return 0;
}

static int load_discarding_kernel(rl_cache_flush *flush, int device, rl_error *err) {
  int sm_count = 0;
  if (rl_cuda_check(cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device), "number of SMs", err) < 0)
    return -1;
  flush->discarding_blocks = (unsigned)(sm_count * DISCARDING_BLOCKS_PER_SM);
  CUresult result = flush->cuModuleLoadData(&flush->discard_module, rl_discard_l2_fatbin[0].text);
  if (result == CUDA_SUCCESS)
    result = flush->cuModuleGetFunction(&flush->discard_function, flush->discard_module, "rl_discard_l2");
  return result == CUDA_SUCCESS
             ? 0
             : rl_fail(err, RL_CUDA, (int)result, "the driver cannot load the kernel that empties L2: error %d", (int)result);
}

int rl_cache_flush_open(rl_cache_flush **flush, int state, rl_error *err) {
  int device = 0, l2_bytes = 0;
  if (rl_cuda_check(cudaGetDevice(&device), "cudaGetDevice", err) < 0 ||
      rl_cuda_check(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device), "size of L2", err) < 0)
    return -1;
  rl_cache_flush *created = calloc(1, sizeof *created);
  if (created == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a cache flush");
  size_t bytes = 2 * (size_t)l2_bytes > MIN_FLUSH_BYTES ? 2 * (size_t)l2_bytes : MIN_FLUSH_BYTES;
  if (resolve_driver(created, err) < 0 || rl_aliased_mapping_open(&created->chunk, device, bytes, CHUNK_BYTES, err) < 0 ||
      allocate_memory(created, bytes, err) < 0 || (state == RL_L2_EMPTY && load_discarding_kernel(created, device, err) < 0)) {
    rl_cache_flush_close(created);
    return -1;
  }
  *flush = created;
  return 0;
}

void rl_cache_flush_close(rl_cache_flush *flush) {
  if (flush == NULL) return;
  if (flush->discard_module != NULL) flush->cuModuleUnload(flush->discard_module);
  cudaFree(flush->memory);
  rl_aliased_mapping_close(&flush->chunk);
  free(flush);
}

int rl_cache_flush_enable(rl_cache_flush *flush, const bool *flush_before, uint64_t count, rl_error *err) {
  flush->flush_before = flush_before;
  flush->count = count;
  flush->launches = 0;
  flush->copy_result = cudaSuccess;
  flush->load_result = flush->discard_result = CUDA_SUCCESS;
  return rl_subscriber_watch_launches(on_launch, flush, err);
}

int rl_cache_flush_disable(rl_cache_flush *flush, uint64_t *launches, rl_error *err) {
  rl_subscriber_unwatch_launches();
  *launches = flush->launches;
  if (flush->load_result != CUDA_SUCCESS)
    return rl_fail(err, RL_CUDA, (int)flush->load_result,
                   "the driver cannot load the module that flushes the instruction caches");
  if (flush->discard_result != CUDA_SUCCESS)
    return rl_fail(err, RL_CUDA, (int)flush->discard_result, "the driver cannot launch the kernel that empties L2: error %d",
                   (int)flush->discard_result);
  return rl_cuda_check(flush->copy_result, "copies that flush L2", err);
}
