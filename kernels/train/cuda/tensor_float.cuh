/* A float as TF32 products want it: rounded to 11 bits of significand when it is made of another float, and from then on
 * exact as a float. */
#ifndef RL_TRAIN_CUDA_TENSOR_FLOAT_H
#define RL_TRAIN_CUDA_TENSOR_FLOAT_H

#include <stdint.h>

struct tensor_float {
  float exact;
  tensor_float() = default;
  /* To the nearest (PTX ISA 9.0, "cvt"). */
  explicit __device__ __forceinline__ tensor_float(float v) {
    uint32_t rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(v));
    exact = __uint_as_float(rounded);
  }
  __host__ __device__ __forceinline__ operator float() const { return exact; }
};

#endif
