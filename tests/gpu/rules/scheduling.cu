/* Launches of kernels with a scheduling problem: sizes of grids and blocks, limits of occupancy, and work that is distributed
 * unevenly over SMs, slices of L2 or channels of DRAM. */
#include "kernels.h"

/* Executes rounds * 16 dependent multiply-adds. */
__device__ float work(int rounds) {
  float value = threadIdx.x;
  for (int round = 0; round < rounds; round++)
#pragma unroll
    for (int i = 0; i < 16; i++) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(value));
  return value;
}

__global__ void run_work(uint32_t *sink, int rounds) {
  if (work(rounds) == 12345) *sink = 1;
}

/* Loads lines of 128 bytes from L2, each of which depends on the previous one; a warp loads one line at a time. Only more warps
 * can hide the latency. `from` holds zeros. */
__device__ uint32_t wait_for_loads(const uint32_t *from, int steps) {
  uint32_t line = blockIdx.x * blockDim.x / 32 + threadIdx.x / 32;
  for (int step = 0; step < steps; step++) line = line * 5 + 32771 + __ldcg(&from[line % 131072 * 32 + threadIdx.x % 32]);
  return line;
}

__global__ void wait_in_blocks(const uint32_t *from, uint32_t *sink, int steps) {
  if (wait_for_loads(from, steps) == 0xffffffff) *sink = 1;
}

/* Uses 168 registers per thread, so that two blocks of 256 threads need more registers than an SM has. WAITS: each round waits
 * for loads, which eight warps do not hide; otherwise the chains of FMAs keep the pipeline busy. */
template <bool WAITS> __global__ void __maxnreg__(168) limited_by_registers(const uint32_t *from, uint32_t *sink, int rounds) {
  float value[128];
#pragma unroll
  for (int i = 0; i < 128; i++) value[i] = from[i + threadIdx.x];
  for (int round = 0; round < rounds; round++) {
    if (WAITS) value[0] += wait_for_loads(from, 8);
#pragma unroll
    for (int i = 0; i < 128; i++) asm volatile("fma.rn.f32 %0, %0, %1, %0;" : "+f"(value[i]) : "f"(value[(i + 1) % 128]));
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 128; i++) sum += value[i];
  if (sum == 12345) *sink = 1;
}

__global__ void limited_by_shared(const uint32_t *from, uint32_t *sink, int steps) {
  extern __shared__ uint32_t scratch[];
  scratch[threadIdx.x] = wait_for_loads(from, steps);
  if (scratch[threadIdx.x] == 0xffffffff) *sink = 1;
}

__global__ void limited_by_barriers(const uint32_t *from, uint32_t *sink, int steps) {
  asm volatile(
      "bar.sync 0; bar.sync 1; bar.sync 2; bar.sync 3; bar.sync 4; bar.sync 5; bar.sync 6; bar.sync 7; bar.sync 8; "
      "bar.sync 9; bar.sync 10; bar.sync 11; bar.sync 12; bar.sync 13; bar.sync 14; bar.sync 15;");
  if (wait_for_loads(from, steps) == 0xffffffff) *sink = 1;
}

/* Gives the first warp of each block `rounds` rounds of work and the other warps one round, so that the first warp still runs
 * after the others have ended. */
__global__ void one_warp_ends_late(uint32_t *sink, int rounds) {
  if (work(threadIdx.x < 32 ? rounds : 1) == 12345) *sink = 1;
}

/* Gives every block whose index is a multiple of `every` `factor` times the work of the other blocks. */
__global__ void uneven_blocks(uint32_t *sink, int rounds, int every, int factor) {
  if (work(blockIdx.x % every == 0 ? factor * rounds : rounds) == 12345) *sink = 1;
}

/* Makes all blocks add to the same 32 words, which lie in one slice of L2. */
__global__ void one_l2_slice(uint32_t *to, int rounds) {
  for (int round = 0; round < rounds; round++) atomicAdd(&to[threadIdx.x % 32], 1);
}

/* Reads `count` vectors of 16 bytes: the first `chunk` of every `stride` vectors. The hardware distributes addresses over the
 * channels of DRAM by a hash; a few chunks whose distance is a power of two nevertheless lie in few channels. */
__global__ void few_dram_channels(const uint4 *from, uint32_t *sink, uint32_t chunk, uint32_t stride, uint32_t count) {
  uint32_t sum = 0;
#pragma unroll 4
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const uint4 value = from[i / chunk * stride + i % chunk];
    sum += value.x ^ value.y ^ value.z ^ value.w;
  }
  if (sum == 12345) *sink = sum;
}

namespace {

const rl_launch launches[] = {
    RULES_LAUNCH("few_blocks", run_work, buffers.sm_count / 4, 256, 0, buffers.to, 2000),
    RULES_LAUNCH("one_each", run_work, buffers.sm_count, 256, 0, buffers.to, 2000),
    RULES_LAUNCH("one_and_a_half_waves", run_work, buffers.sm_count * 3, 1024, 0, buffers.to, 500),
    RULES_LAUNCH("whole_waves", run_work, buffers.sm_count * 4, 1024, 0, buffers.to, 500),
    RULES_LAUNCH("odd_block", run_work, buffers.sm_count * 16, 48, 0, buffers.to, 500),
    RULES_LAUNCH("tiny", run_work, buffers.sm_count, 128, 0, buffers.to, 1),
    RULES_LAUNCH("registers", limited_by_registers<true>, buffers.sm_count * 4, 256, 0, buffers.from, buffers.to, 20),
    RULES_LAUNCH("few_busy_warps", limited_by_registers<false>, buffers.sm_count * 4, 256, 0, buffers.from, buffers.to, 200),
    RULES_LAUNCH("shared", limited_by_shared, buffers.sm_count * 8, 128, 100000, buffers.from, buffers.to, 100),
    RULES_LAUNCH("small_blocks", wait_in_blocks, buffers.sm_count * 64, 32, 0, buffers.from, buffers.to, 100),
    RULES_LAUNCH("whole_blocks", wait_in_blocks, buffers.sm_count * 16, 256, 0, buffers.from, buffers.to, 50),
    RULES_LAUNCH("barriers", limited_by_barriers, buffers.sm_count * 32, 64, 0, buffers.from, buffers.to, 100),
    RULES_LAUNCH("large_blocks", wait_in_blocks, buffers.sm_count * 4, 768, 0, buffers.from, buffers.to, 100),
    RULES_LAUNCH("early_ends", one_warp_ends_late, buffers.sm_count * 2, 1024, 0, buffers.to, 4000),
    RULES_LAUNCH("uneven_blocks", uneven_blocks, buffers.sm_count, 1024, 0, buffers.to, 500, 1000, 10),
    RULES_LAUNCH("one_long_block", uneven_blocks, 64, 256, 0, buffers.to, 200, 64, 64),
    RULES_LAUNCH("one_word", one_l2_slice, buffers.sm_count * 2, 256, 0, buffers.to, 200),
    RULES_LAUNCH("few_channels", few_dram_channels, buffers.sm_count * 8, 256, 0, (uint4 *)buffers.from, buffers.to, 512, 8192,
                 2048 * 512),
};

}

const rules_launches scheduling_launches = {launches, sizeof launches / sizeof *launches};
