#include "worker/cupti/flush.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdlib.h>

#include "embedded.h"
#include "worker/cupti/driver.h"
#include "worker/cupti/fold.h"
#include "worker/cupti/result.h"
#include "worker/cupti/subscriber.h"

extern const rl_embedded rl_cupti_code[]; /* nothing.cu */

/* Validated against ncu's flush on 60 MB of L2. A piece is what stays dirty in L2. */
static const size_t LEAST_BYTES = 128 << 20, PIECE_BYTES = 4 << 20;
static const size_t PAGE_BYTES = 2 << 20, TOUCHED_BYTES = 64; /* of what a translation is for, and read of it */

struct rl_flush {
  char *memory; /* what is read */
  size_t bytes;
  rl_fold target; /* what is written */
  CUresult (*load)(CUmodule *module, const void *code);
  CUresult (*unload)(CUmodule module);
  const bool *before; /* by launch */
  uint64_t count, launches;
  cudaError_t failed;
  CUresult load_failed;
};

void rl_flush_run(rl_flush *flush, cudaStream_t stream) {
  const rl_fold *target = &flush->target;
  for (size_t at = 0; at < flush->bytes && flush->failed == cudaSuccess; at += target->bytes)
    flush->failed = cudaMemcpyAsync(target->address, flush->memory + at, target->bytes, cudaMemcpyDeviceToDevice, stream);
}

static void empty_code_caches(rl_flush *flush) {
  CUmodule module;
  if (flush->load_failed == CUDA_SUCCESS) flush->load_failed = flush->load(&module, rl_cupti_code[0].text);
  if (flush->load_failed == CUDA_SUCCESS) flush->load_failed = flush->unload(module);
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* What can't be read, as it went with its context, need not be translated. */
static void touch(const rl_fold *target, const rl_allocation *memory, cudaStream_t stream) {
  const size_t width = smaller(TOUCHED_BYTES, memory->bytes);
  if (width == 0) return;
  const size_t pages = smaller((memory->bytes - width) / PAGE_BYTES + 1, target->bytes / width);
  if (cudaMemcpy2DAsync(target->address, width, (const void *)memory->address, PAGE_BYTES, width, pages, cudaMemcpyDeviceToDevice,
                        stream) != cudaSuccess)
    (void)cudaGetLastError();
}

static void translate_addresses(const rl_flush *flush, cudaStream_t stream) {
  size_t count = 0;
  rl_allocation *all = rl_allocations_copy(&count);
  for (size_t i = 0; i < count; i++) touch(&flush->target, &all[i], stream);
  free(all);
}

static void on_launch(void *context, bool entering, const rl_launched *launch) {
  rl_flush *flush = context;
  if (!entering) return;
  uint64_t index = flush->launches++;
  if (index == 0) translate_addresses(flush, launch->stream);
  if (index >= flush->count || !flush->before[index]) return;
  rl_flush_run(flush, launch->stream);
  empty_code_caches(flush);
}

/* Of whole copies. */
static int read_memory(rl_flush *flush, size_t bytes, rl_error *err) {
  const size_t copy = flush->target.bytes;
  flush->bytes = (bytes + copy - 1) / copy * copy;
  if (rl_cuda_check(cudaMalloc((void **)&flush->memory, flush->bytes), "memory to flush the caches with", err) != 0) return -1;
  return rl_cuda_check(cudaMemset(flush->memory, 0, flush->bytes), "cudaMemset", err);
}

int rl_flush_open(rl_flush **flush, rl_error *err) {
  int device = 0, l2_bytes = 0;
  if (rl_cuda_check(cudaGetDevice(&device), "cudaGetDevice", err) != 0 ||
      rl_cuda_check(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device), "size of L2", err) != 0)
    return -1;
  rl_flush *made = calloc(1, sizeof *made);
  if (made == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for a cache flush");
  size_t bytes = 2 * (size_t)l2_bytes > LEAST_BYTES ? 2 * (size_t)l2_bytes : LEAST_BYTES;
  *(void **)&made->load = rl_driver_function("cuModuleLoadData", err);
  *(void **)&made->unload = rl_driver_function("cuModuleUnload", err);
  if (made->load == NULL || made->unload == NULL || rl_fold_open(&made->target, device, bytes, PIECE_BYTES, err) != 0 ||
      read_memory(made, bytes, err) != 0) {
    rl_flush_close(made);
    return -1;
  }
  *flush = made;
  return 0;
}

void rl_flush_close(rl_flush *flush) {
  if (flush == NULL) return;
  cudaFree(flush->memory);
  rl_fold_close(&flush->target);
  free(flush);
}

int rl_flush_arm(rl_flush *flush, const bool *before, uint64_t count, rl_error *err) {
  flush->before = before;
  flush->count = count;
  flush->launches = 0;
  flush->failed = cudaSuccess;
  flush->load_failed = CUDA_SUCCESS;
  return rl_subscriber_watch(on_launch, flush, err);
}

int rl_flush_disarm(rl_flush *flush, uint64_t *launches, rl_error *err) {
  rl_subscriber_unwatch();
  *launches = flush->launches;
  if (flush->load_failed != CUDA_SUCCESS)
    return rl_fail(err, RL_CUDA, (int)flush->load_failed, "the driver can't load code, which empties the caches of code");
  return rl_cuda_check(flush->failed, "copies that flush the cache", err);
}
