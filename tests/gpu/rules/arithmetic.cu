/* Launches of kernels that are limited by arithmetic: one kind of instruction on one pipeline each, lanes of a warp that diverge,
 * and predicated instructions. A kernel whose result is not used stores it only if it is 12345, so that the compiler cannot
 * remove the work. */
#include "kernels.h"

namespace {

enum { CHAINS = 4, UNROLL = 16 }; /* independent values per thread; instructions per value and round */

}

/* Defines the kernel NAME. Each thread executes INSTRUCTION rounds * UNROLL times on each of CHAINS values of TYPE. CONSTRAINT is
 * the letter for TYPE in asm. An instruction needs the result of the previous instruction on the same value; the CHAINS values
 * are independent of each other. */
#define CHAIN(NAME, TYPE, CONSTRAINT, INSTRUCTION)                                                                 \
  __global__ void NAME(uint32_t *sink, int rounds) {                                                               \
    TYPE value[CHAINS];                                                                                            \
    for (int k = 0; k < CHAINS; k++) value[k] = (TYPE)(threadIdx.x + k);                                           \
    for (int round = 0; round < rounds; round++)                                                                   \
      _Pragma("unroll") for (int i = 0; i < UNROLL; i++)                                                           \
          _Pragma("unroll") for (int k = 0; k < CHAINS; k++) asm volatile(INSTRUCTION : "+" CONSTRAINT(value[k])); \
    for (int k = 0; k < CHAINS; k++)                                                                               \
      if (value[k] == (TYPE)12345) sink[k] = 1;                                                                    \
  }

CHAIN(fma_chains, float, "f", "fma.rn.f32 %0, %0, %0, %0;")
CHAIN(add_mul_chains, float, "f", "{ add.rn.f32 %0, %0, %0; mul.rn.f32 %0, %0, %0; }")
CHAIN(dfma_chains, double, "d", "fma.rn.f64 %0, %0, %0, %0;")
CHAIN(dadd_dmul_chains, double, "d", "{ add.rn.f64 %0, %0, %0; mul.rn.f64 %0, %0, %0; }")
CHAIN(hfma_chains, uint32_t, "r", "fma.rn.f16x2 %0, %0, %0, %0;")
CHAIN(hadd_hmul_chains, uint32_t, "r", "{ add.rn.f16x2 %0, %0, %0; mul.rn.f16x2 %0, %0, %0; }")
CHAIN(logic_chains, uint32_t, "r", "{ lop3.b32 %0, %0, 0x5a5a5a5a, %0, 0x96; }")
CHAIN(ex2_chains, float, "f", "ex2.approx.ftz.f32 %0, %0;")

/* Multiplies matrices on the tensor cores by mma.sync, d += a b, then executes `pause` multiply-adds of single values, in each
 * round. The matrices' values are arbitrary. */
__global__ void mma_with_pauses(uint32_t *sink, int rounds, int pause) {
  float d[4] = {};
  uint32_t a = threadIdx.x;
  for (int round = 0; round < rounds; round++) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a));
    for (int i = 0; i < pause; i++) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(d[0]));
  }
  if (d[0] + d[1] + d[2] + d[3] == 12345) *sink = 1;
}

/* Multiplies matrices by wgmma, d += a b, on devices of sm_90a; both operands are zeros in shared memory. Each round starts
 * IN_FLIGHT instructions as one commit group and waits for them. With FIRST_WARP_LATE, the first warp of the warpgroup executes
 * 500 multiply-adds before each group, and the three other warps wait for it. */
template <int IN_FLIGHT, bool FIRST_WARP_LATE> __global__ void __launch_bounds__(128) wgmma_groups(uint32_t *sink, int rounds) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char tile[];
  for (int i = threadIdx.x; i < 32768 / 4; i += blockDim.x) ((uint32_t *)tile)[i] = 0;
  __syncthreads();
  uint64_t descriptor = ((uint64_t)__cvta_generic_to_shared(tile) & 0x3ffff) >> 4; /* address */
  descriptor |= uint64_t{1} << 16 | uint64_t{64} << 32 |
                uint64_t{1} << 62; /* leading and stride offset in units of 16 bytes, swizzle of 128 bytes */
  float d[32] = {}, value = threadIdx.x;
  for (int round = 0; round < rounds; round++) {
    for (int i = 0; FIRST_WARP_LATE && threadIdx.x < 32 && i < 500; i++) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(value));
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int i = 0; i < IN_FLIGHT; i++)
      asm volatile(
          "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
          "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
          "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
          "%32, %32, 1, 1, 1, 0, 0;"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
            "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
            "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]),
            "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
          : "l"(descriptor));
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  float sum = value;
  for (float x : d) sum += x;
  if (sum == 12345) *sink = 1;
#endif
}

/* Executes multiply-adds with 64-bit results. Each takes two register writes, for which the dispatch of instructions stalls. */
__global__ void wide_products(uint32_t *sink, int rounds) {
  uint64_t sums[16];
  for (int i = 0; i < 16; i++) sums[i] = threadIdx.x + i;
  for (int round = 0; round < rounds; round++)
#pragma unroll
    for (int i = 0; i < 16; i++)
      asm volatile("mad.wide.u32 %0, %1, %2, %0;"
                   : "+l"(sums[i])
                   : "r"((uint32_t)sums[(i + 4) % 16]), "r"((uint32_t)sums[(i + 8) % 16]));
  uint64_t sum = 0;
  for (uint64_t x : sums) sum += x;
  if (sum == 12345) *sink = 1;
}

/* Sends odd and even threads into different branches. The number of iterations is not known at compile time, so that the compiler
 * cannot replace the branches by predicated instructions. */
__global__ void divergent_branches(uint32_t *sink, int rounds) {
  float value = threadIdx.x;
  for (int round = 0; round < rounds; round++) {
    if (threadIdx.x & 1) {
      for (int i = 0; i < 16 + (round & 3); i++) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(value));
    } else {
      for (int i = 0; i < 16 + (round & 3); i++) asm volatile("add.rn.f32 %0, %0, %0;" : "+f"(value));
    }
  }
  if (value == 12345) *sink = 1;
}

/* Executes most instructions under a predicate that holds only for the odd threads. */
__global__ void half_predicated_off(uint32_t *sink, int rounds) {
  float value = threadIdx.x;
  for (int round = 0; round < rounds; round++)
#pragma unroll
    for (int i = 0; i < UNROLL; i++)
      asm volatile(
          "{ .reg .pred p; .reg .u32 odd; and.b32 odd, %1, 1; setp.ne.u32 p, odd, 0; @p fma.rn.f32 %0, %0, %0, %0; "
          "@p add.rn.f32 %0, %0, %0; @p mul.rn.f32 %0, %0, %0; }"
          : "+f"(value)
          : "r"(threadIdx.x));
  if (value == 12345) *sink = 1;
}

namespace {

const rl_launch launches[] = {
    RULES_LAUNCH("fma", fma_chains, buffers.sm_count * 8, 256, 0, buffers.to, 400),
    RULES_LAUNCH("add_mul", add_mul_chains, buffers.sm_count * 8, 256, 0, buffers.to, 200),
    RULES_LAUNCH("dfma", dfma_chains, buffers.sm_count * 8, 256, 0, buffers.to, 200),
    RULES_LAUNCH("dadd_dmul", dadd_dmul_chains, buffers.sm_count * 8, 256, 0, buffers.to, 100),
    RULES_LAUNCH("hfma", hfma_chains, buffers.sm_count * 8, 256, 0, buffers.to, 400),
    RULES_LAUNCH("hadd_hmul", hadd_hmul_chains, buffers.sm_count * 8, 256, 0, buffers.to, 200),
    RULES_LAUNCH("logic", logic_chains, buffers.sm_count * 8, 256, 0, buffers.to, 200),
    RULES_LAUNCH("ex2", ex2_chains, buffers.sm_count * 8, 256, 0, buffers.to, 100),
    RULES_LAUNCH("mma_starved", mma_with_pauses, buffers.sm_count, 256, 0, buffers.to, 2000, 8),
    RULES_LAUNCH("wgmma", (wgmma_groups<8, false>), buffers.sm_count * 4, 128, 32768, buffers.to, 400),
    RULES_LAUNCH("wgmma_one", (wgmma_groups<1, false>), buffers.sm_count, 128, 32768, buffers.to, 2000),
    RULES_LAUNCH("wgmma_late", (wgmma_groups<1, true>), buffers.sm_count, 128, 32768, buffers.to, 400),
    RULES_LAUNCH("wide_products", wide_products, buffers.sm_count * 8, 256, 0, buffers.to, 200),
    RULES_LAUNCH("diverge", divergent_branches, buffers.sm_count * 8, 256, 0, buffers.to, 100),
    RULES_LAUNCH("predicate", half_predicated_off, buffers.sm_count * 8, 256, 0, buffers.to, 100),
};

}

const rules_launches arithmetic_launches = {launches, sizeof launches / sizeof *launches};
