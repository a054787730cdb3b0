/* Functions that load and store four adjacent FP32, TF32 or FP16 values as a float4, with one memory instruction (16 bytes, or 8
 * bytes in FP16). Addresses must be aligned to the size of the four values. */
#ifndef RL_TRAIN_CUDA_VECTOR_H
#define RL_TRAIN_CUDA_VECTOR_H

#include <cuda_fp16.h>

#include "train/cuda/tensor_float.cuh"
#include "warp.cuh"

static __device__ __forceinline__ uint32_t half2_bits(__half2 pair) { return *(uint32_t *)&pair; }
static __device__ __forceinline__ __half2 half2_from_bits(uint32_t bits) { return *(__half2 *)&bits; }

static __device__ __forceinline__ float4 load4(const float *from) { return *(const float4 *)from; }

static __device__ __forceinline__ float4 load4(const tensor_float *from) { return *(const float4 *)from; }

static __device__ __forceinline__ float4 load4(const __half *from) {
  const uint2 raw = *(const uint2 *)from;
  const float2 low = __half22float2(*(const __half2 *)&raw.x), high = __half22float2(*(const __half2 *)&raw.y);
  return make_float4(low.x, low.y, high.x, high.y);
}

static __device__ __forceinline__ void store4(float *to, float4 v) { *(float4 *)to = v; }

static __device__ __forceinline__ void store4(tensor_float *to, float4 v) {
  *(float4 *)to = make_float4(tensor_float(v.x), tensor_float(v.y), tensor_float(v.z), tensor_float(v.w));
}

static __device__ __forceinline__ void store4(__half *to, float4 v) {
  const __half2 low = __floats2half2_rn(v.x, v.y), high = __floats2half2_rn(v.z, v.w);
  *(uint2 *)to = make_uint2(*(const uint32_t *)&low, *(const uint32_t *)&high);
}

static __device__ __forceinline__ float4 add4(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

static __device__ __forceinline__ float4 scale4(float4 v, float factor) {
  return make_float4(v.x * factor, v.y * factor, v.z * factor, v.w * factor);
}

/* Collects whether values are finite: 0 · v is NaN if v is infinite or NaN. */
struct half2_check {
  __half2 zero_or_nan = __float2half2_rn(0.0f);
  __device__ __forceinline__ void add(__half2 v) { zero_or_nan = __hfma2(v, __float2half2_rn(0.0f), zero_or_nan); }
  __device__ __forceinline__ bool all_finite() const {
    return !__hisnan(__low2half(zero_or_nan)) && !__hisnan(__high2half(zero_or_nan));
  }
};

/* Exchanges pairs with the lane whose index differs in the bit `lane_bit`: the lane without this bit returns the pairs `a` of
 * both lanes, in the order of the lanes, the other lane the pairs `b`. */
static __device__ __forceinline__ uint2 exchange_pairs(__half2 a, __half2 b, int lane_bit) {
  const bool keeps_second = threadIdx.x & lane_bit;
  const uint32_t kept = half2_bits(keeps_second ? b : a),
                 received = __shfl_xor_sync(0xffffffffu, half2_bits(keeps_second ? a : b), lane_bit);
  return keeps_second ? make_uint2(received, kept) : make_uint2(kept, received);
}

/* Exchanges 4 × 4 values among four lanes: lane l of the four receives value l of each of them, in the order of the lanes. */
static __device__ __forceinline__ void transpose_among_four(uint32_t (&values)[4]) {
#pragma unroll
  for (int step = 1; step <= 2; step *= 2) {
    const bool keeps_second = threadIdx.x & step;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (i & step) continue;
      const uint32_t received = __shfl_xor_sync(0xffffffffu, keeps_second ? values[i] : values[i | step], step);
      if (keeps_second) values[i] = received;
      else values[i | step] = received;
    }
  }
}

#endif
