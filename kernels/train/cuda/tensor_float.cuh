/* TF32: a float whose significand is rounded to 11 bits. The conversion from float rounds; the conversion to float is exact. */
#ifndef RL_TRAIN_CUDA_TENSOR_FLOAT_H
#define RL_TRAIN_CUDA_TENSOR_FLOAT_H

#include <stdint.h>

enum : uint32_t { TENSOR_FLOAT_IGNORED_BITS = 0x1fff /* that products ignore */ };

struct tensor_float {
  float value;
  tensor_float() = default;
  /* Rounds to nearest, ties away from zero (PTX ISA 9.0, "cvt"). */
  explicit __device__ __forceinline__ tensor_float(float v) {
    uint32_t rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(v));
    value = __uint_as_float(rounded);
  }
  __host__ __device__ __forceinline__ operator float() const { return value; }
};

#endif
