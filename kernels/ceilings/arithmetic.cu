/* Kernels that measure the rates of multiply-add outside the tensor cores. Each thread iterates SEQUENCES independent sequences x
 * ← x² + c. For c in [−1.9, −1.5) the sequences stay in (−2, 2) and are chaotic, so that the data is as random at the end as at
 * the beginning. The instruction for x² + c reads two registers. An instruction for x ← a x + b would read three registers and
 * lose up to 7 % of the FP64 rate on an H200. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "ceilings/cuda.h"
#include "cuda_check.h"
#include "hash.h"

enum {
  BLOCK_THREADS = 256,
  BLOCKS_PER_SM = 8,
  SEQUENCES = 8, /* of a thread; several hide the latency of an instruction */
  UNROLL = 32,   /* iterations of every sequence in a round */
  ROUNDS = 256
};

/* Operations on T, the operand of one multiply-add instruction. It has ELEMENTS numbers. A thread runs ROUNDS / ROUND_DIVISOR
 * rounds. convert returns the operand with the elements x, y, or x alone; next returns x² + c. */
template <class T> struct operand;
template <> struct operand<double> {
  enum { ELEMENTS = 1, ROUND_DIVISOR = 4 };
  __device__ static double convert(float x, float) { return x; }
  __device__ static double next(double x, double c) { return fma(x, x, c); }
};
template <> struct operand<float> {
  enum { ELEMENTS = 1, ROUND_DIVISOR = 1 };
  __device__ static float convert(float x, float) { return x; }
  __device__ static float next(float x, float c) { return fmaf(x, x, c); }
};
template <> struct operand<__half2> {
  enum { ELEMENTS = 2, ROUND_DIVISOR = 1 };
  __device__ static __half2 convert(float x, float y) { return __floats2half2_rn(x, y); }
  __device__ static __half2 next(__half2 x, __half2 c) { return __hfma2(x, x, c); }
};
template <> struct operand<__nv_bfloat162> {
  enum { ELEMENTS = 2, ROUND_DIVISOR = 1 };
  __device__ static __nv_bfloat162 convert(float x, float y) { return __floats2bfloat162_rn(x, y); }
  __device__ static __nv_bfloat162 next(__nv_bfloat162 x, __nv_bfloat162 c) { return __hfma2(x, x, c); }
};

/* Returns a number in [0, 1). */
__device__ static inline float random_unit(uint64_t key) { return (float)(rl_hash64(key) >> 40) * 0x1p-24f; }

template <class T> static __global__ void __launch_bounds__(BLOCK_THREADS) multiply_add(uint64_t seed, T *results) {
  const uint64_t key = rl_hash64(seed + blockIdx.x) + threadIdx.x * 64;
  const T c = operand<T>::convert(-1.9f + 0.4f * random_unit(key), -1.9f + 0.4f * random_unit(key + 1));
  T x[SEQUENCES];
#pragma unroll
  for (int i = 0; i < SEQUENCES; i++) x[i] = operand<T>::convert(random_unit(key + 2 + 2 * i), random_unit(key + 3 + 2 * i));
#pragma unroll 1
  for (int round = 0; round < ROUNDS / operand<T>::ROUND_DIVISOR; round++)
#pragma unroll
    for (int step = 0; step < UNROLL; step++)
#pragma unroll
      for (int i = 0; i < SEQUENCES; i++) x[i] = operand<T>::next(x[i], c);
#pragma unroll
  for (int i = 1; i < SEQUENCES; i++) x[0] = operand<T>::next(x[i], x[0]);
  results[blockIdx.x * BLOCK_THREADS + threadIdx.x] = x[0];
}

template <class T> static int launch(void *arg, rl_stream stream, rl_error *err) {
  static_assert(BLOCK_THREADS * BLOCKS_PER_SM * sizeof(T) <= RL_CEILINGS_RESULT_BYTES_PER_SM,
                "the results of all threads of an SM must fit into the SM's part of the buffer");
  const rl_cuda_ceilings *self = (const rl_cuda_ceilings *)arg;
  const uint64_t seed = (uint64_t)self->instance.params.seed;
  multiply_add<T><<<self->sm_count * BLOCKS_PER_SM, BLOCK_THREADS, 0, (cudaStream_t)stream>>>(seed, (T *)self->results);
  return rl_cuda_check_launch("launching", err);
}

template <class T> static double operations(const rl_cuda_ceilings *self) {
  const double threads = (double)self->sm_count * BLOCKS_PER_SM * BLOCK_THREADS, rounds = ROUNDS / operand<T>::ROUND_DIVISOR;
  return threads * (rounds * UNROLL * SEQUENCES + SEQUENCES - 1) * operand<T>::ELEMENTS * 2;
}

void rl_ceilings_add_arithmetic(rl_cuda_ceilings *self) {
  rl_ceilings_add(&self->instance, RL_CEILING_fp64, operations<double>(self), launch<double>, self);
  rl_ceilings_add(&self->instance, RL_CEILING_fp32, operations<float>(self), launch<float>, self);
  rl_ceilings_add(&self->instance, RL_CEILING_fp16, operations<__half2>(self), launch<__half2>, self);
  rl_ceilings_add(&self->instance, RL_CEILING_bf16, operations<__nv_bfloat162>(self), launch<__nv_bfloat162>, self);
}
