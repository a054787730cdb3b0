/* Launches of kernels whose warps mostly stall for one reason each; the kernel's name says for which. A kernel whose result
 * is not used stores it under a condition that is never true, so that the compiler cannot remove the work. */
#include "kernels.h"

/* Loads from addresses that depend on the value loaded before, so that each load waits for the one before. */
__global__ void waits_for_memory(const uint32_t *next, uint32_t *sink, int steps) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int step = 0; step < steps; step++) i = (i * 5 + 1048583 + next[i]) % (uint32_t)(rules_buffers::bytes / 4);
  if (i == 0xffffffff) *sink = i;
}

/* Loads as many values as waits_for_memory, with eight loads in flight at a time: no address depends on a loaded value. */
__global__ void loads_ahead(const uint32_t *from, uint32_t *sink, int steps) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
  for (int step = 0; step < steps; step += 8) {
    uint32_t value[8];
#pragma unroll
    for (int k = 0; k < 8; k++, i = (i * 5 + 1048583) % (uint32_t)(rules_buffers::bytes / 4)) value[k] = from[i];
#pragma unroll
    for (int k = 0; k < 8; k++) sum += value[k];
  }
  if (sum == 0xffffffff) *sink = sum;
}

/* Loads from shared memory words that hold the address of the next load. */
__global__ void waits_for_shared(uint32_t *sink, int steps) {
  __shared__ uint32_t next[1024];
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) next[i] = (uint32_t)__cvta_generic_to_shared(&next[threadIdx.x]);
  __syncthreads();
  uint32_t address = next[threadIdx.x];
  for (int step = 0; step < steps; step++)
#pragma unroll
    for (int i = 0; i < 16; i++) asm volatile("ld.volatile.shared.u32 %0, [%0];" : "+r"(address));
  if (address == 0xffffffff) *sink = address;
}

/* Stores to shared memory without a pause, more than the queue of the memory input/output unit (MIO) holds. */
__global__ void waits_for_mio_queue(int rounds) {
  __shared__ uint32_t words[256];
  uint32_t address = (uint32_t)__cvta_generic_to_shared(&words[threadIdx.x]);
  for (int round = 0; round < rounds; round++)
#pragma unroll
    for (int i = 0; i < 32; i++) asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(address), "r"(i) : "memory");
}

/* Starts 32 loads that hit L1, then needs their values. */
__global__ void waits_for_lsu_loads(const uint32_t *from, uint32_t *sink, int rounds) {
  uint32_t value[32], sum = 0;
  for (int round = 0; round < rounds; round++) {
#pragma unroll
    for (int i = 0; i < 32; i++)
      asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(value[i]) : "l"(from + threadIdx.x + 64 * i + (round & 7) * 1024));
#pragma unroll
    for (int i = 0; i < 32; i++) sum += value[i];
  }
  if (sum == 12345) *sink = sum;
}

/* Reads a texture without a pause, more than the texture unit's queue holds. */
__global__ void waits_for_tex_queue(cudaTextureObject_t texture, uint32_t *sink, int rounds) {
  uint32_t sum = 0;
  for (int round = 0; round < rounds; round++)
#pragma unroll
    for (int i = 0; i < 32; i++) sum += tex1Dfetch<uint32_t>(texture, threadIdx.x + 32 * i + (round & 1));
  if (sum == 12345) *sink = sum;
}

/* Lets the first warp of the block compute while the other warps wait at the barrier. */
__global__ void waits_at_barrier(uint32_t *sink, int rounds) {
  float value = threadIdx.x;
  for (int round = 0; round < rounds; round++) {
    if (threadIdx.x < 32)
      for (int i = 0; i < 500; i++) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(value));
    __syncthreads();
  }
  if (value == 12345) *sink = 1;
}

/* Waits after each store until the whole system can see it. */
__global__ void waits_at_fence(uint32_t *to, int rounds) {
  for (int round = 0; round < rounds; round++) {
    to[blockIdx.x * blockDim.x + threadIdx.x] = round;
    __threadfence_system();
  }
}

/* Executes multiply-adds, each of which needs the result of the one before. */
__global__ void waits_for_arithmetic(uint32_t *sink, int rounds) {
  float value = threadIdx.x;
  for (int round = 0; round < rounds; round++)
#pragma unroll
    for (int i = 0; i < 64; i++) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(value));
  if (value == 12345) *sink = 1;
}

__device__ __noinline__ float add_one(float x) { return x + 1; }
__device__ __noinline__ float double_it(float x) { return x * 2; }
__device__ float (*const functions[])(float) = {add_one, double_it, add_one, double_it};

/* Calls a function by a pointer in every iteration, so that the warp waits for the jump. */
__global__ void waits_for_branch(uint32_t *sink, int rounds) {
  float value = threadIdx.x;
  float (*function)(float) = functions[blockIdx.x & 3];
#pragma unroll 1
  for (int round = 0; round < rounds; round++) value = function(value);
  if (value == 12345) *sink = 1;
}

#define REPEAT_4(X) X X X X
#define REPEAT_1024(X) REPEAT_4(REPEAT_4(REPEAT_4(REPEAT_4(REPEAT_4(X)))))

/* Executes 1024 multiply-adds, 16 KiB of code. Each FUNCTION_INDEX is a separate function with its own code. */
template <int FUNCTION_INDEX> __device__ __noinline__ float long_function(float x) {
  asm volatile(REPEAT_1024("fma.rn.f32 %0, %0, %0, %0;") : "+f"(x));
  return x + FUNCTION_INDEX;
}

/* Makes the warps execute different ones of 16 functions of 16 KiB: 256 KiB of code, more than the instruction caches hold. */
__global__ void waits_for_code(uint32_t *sink, int rounds) {
  float value = threadIdx.x;
#pragma unroll 1
  for (int round = 0; round < rounds; round++) {
    switch ((threadIdx.x / 32 * 5 + blockIdx.x + round) % 16) {
      case 0: value = long_function<0>(value); break;
      case 1: value = long_function<1>(value); break;
      case 2: value = long_function<2>(value); break;
      case 3: value = long_function<3>(value); break;
      case 4: value = long_function<4>(value); break;
      case 5: value = long_function<5>(value); break;
      case 6: value = long_function<6>(value); break;
      case 7: value = long_function<7>(value); break;
      case 8: value = long_function<8>(value); break;
      case 9: value = long_function<9>(value); break;
      case 10: value = long_function<10>(value); break;
      case 11: value = long_function<11>(value); break;
      case 12: value = long_function<12>(value); break;
      case 13: value = long_function<13>(value); break;
      case 14: value = long_function<14>(value); break;
      default: value = long_function<15>(value);
    }
  }
  if (value == 12345) *sink = 1;
}

__constant__ float constants[16384]; /* 64 KiB, more than the constant caches near the SM hold */

__global__ void waits_for_constants(uint32_t *sink, int rounds) {
  float sum = 0;
#pragma unroll 1
  for (int round = 0; round < rounds; round++)
#pragma unroll
    for (int i = 0; i < 1024; i++) sum += constants[16 * i];
  if (sum == 12345) *sink = 1;
}

/* Issues eight stores per thread to distant addresses, more than the queue for local and global memory (LG) holds. */
__global__ void waits_for_lg_queue(uint32_t *to) {
  size_t first_word = (blockIdx.x * (size_t)blockDim.x + threadIdx.x) * 8;
#pragma unroll
  for (int i = 0; i < 8; i++) to[(first_word + i * 8388608) % (rules_buffers::bytes / 4)] = i;
}

/* Stores one word per thread, each in its own sector of 32 bytes, then ends: the warp waits until its store has drained to
 * memory. */
__global__ void waits_for_drain(uint32_t *to) {
  to[(blockIdx.x * (size_t)blockDim.x + threadIdx.x) * 32 % (rules_buffers::bytes / 4)] = threadIdx.x;
}

__global__ void waits_asleep(int rounds) {
  for (int round = 0; round < rounds; round++) __nanosleep(1000);
}

namespace {

const rl_launch launches[] = {
    RULES_LAUNCH("chase", waits_for_memory, buffers.sm_count, 64, 0, buffers.from, buffers.to, 200),
    RULES_LAUNCH("loads_ahead", loads_ahead, buffers.sm_count, 64, 0, buffers.from, buffers.to, 200),
    RULES_LAUNCH("chase_shared", waits_for_shared, buffers.sm_count, 128, 0, buffers.to, 200),
    RULES_LAUNCH("store_shared", waits_for_mio_queue, buffers.sm_count * 8, 256, 0, 100),
    RULES_LAUNCH("load_l1", waits_for_lsu_loads, buffers.sm_count * 8, 256, 0, buffers.from, buffers.to, 50),
    RULES_LAUNCH("texture", waits_for_tex_queue, buffers.sm_count * 8, 256, 0, buffers.texture, buffers.to, 50),
    RULES_LAUNCH("barrier", waits_at_barrier, buffers.sm_count, 256, 0, buffers.to, 50),
    RULES_LAUNCH("fence", waits_at_fence, buffers.sm_count, 128, 0, buffers.to, 50),
    RULES_LAUNCH("chain", waits_for_arithmetic, buffers.sm_count, 128, 0, buffers.to, 200),
    RULES_LAUNCH("branch", waits_for_branch, buffers.sm_count, 128, 0, buffers.to, 2000),
    RULES_LAUNCH("code", waits_for_code, buffers.sm_count, 512, 0, buffers.to, 8),
    RULES_LAUNCH("constants", waits_for_constants, buffers.sm_count, 128, 0, buffers.to, 20),
    RULES_LAUNCH("far_stores", waits_for_lg_queue, buffers.sm_count * 64, 128, 0, buffers.to),
    RULES_LAUNCH("drain", waits_for_drain, buffers.sm_count * 128, 128, 0, buffers.to),
    RULES_LAUNCH("asleep", waits_asleep, buffers.sm_count, 128, 0, 50),
};

}

const rules_launches stall_launches = {launches, sizeof launches / sizeof *launches};
