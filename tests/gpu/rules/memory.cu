/* Launches of kernels that are limited by memory: DRAM, L2, L1, shared memory, local memory and compression in L2. A kernel whose
 * result is not used stores it only if it is 12345, so that the compiler cannot remove the loads. */
#include <cuda_fp16.h>

#include "kernels.h"

/* Copies `count` vectors of 16 bytes. Four iterations are unrolled, because DRAM is saturated only when each thread has several
 * loads in flight. */
__global__ void copy_all(const uint4 *__restrict__ from, uint4 *__restrict__ to, size_t count) {
#pragma unroll 4
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) to[i] = from[i];
}

__global__ void read_all(const uint4 *from, uint32_t *sink, size_t count) {
  uint32_t sum = 0;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
    sum += from[i].x ^ from[i].y ^ from[i].z ^ from[i].w;
  if (sum == 12345) *sink = sum;
}

/* Computes y = max(x, 0), one FP16 element per thread. With 2048 x 2048 elements, it is the kernel of
 * tests/unit/data/ncu_relu_fp16_h200.csv. */
__global__ void relu_fp16(const __half *x, __half *y, size_t count) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < count) y[i] = __hmax(x[i], __float2half(0));
}

/* read_strided and write_strided access every STRIDE-th of `count` words; neighbouring threads access words that are STRIDE words
 * apart. */
template <int STRIDE> __global__ void read_strided(const uint32_t *from, uint32_t *sink, size_t count) {
  uint32_t sum = 0;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count / STRIDE; i += (size_t)gridDim.x * blockDim.x)
    sum += from[i * STRIDE];
  if (sum == 12345) *sink = sum;
}

template <int STRIDE> __global__ void write_strided(uint32_t *to, size_t count) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count / STRIDE; i += (size_t)gridDim.x * blockDim.x)
    to[i * STRIDE] = 1;
}

/* Makes every block read the same `count` vectors `rounds` times: more bytes than L1 holds and fewer than L2 holds. */
__global__ void reread_from_l2(const uint4 *from, uint32_t *sink, size_t count, int rounds) {
  uint32_t sum = 0;
  for (int round = 0; round < rounds; round++)
    for (size_t i = threadIdx.x; i < count; i += blockDim.x) {
      uint4 value = __ldg(&from[(i + blockIdx.x * 4096) % count]);
      sum += value.x ^ value.y ^ value.z ^ value.w;
    }
  if (sum == 12345) *sink = sum;
}

/* read_with_bank_conflicts and write_with_bank_conflicts access shared memory such that WAYS lanes of a warp access different
 * words of one bank; with WAYS 1 there are no conflicts. */
template <int WAYS> __global__ void read_with_bank_conflicts(uint32_t *sink, int rounds) {
  __shared__ uint32_t words[32 * 33];
  for (int i = threadIdx.x; i < 32 * 33; i += blockDim.x) words[i] = i;
  __syncthreads();
  uint32_t sum = 0, address = (uint32_t)__cvta_generic_to_shared(&words[threadIdx.x % 32 * WAYS]);
  for (int round = 0; round < rounds; round++)
#pragma unroll
    for (int i = 0; i < 16; i++) {
      uint32_t value;
      asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(value) : "r"(address));
      sum += value;
    }
  if (sum == 12345) *sink = sum;
}

template <int WAYS> __global__ void write_with_bank_conflicts(uint32_t *sink, int rounds) {
  __shared__ uint32_t words[32 * 33];
  uint32_t address = (uint32_t)__cvta_generic_to_shared(&words[threadIdx.x % 32 * WAYS]);
  for (int round = 0; round < rounds; round++)
#pragma unroll
    for (int i = 0; i < 16; i++) asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(address), "r"(i) : "memory");
  __syncthreads();
  if (words[threadIdx.x] == 12345) *sink = 1;
}

/* Accesses an array of each thread at indices that are not known at compile time, so that the compiler places the array in local
 * memory. */
__global__ void index_local_array(uint32_t *sink, int rounds, int step) {
  uint32_t values[64];
  for (int i = 0; i < 64; i++) values[i] = i * threadIdx.x;
  uint32_t index = threadIdx.x;
  for (int round = 0; round < rounds; round++) {
    values[index % 64] += round;
    index += values[(index + step) % 64];
  }
  if (index == 12345) *sink = index;
}

/* Writes `count` vectors of 16 bytes in groups of 256: zeros in the groups whose index is a multiple of `every`, and
 * pseudo-random values in all other groups. L2 can compress only the zeros. */
__global__ void write_partly_compressible(uint4 *to, size_t count, uint32_t every) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
    uint32_t noise = (uint32_t)i * 2654435761u;
    noise ^= noise >> 15, noise *= 2246822519u, noise ^= noise >> 13;
    bool is_compressible = (i / 256) % every == 0;
    to[i] =
        is_compressible ? make_uint4(0, 0, 0, 0) : make_uint4(noise, noise * 3266489917u, noise * 668265263u, noise * 374761393u);
  }
}

namespace {

constexpr size_t words = rules_buffers::bytes / 4, vectors = words / 4; /* values of 4 and of 16 bytes in a buffer */

const rl_launch launches[] = {
    RULES_LAUNCH("copy", copy_all, buffers.sm_count * 16, 256, 0, (uint4 *)buffers.from, (uint4 *)buffers.to, vectors),
    RULES_LAUNCH("read", read_all, buffers.sm_count * 16, 256, 0, (uint4 *)buffers.from, buffers.to, vectors),
    RULES_LAUNCH("relu", relu_fp16, 32768, 128, 0, (__half *)buffers.from, (__half *)buffers.to, (size_t)2048 * 2048),
    RULES_LAUNCH("read_apart", read_strided<32>, buffers.sm_count * 16, 256, 0, buffers.from, buffers.to, words),
    RULES_LAUNCH("write_apart", write_strided<32>, buffers.sm_count * 16, 256, 0, buffers.to, words),
    RULES_LAUNCH("write", write_strided<1>, buffers.sm_count * 16, 256, 0, buffers.to, words / 4),
    RULES_LAUNCH("read_again", reread_from_l2, buffers.sm_count * 2, 1024, 0, (uint4 *)buffers.from, buffers.to, (size_t)65536,
                 4),
    RULES_LAUNCH("read_banks", read_with_bank_conflicts<32>, buffers.sm_count * 4, 256, 0, buffers.to, 100),
    RULES_LAUNCH("read_no_banks", read_with_bank_conflicts<1>, buffers.sm_count * 8, 256, 0, buffers.to, 400),
    RULES_LAUNCH("write_banks", write_with_bank_conflicts<32>, buffers.sm_count * 4, 256, 0, buffers.to, 100),
    RULES_LAUNCH("write_no_banks", write_with_bank_conflicts<1>, buffers.sm_count * 8, 256, 0, buffers.to, 400),
    RULES_LAUNCH("local", index_local_array, buffers.sm_count * 4, 256, 0, buffers.to, 500, 7),
    RULES_LAUNCH("noise", write_partly_compressible, buffers.sm_count * 16, 256, 0, (uint4 *)buffers.compressible, vectors, 4u),
    RULES_LAUNCH("only_noise", write_partly_compressible, buffers.sm_count * 16, 256, 0, (uint4 *)buffers.compressible, vectors,
                 0xffffffffu),
    RULES_LAUNCH("no_noise", write_partly_compressible, buffers.sm_count * 16, 256, 0, (uint4 *)buffers.compressible, vectors,
                 1u),
};

}  // namespace

const rules_launches memory_launches = {launches, sizeof launches / sizeof *launches};
