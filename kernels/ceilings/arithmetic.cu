/* Rates of multiply-add outside the tensor cores. Each thread follows independent sequences x ← x² + c, which for these c stay
 * within (−2, 2) and never settle: the data is as random at the end as at the beginning. Two registers an instruction, where x ←
 * a x + b reads three and loses up to 7 % of FP64's rate on an H200. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "ceilings/cuda.h"
#include "cuda_check.h"
#include "hash.h"

enum { BLOCK = 256, BLOCKS_PER_SM = 8, CHAINS = 8, UNROLL = 32, ROUNDS = 256 };

template <class T> struct number; /* of one instruction: its lanes and two numbers for them */
template <> struct number<double> {
  enum { LANES = 1, ROUNDS_LESS = 4 };
  __device__ static double of(float x, float) { return x; }
  __device__ static double next(double x, double c) { return fma(x, x, c); }
};
template <> struct number<float> {
  enum { LANES = 1, ROUNDS_LESS = 1 };
  __device__ static float of(float x, float) { return x; }
  __device__ static float next(float x, float c) { return fmaf(x, x, c); }
};
template <> struct number<__half2> {
  enum { LANES = 2, ROUNDS_LESS = 1 };
  __device__ static __half2 of(float x, float y) { return __floats2half2_rn(x, y); }
  __device__ static __half2 next(__half2 x, __half2 c) { return __hfma2(x, x, c); }
};
template <> struct number<__nv_bfloat162> {
  enum { LANES = 2, ROUNDS_LESS = 1 };
  __device__ static __nv_bfloat162 of(float x, float y) { return __floats2bfloat162_rn(x, y); }
  __device__ static __nv_bfloat162 next(__nv_bfloat162 x, __nv_bfloat162 c) { return __hfma2(x, x, c); }
};

__device__ static inline float unit(uint64_t key) { return (float)(rl_hash64(key) >> 40) * 0x1p-24f; } /* [0, 1) */

template <class T> static __global__ void __launch_bounds__(BLOCK) multiply_add(uint64_t seed, T *results) {
  const uint64_t key = rl_hash64(seed + blockIdx.x) + threadIdx.x * 64;
  const T c = number<T>::of(-1.9f + 0.4f * unit(key), -1.9f + 0.4f * unit(key + 1));
  T x[CHAINS];
#pragma unroll
  for (int i = 0; i < CHAINS; i++) x[i] = number<T>::of(unit(key + 2 + 2 * i), unit(key + 3 + 2 * i));
#pragma unroll 1
  for (int round = 0; round < ROUNDS / number<T>::ROUNDS_LESS; round++)
#pragma unroll
    for (int step = 0; step < UNROLL; step++)
#pragma unroll
      for (int i = 0; i < CHAINS; i++) x[i] = number<T>::next(x[i], c);
#pragma unroll
  for (int i = 1; i < CHAINS; i++) x[0] = number<T>::next(x[i], x[0]);
  results[blockIdx.x * BLOCK + threadIdx.x] = x[0];
}

template <class T> static int launch(void *arg, rl_stream stream, rl_error *err) {
  static_assert(BLOCK * BLOCKS_PER_SM * sizeof(T) <= RL_CEILINGS_RESULT_BYTES,
                "a multiprocessor's threads have room for results");
  const rl_ceilings_gpu *self = (const rl_ceilings_gpu *)arg;
  const uint64_t seed = (uint64_t)self->instance.params.seed;
  multiply_add<T><<<self->sms * BLOCKS_PER_SM, BLOCK, 0, (cudaStream_t)stream>>>(seed, (T *)self->results);
  return rl_launch_ok("launching", err);
}

template <class T> static double operations(const rl_ceilings_gpu *self) {
  const double threads = (double)self->sms * BLOCKS_PER_SM * BLOCK, rounds = ROUNDS / number<T>::ROUNDS_LESS;
  return threads * (rounds * UNROLL * CHAINS + CHAINS - 1) * number<T>::LANES * 2;
}

void rl_ceilings_list_arithmetic(rl_ceilings_gpu *self) {
  rl_ceilings_add(&self->instance, RL_CEILING_fp64, operations<double>(self), launch<double>, self);
  rl_ceilings_add(&self->instance, RL_CEILING_fp32, operations<float>(self), launch<float>, self);
  rl_ceilings_add(&self->instance, RL_CEILING_fp16, operations<__half2>(self), launch<__half2>, self);
  rl_ceilings_add(&self->instance, RL_CEILING_bf16, operations<__nv_bfloat162>(self), launch<__nv_bfloat162>, self);
}
