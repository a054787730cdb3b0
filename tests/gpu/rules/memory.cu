/* Kernels bound by memory: DRAM, L2, L1, shared and local memory, compression. */
#include <cuda_fp16.h>

#include "kernels.h"

/* Unrolled, because DRAM is saturated only with several loads in flight per thread. */
__global__ void moves_all(const uint4 *__restrict__ from, uint4 *__restrict__ to, size_t count) {
#pragma unroll 4
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) to[i] = from[i];
}

__global__ void reads_all(const uint4 *from, uint32_t *sink, size_t count) {
  uint32_t sum = 0;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
    sum += from[i].x ^ from[i].y ^ from[i].z ^ from[i].w;
  if (sum == 12345) *sink = sum;
}

/* y = max(x, 0), one FP16 element per thread; with 2048 x 2048 elements the kernel of tests/unit/data/ncu_relu_fp16_h200.csv. */
__global__ void takes_positive(const __half *x, __half *y, size_t count) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < count) y[i] = __hmax(x[i], __float2half(0));
}

/* Neighbouring threads access words that are STRIDE words apart. */
template <int STRIDE> __global__ void reads_apart(const uint32_t *from, uint32_t *sink, size_t count) {
  uint32_t sum = 0;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count / STRIDE; i += (size_t)gridDim.x * blockDim.x)
    sum += from[i * STRIDE];
  if (sum == 12345) *sink = sum;
}

template <int STRIDE> __global__ void writes_apart(uint32_t *to, size_t count) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count / STRIDE; i += (size_t)gridDim.x * blockDim.x)
    to[i * STRIDE] = 1;
}

/* Every block reads the same bytes: more than L1 holds, less than L2 holds. */
__global__ void reads_again(const uint4 *from, uint32_t *sink, size_t count, int rounds) {
  uint32_t sum = 0;
  for (int round = 0; round < rounds; round++)
    for (size_t i = threadIdx.x; i < count; i += blockDim.x) {
      uint4 value = __ldg(&from[(i + blockIdx.x * 4096) % count]);
      sum += value.x ^ value.y ^ value.z ^ value.w;
    }
  if (sum == 12345) *sink = sum;
}

/* WAYS threads of a warp access different words of one bank. */
template <int WAYS> __global__ void reads_banks(uint32_t *sink, int rounds) {
  __shared__ uint32_t words[32 * 33];
  for (int i = threadIdx.x; i < 32 * 33; i += blockDim.x) words[i] = i;
  __syncthreads();
  uint32_t sum = 0, at = (uint32_t)__cvta_generic_to_shared(&words[threadIdx.x % 32 * (WAYS == 1 ? 1 : WAYS)]);
  for (int round = 0; round < rounds; round++)
#pragma unroll
    for (int i = 0; i < 16; i++) {
      uint32_t value;
      asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(value) : "r"(at));
      sum += value;
    }
  if (sum == 12345) *sink = sum;
}

template <int WAYS> __global__ void writes_banks(uint32_t *sink, int rounds) {
  __shared__ uint32_t words[32 * 33];
  uint32_t at = (uint32_t)__cvta_generic_to_shared(&words[threadIdx.x % 32 * (WAYS == 1 ? 1 : WAYS)]);
  for (int round = 0; round < rounds; round++)
#pragma unroll
    for (int i = 0; i < 16; i++) asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(at), "r"(i) : "memory");
  __syncthreads();
  if (words[threadIdx.x] == 12345) *sink = 1;
}

/* The index is not known at compile time, so the array is in local memory. */
__global__ void keeps_an_array(uint32_t *sink, int rounds, int step) {
  uint32_t kept[64];
  for (int i = 0; i < 64; i++) kept[i] = i * threadIdx.x;
  uint32_t at = threadIdx.x;
  for (int round = 0; round < rounds; round++) {
    kept[at % 64] += round;
    at += kept[(at + step) % 64];
  }
  if (at == 12345) *sink = at;
}

/* Writes pseudo-random values, and zeros in one block of 256 vectors of every `every`: only the zeros compress. */
__global__ void writes_noise(uint4 *to, size_t count, uint32_t every) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
    uint32_t x = (uint32_t)i * 2654435761u;
    x ^= x >> 15, x *= 2246822519u, x ^= x >> 13;
    bool plain = (i / 256) % every == 0;
    to[i] = plain ? make_uint4(0, 0, 0, 0) : make_uint4(x, x * 3266489917u, x * 668265263u, x * 374761393u);
  }
}

namespace {

constexpr size_t words = rules_buffers::bytes / 4, quads = words / 4;

const rl_launch launches[] = {
    RULES_LAUNCH("copy", moves_all, buffers.sm_count * 16, 256, 0, (uint4 *)buffers.from, (uint4 *)buffers.to, quads),
    RULES_LAUNCH("read", reads_all, buffers.sm_count * 16, 256, 0, (uint4 *)buffers.from, buffers.to, quads),
    RULES_LAUNCH("relu", takes_positive, 32768, 128, 0, (__half *)buffers.from, (__half *)buffers.to, (size_t)2048 * 2048),
    RULES_LAUNCH("read_apart", reads_apart<32>, buffers.sm_count * 16, 256, 0, buffers.from, buffers.to, words),
    RULES_LAUNCH("write_apart", writes_apart<32>, buffers.sm_count * 16, 256, 0, buffers.to, words),
    RULES_LAUNCH("write", writes_apart<1>, buffers.sm_count * 16, 256, 0, buffers.to, words / 4),
    RULES_LAUNCH("read_again", reads_again, buffers.sm_count * 2, 1024, 0, (uint4 *)buffers.from, buffers.to, (size_t)65536, 4),
    RULES_LAUNCH("read_banks", reads_banks<32>, buffers.sm_count * 4, 256, 0, buffers.to, 100),
    RULES_LAUNCH("read_no_banks", reads_banks<1>, buffers.sm_count * 8, 256, 0, buffers.to, 400),
    RULES_LAUNCH("write_banks", writes_banks<32>, buffers.sm_count * 4, 256, 0, buffers.to, 100),
    RULES_LAUNCH("write_no_banks", writes_banks<1>, buffers.sm_count * 8, 256, 0, buffers.to, 400),
    RULES_LAUNCH("local", keeps_an_array, buffers.sm_count * 4, 256, 0, buffers.to, 500, 7),
    RULES_LAUNCH("noise", writes_noise, buffers.sm_count * 16, 256, 0, (uint4 *)buffers.compressible, quads, 4u),
    RULES_LAUNCH("only_noise", writes_noise, buffers.sm_count * 16, 256, 0, (uint4 *)buffers.compressible, quads, 0xffffffffu),
    RULES_LAUNCH("no_noise", writes_noise, buffers.sm_count * 16, 256, 0, (uint4 *)buffers.compressible, quads, 1u),
};

}  // namespace

const rules_launches memory_launches = {launches, sizeof launches / sizeof *launches};
