/* Kernels that measure the arithmetic rates of the tensor cores. On sm_90a the kernel uses wgmma, the only instruction that
 * reaches Hopper's peak: each SM runs two warpgroups, and each warpgroup accumulates all its products in one tile of 64 × 256
 * sums. On other devices the kernel uses mma.sync with the same number of operations per warp. FP64 always uses mma.sync, because
 * wgmma does not support FP64. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "ceilings/cuda.h"
#include "cuda_check.h"
#include "hash.h"
#include "hopper/wgmma_tile.cuh"

enum {
  WARPGROUPS = 2,
  BLOCK_THREADS = WARPGROUPS * WGMMA_THREADS,
  STEPS = 4,                            /* wgmma instructions of a round, with different tiles of A and B in shared memory */
  ROUNDS = 400,                         /* a round multiplies all STEPS tiles */
  A_BYTES = WGMMA_M * WGMMA_STEP_BYTES, /* a tile of A: the operand of one instruction */
  B_BYTES = WGMMA_N * WGMMA_STEP_BYTES,
  CHAINS = 8, /* independent accumulators of a warp for mma.sync, which hide its latency */
  FP64_BLOCK_THREADS = 256,
  FP64_BLOCKS_PER_SM = 2,
  FP64_ROUNDS = 200,
};

/* Returns a number in [-1, 1). */
__device__ static inline float random_symmetric(uint64_t key) { return (float)(rl_hash64(key) >> 40) * 0x1p-23f - 1; }
__device__ static inline void store(__half *to, float x) { *to = __float2half_rn(x); }
__device__ static inline void store(__nv_bfloat16 *to, float x) { *to = __float2bfloat16_rn(x); }
__device__ static inline void store(tf32 *to, float x) {
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  to->value = __uint_as_float(bits);
}

/* Fills `bytes` bytes of shared memory with random numbers. All threads of the block call it. */
template <class T> __device__ static inline void fill(T *to, int bytes, uint64_t key) {
  for (int i = threadIdx.x; i < bytes / (int)sizeof(T); i += BLOCK_THREADS) store(&to[i], random_symmetric(key + (uint64_t)i));
}

/* --- products by wgmma ------------------------------------------------------------------------------------------------- */

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
template <class T> __device__ static void multiply(float (&sums)[WGMMA_SUMS_PER_THREAD], uint64_t key) {
  __shared__ alignas(128) unsigned char a[WARPGROUPS][STEPS][A_BYTES], b[STEPS][B_BYTES];
  fill((T *)a, sizeof a, key);
  fill((T *)b, sizeof b, key + sizeof a);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); /* makes the stores visible to wgmma */
  __syncthreads();
  const uint64_t a_descriptor = wgmma_descriptor(a[threadIdx.x / WGMMA_THREADS]), b_descriptor = wgmma_descriptor(b);
  for (int round = 0; round < ROUNDS; round++) {
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < STEPS; step++)
      wgmma(T(), sums, a_descriptor + step * (A_BYTES >> 4), b_descriptor + step * (B_BYTES >> 4));
    wgmma_commit_group();
    wgmma_wait_group<1>();
  }
  wgmma_wait_group<0>();
}
#else

/* --- products by mma.sync: tiles of 16 × 8, steps of 32 bytes along k --------------------------------------------------- */

#define MMA(T, SHAPE)                                                                                              \
  __device__ static inline void mma(T, float *sums, const uint32_t *a, const uint32_t *b) {                        \
    asm volatile("mma.sync.aligned.m16n8" SHAPE " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])                                      \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                              \
  }
MMA(__half, "k16.row.col.f32.f16.f16.f32")
MMA(__nv_bfloat16, "k16.row.col.f32.bf16.bf16.f32")
MMA(tf32, "k8.row.col.f32.tf32.tf32.f32")
#undef MMA

template <class T> __device__ static void multiply(float (&sums)[WGMMA_SUMS_PER_THREAD], uint64_t key) {
  constexpr int TILES = 16 * WGMMA_N / (16 * 8); /* mma.sync instructions with as many operations as one warp's part of a wgmma */
  alignas(16) T a[16 / sizeof(T)], b[CHAINS][8 / sizeof(T)];
  for (int i = 0; i < (int)(sizeof a / sizeof *a); i++) store(&a[i], random_symmetric(key + threadIdx.x * 128 + i));
  for (int chain = 0; chain < CHAINS; chain++)
    for (int i = 0; i < (int)(sizeof b[0] / sizeof *b[0]); i++)
      store(&b[chain][i], random_symmetric(key + threadIdx.x * 128 + 16 + chain * 4 + i));
  for (int round = 0; round < ROUNDS * STEPS; round++)
#pragma unroll
    for (int tile = 0; tile < TILES; tile++)
      mma(T(), &sums[tile % CHAINS * 4], (const uint32_t *)a, (const uint32_t *)b[tile % CHAINS]);
}
#endif

template <class T> static __global__ void __launch_bounds__(BLOCK_THREADS) tensor(uint64_t seed, float *results) {
  float sums[WGMMA_SUMS_PER_THREAD] = {}, total = 0;
  multiply<T>(sums, rl_hash64(seed + blockIdx.x));
#pragma unroll
  for (int i = 0; i < WGMMA_SUMS_PER_THREAD; i++) total += sums[i];
  results[blockIdx.x * BLOCK_THREADS + threadIdx.x] = total;
}

/* --- FP64 -------------------------------------------------------------------------------------------------------------- */

enum { FP64_A_REGISTERS = 8, FP64_B_REGISTERS = 4 }; /* registers of a thread for A and for B */

/* Computes an m16n8k16 product: one instruction from compute capability 9.0 on, eight m8n8k4 instructions before. */
__device__ static inline void multiply_fp64(double *sums, const double *a, const double *b) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, "
      "{%12, %13, %14, %15}, {%0, %1, %2, %3};"
      : "+d"(sums[0]), "+d"(sums[1]), "+d"(sums[2]), "+d"(sums[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]),
        "d"(b[3]));
#else
#pragma unroll
  for (int i = 0; i < FP64_A_REGISTERS; i++)
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(sums[i % 2 * 2]), "+d"(sums[i % 2 * 2 + 1])
                 : "d"(a[i]), "d"(b[i / 2]));
#endif
}

static __global__ void __launch_bounds__(FP64_BLOCK_THREADS) tensor_fp64(uint64_t seed, double *results) {
  const uint64_t key = rl_hash64(seed + blockIdx.x) + threadIdx.x * 64;
  double sums[CHAINS][4] = {}, a[FP64_A_REGISTERS], b[FP64_B_REGISTERS], total = 0;
#pragma unroll
  for (int i = 0; i < FP64_A_REGISTERS; i++) a[i] = random_symmetric(key + i);
#pragma unroll
  for (int i = 0; i < FP64_B_REGISTERS; i++) b[i] = random_symmetric(key + FP64_A_REGISTERS + i);
  for (int round = 0; round < FP64_ROUNDS; round++)
#pragma unroll
    for (int chain = 0; chain < CHAINS; chain++) multiply_fp64(sums[chain], a, b);
#pragma unroll
  for (int chain = 0; chain < CHAINS; chain++)
#pragma unroll
    for (int i = 0; i < 4; i++) total += sums[chain][i];
  results[blockIdx.x * FP64_BLOCK_THREADS + threadIdx.x] = total;
}

/* --- launches ---------------------------------------------------------------------------------------------------------- */

template <class T> static int launch(void *arg, rl_stream stream, rl_error *err) {
  const rl_cuda_ceilings *self = (const rl_cuda_ceilings *)arg;
  tensor<T>
      <<<self->sm_count, BLOCK_THREADS, 0, (cudaStream_t)stream>>>((uint64_t)self->instance.params.seed, (float *)self->results);
  return rl_cuda_check_launch("launching", err);
}

static int launch_fp64(void *arg, rl_stream stream, rl_error *err) {
  const rl_cuda_ceilings *self = (const rl_cuda_ceilings *)arg;
  tensor_fp64<<<self->sm_count * FP64_BLOCKS_PER_SM, FP64_BLOCK_THREADS, 0, (cudaStream_t)stream>>>(
      (uint64_t)self->instance.params.seed, (double *)self->results);
  return rl_cuda_check_launch("launching", err);
}

template <class T> static double operations(const rl_cuda_ceilings *self) {
  const double operations_per_step = 2.0 * WGMMA_M * WGMMA_N * (WGMMA_STEP_BYTES / sizeof(T));
  return operations_per_step * STEPS * ROUNDS * WARPGROUPS * self->sm_count;
}

void rl_ceilings_add_tensor(rl_cuda_ceilings *self) {
  const double warps = (double)self->sm_count * FP64_BLOCKS_PER_SM * (FP64_BLOCK_THREADS / 32);
  const double operations_per_product = 2.0 * 16 * 8 * 16;
  static_assert(FP64_BLOCK_THREADS * FP64_BLOCKS_PER_SM * sizeof(double) <= RL_CEILINGS_RESULT_BYTES_PER_SM,
                "the FP64 results of all threads of an SM must fit into the SM's part of the buffer");
  static_assert(BLOCK_THREADS * sizeof(float) <= RL_CEILINGS_RESULT_BYTES_PER_SM,
                "the results of all threads of an SM must fit into the SM's part of the buffer");
  rl_ceilings_add(&self->instance, RL_CEILING_tensor_fp64, warps * FP64_ROUNDS * CHAINS * operations_per_product, launch_fp64,
                  self);
  rl_ceilings_add(&self->instance, RL_CEILING_tensor_tf32, operations<tf32>(self), launch<tf32>, self);
  rl_ceilings_add(&self->instance, RL_CEILING_tensor_fp16, operations<__half>(self), launch<__half>, self);
  rl_ceilings_add(&self->instance, RL_CEILING_tensor_bf16, operations<__nv_bfloat16>(self), launch<__nv_bfloat16>, self);
}
