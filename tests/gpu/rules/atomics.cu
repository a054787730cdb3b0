/* Atomic operations on one address and on many, in L2 and in shared memory. */
#include "kernels.h"

/* Each thread adds a different value, so that the compiler cannot combine the additions of a warp. SPREAD: each thread adds to
 * a separate word, and a warp to one 128-byte line; otherwise all threads of the grid add to one word. */
template <bool SPREAD> __global__ void add_to_global(uint32_t *to, int rounds) {
  uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t *word = to + (SPREAD ? thread : 0);
  for (int round = 0; round < rounds; round++)
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(word), "r"(thread + round) : "memory");
}

/* Exchanges one word: atom instead of red, so that each operation returns the previous value. */
__global__ void exchange_one_word(uint32_t *to, uint32_t *sink, int rounds) {
  uint32_t value = threadIdx.x, sum = 0;
  for (int round = 0; round < rounds; round++) {
    asm volatile("atom.relaxed.gpu.global.exch.b32 %0, [%1], %2;" : "=r"(value) : "l"(to), "r"(value + 1) : "memory");
    sum += value;
  }
  if (sum == 0xffffffff) *sink = sum;
}

/* SPREAD: each lane adds to a separate bank; otherwise all threads of a block share one word. */
template <bool SPREAD> __global__ void add_to_shared(uint32_t *sink, int rounds) {
  __shared__ uint32_t words[1024];
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) words[i] = i;
  __syncthreads();
  uint32_t address = (uint32_t)__cvta_generic_to_shared(&words[SPREAD ? threadIdx.x : 0]);
  for (int round = 0; round < rounds; round++)
#pragma unroll
    for (int i = 0; i < 8; i++)
      asm volatile("red.relaxed.cta.shared.add.u32 [%0], %1;" ::"r"(address), "r"(threadIdx.x + i) : "memory");
  __syncthreads();
  if (words[threadIdx.x] == 0xffffffff) *sink = 1;
}

/* Uses the previous value, which atom returns. In contrast to red, the compiler may combine the additions of a warp even though
 * the values differ. */
__global__ void add_to_shared_and_return(uint32_t *sink, int rounds) {
  __shared__ uint32_t next;
  if (threadIdx.x == 0) next = 0;
  __syncthreads();
  uint32_t address = (uint32_t)__cvta_generic_to_shared(&next), sum = 0;
  for (int round = 0; round < rounds; round++)
#pragma unroll
    for (int i = 0; i < 8; i++) {
      uint32_t before;
      asm volatile("atom.relaxed.cta.shared.add.u32 %0, [%1], %2;"
                   : "=r"(before)
                   : "r"(address), "r"(threadIdx.x + i)
                   : "memory");
      sum += before;
    }
  if (sum == 0xffffffff) *sink = sum;
}

namespace {

const rl_launch launches[] = {
    RULES_LAUNCH("red_one_word", add_to_global<false>, buffers.sm_count * 4, 256, 0, buffers.to, 50),
    RULES_LAUNCH("red_spread", add_to_global<true>, buffers.sm_count * 4, 256, 0, buffers.to, 50),
    RULES_LAUNCH("atom_one_word", exchange_one_word, buffers.sm_count * 2, 128, 0, buffers.to, buffers.to + 64, 20),
    RULES_LAUNCH("shared_atomics_one_word", add_to_shared<false>, buffers.sm_count * 4, 256, 0, buffers.to, 50),
    RULES_LAUNCH("shared_atomics_returned", add_to_shared_and_return, buffers.sm_count * 4, 256, 0, buffers.to, 50),
    RULES_LAUNCH("shared_atomics_spread", add_to_shared<true>, buffers.sm_count * 4, 256, 0, buffers.to, 50),
};

}

const rules_launches atomic_launches = {launches, sizeof launches / sizeof *launches};
