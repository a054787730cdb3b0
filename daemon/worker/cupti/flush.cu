#include "worker/cupti/flush.h"

#include <cuda_runtime.h>
#include <errno.h>
#include <stdlib.h>

#include "worker/cupti/result.h"
#include "worker/cupti/subscriber.h"

static const size_t LEAST_BYTES = 256 << 20; /* validated against ncu's flush on 50 MB of L2 */

struct rl_flush {
  uint4 *memory;
  size_t bytes;
  int blocks;
  uint64_t flushes;
  cudaError_t failed;
};

/* The sum is stored only if it takes one value, so that no read can be left out and hardly ever one line is written. */
__global__ void rl_flush_l2(const uint4 *__restrict__ memory, size_t count, uint32_t *sink) {
  uint32_t sum = 0;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
    uint4 value = __ldcg(&memory[i]);
    sum += value.x ^ value.y ^ value.z ^ value.w;
  }
  if (sum == 0x9e3779b9u) *sink = sum;
}

static void on_launch(void *context, bool entering, CUstream stream) {
  rl_flush *flush = (rl_flush *)context;
  if (!entering) return;
  rl_flush_l2<<<flush->blocks, 256, 0, stream>>>(flush->memory, flush->bytes / sizeof(uint4), (uint32_t *)flush->memory);
  cudaError_t result = cudaGetLastError();
  if (result != cudaSuccess) flush->failed = result;
  flush->flushes++;
}

int rl_flush_open(rl_flush **flush, rl_error *err) {
  int device = 0, processors = 0, l2_bytes = 0;
  if (rl_cuda_check(cudaGetDevice(&device), "cudaGetDevice", err) != 0 ||
      rl_cuda_check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "multiprocessors", err) != 0 ||
      rl_cuda_check(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device), "size of L2", err) != 0)
    return -1;
  rl_flush *made = (rl_flush *)calloc(1, sizeof *made);
  if (made == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for a cache flush");
  made->bytes = 4 * (size_t)l2_bytes > LEAST_BYTES ? 4 * (size_t)l2_bytes : LEAST_BYTES;
  made->blocks = 8 * processors;
  int failed = rl_cuda_check(cudaMalloc((void **)&made->memory, made->bytes), "memory to flush the caches with", err) != 0 ||
               rl_cuda_check(cudaMemset(made->memory, 0, made->bytes), "cudaMemset", err) != 0;
  if (failed) {
    rl_flush_close(made);
    return -1;
  }
  *flush = made;
  return 0;
}

void rl_flush_close(rl_flush *flush) {
  if (flush == NULL) return;
  cudaFree(flush->memory);
  free(flush);
}

int rl_flush_arm(rl_flush *flush, rl_error *err) {
  flush->flushes = 0;
  flush->failed = cudaSuccess;
  return rl_subscriber_watch(on_launch, flush, err);
}

int rl_flush_disarm(rl_flush *flush, uint64_t *flushes, rl_error *err) {
  rl_subscriber_unwatch();
  *flushes = flush->flushes;
  return rl_cuda_check(flush->failed, "launch of the cache flush", err);
}
