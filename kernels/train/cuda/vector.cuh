/* Four neighbouring values at once, as floats, whatever the storage. */
#ifndef RL_TRAIN_CUDA_VECTOR_H
#define RL_TRAIN_CUDA_VECTOR_H

#include <cuda_fp16.h>

#include "train/cuda/tensor_float.cuh"
#include "warp.cuh"

static __device__ __forceinline__ float4 load4(const float *from) { return *(const float4 *)from; }

static __device__ __forceinline__ float4 load4(const tensor_float *from) { return *(const float4 *)from; }

static __device__ __forceinline__ float4 load4(const __half *from) {
  uint2 raw = *(const uint2 *)from;
  float2 low = __half22float2(*(__half2 *)&raw.x), high = __half22float2(*(__half2 *)&raw.y);
  return make_float4(low.x, low.y, high.x, high.y);
}

static __device__ __forceinline__ void store4(float *to, float4 v) { *(float4 *)to = v; }

static __device__ __forceinline__ void store4(tensor_float *to, float4 v) {
  *(float4 *)to = make_float4(tensor_float(v.x), tensor_float(v.y), tensor_float(v.z), tensor_float(v.w));
}

static __device__ __forceinline__ void store4(__half *to, float4 v) {
  __half2 low = __floats2half2_rn(v.x, v.y), high = __floats2half2_rn(v.z, v.w);
  *(uint2 *)to = make_uint2(*(unsigned *)&low, *(unsigned *)&high);
}

static __device__ __forceinline__ float4 added(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
static __device__ __forceinline__ float4 scaled(float4 v, float by) {
  return make_float4(v.x * by, v.y * by, v.z * by, v.w * by);
}

#endif
