/* How the work lies on the device: grids, blocks, what limits their residence, and how evenly they are busy. */
#include "kernels.h"

__device__ float work(int rounds) {
  float value = threadIdx.x;
  for (int round = 0; round < rounds; round++)
#pragma unroll
    for (int i = 0; i < 16; i++) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(value));
  return value;
}

__global__ void works(uint32_t *sink, int rounds) {
  if (work(rounds) == 12345) *sink = 1;
}

/* More registers than two blocks of 256 threads find. */
__global__ void __maxnreg__(168) holds_registers(uint32_t *sink, const uint32_t *from, int rounds) {
  float value[128];
#pragma unroll
  for (int i = 0; i < 128; i++) value[i] = from[i + threadIdx.x];
  for (int round = 0; round < rounds; round++)
#pragma unroll
    for (int i = 0; i < 128; i++) asm volatile("fma.rn.f32 %0, %0, %1, %0;" : "+f"(value[i]) : "f"(value[(i + 1) % 128]));
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 128; i++) sum += value[i];
  if (sum == 12345) *sink = 1;
}

__global__ void holds_shared(uint32_t *sink, int rounds) {
  extern __shared__ float kept[];
  kept[threadIdx.x] = work(rounds);
  if (kept[threadIdx.x] == 12345) *sink = 1;
}

__global__ void holds_barriers(uint32_t *sink, int rounds) {
  asm volatile(
      "bar.sync 0; bar.sync 1; bar.sync 2; bar.sync 3; bar.sync 4; bar.sync 5; bar.sync 6; bar.sync 7; bar.sync 8; "
      "bar.sync 9; bar.sync 10; bar.sync 11; bar.sync 12; bar.sync 13; bar.sync 14; bar.sync 15;");
  if (work(rounds) == 12345) *sink = 1;
}

/* One warp of a block works on when the others have ended. */
__global__ void ends_early(uint32_t *sink, int rounds) {
  if (work(threadIdx.x < 32 ? rounds : 1) == 12345) *sink = 1;
}

/* The first block of each `every` has ten times the work. */
__global__ void spreads_unevenly(uint32_t *sink, int rounds, int every) {
  if (work(blockIdx.x % every == 0 ? 10 * rounds : rounds) == 12345) *sink = 1;
}

/* Everybody adds to one word: one slice of L2 has all the work. */
__global__ void crowds_a_slice(uint32_t *to, int rounds) {
  for (int round = 0; round < rounds; round++) atomicAdd(&to[threadIdx.x % 32 * 1], 1);
}

/* Reads the first `chunk` of every `apart` accesses. Addresses are hashed over the channels of DRAM, but not so well that
 * distances of a power of two do not show, while there are few chunks. */
__global__ void crowds_channels(const uint4 *from, uint32_t *sink, uint32_t chunk, uint32_t apart, uint32_t count) {
  uint32_t sum = 0;
#pragma unroll 4
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const uint4 value = from[i / chunk * apart + i % chunk];
    sum += value.x ^ value.y ^ value.z ^ value.w;
  }
  if (sum == 12345) *sink = sum;
}

namespace {

const rl_launch launches[] = {
    RULES_LAUNCH("few_blocks", works, held.processors / 4, 256, 0, held.to, 2000),
    RULES_LAUNCH("one_each", works, held.processors, 256, 0, held.to, 2000),
    RULES_LAUNCH("one_and_a_half_waves", works, held.processors * 3, 1024, 0, held.to, 500),
    RULES_LAUNCH("whole_waves", works, held.processors * 4, 1024, 0, held.to, 500),
    RULES_LAUNCH("odd_block", works, held.processors * 16, 48, 0, held.to, 500),
    RULES_LAUNCH("tiny", works, held.processors, 128, 0, held.to, 1),
    RULES_LAUNCH("registers", holds_registers, held.processors * 4, 256, 0, held.to, held.from, 200),
    RULES_LAUNCH("shared", holds_shared, held.processors * 8, 128, 100000, held.to, 500),
    RULES_LAUNCH("small_blocks", works, held.processors * 64, 32, 0, held.to, 500),
    RULES_LAUNCH("barriers", holds_barriers, held.processors * 32, 64, 0, held.to, 500),
    RULES_LAUNCH("large_blocks", works, held.processors * 4, 768, 0, held.to, 500),
    RULES_LAUNCH("early_ends", ends_early, held.processors * 2, 1024, 0, held.to, 4000),
    RULES_LAUNCH("uneven_blocks", spreads_unevenly, held.processors, 1024, 0, held.to, 500, 1000),
    RULES_LAUNCH("one_word", crowds_a_slice, held.processors * 2, 256, 0, held.to, 200),
    RULES_LAUNCH("few_channels", crowds_channels, held.processors * 8, 256, 0, (uint4 *)held.from, held.to, 512, 8192,
                 2048 * 512),
};

}

const rules_launches placing_launches = {launches, sizeof launches / sizeof *launches};
