/* Bias, ReLU and max-pooling of one 2×2 window. bias_relu_pool compares FP32 outputs. relu_pool_half2 compares outputs that are
 * rounded to FP16, as PyTorch does in mixed precision. */
#ifndef RL_TRAIN_CUDA_POOL_H
#define RL_TRAIN_CUDA_POOL_H

#include <cuda_fp16.h>

#include "train/cuda/kernels.h"

/* The code of an argmax (0 to 3 or RL_ARGMAX_RELU_ZERO) that a function stores: the number itself. */
struct argmax_number {
  static __device__ __forceinline__ constexpr uint32_t of(uint32_t argmax) { return argmax; }
};

/* Computes the pooled value and the argmax (kernels.h) of a window, whose outputs are a, b, c and d, plus the bias. a, b: upper
 * left and upper right; c, d: lower left and lower right. The first of equal values wins. */
static __device__ __forceinline__ void bias_relu_pool(float a, float b, float c, float d, float bias, float *greatest,
                                                      uint8_t *argmax) {
  *greatest = a;
  *argmax = 0;
  if (b > *greatest) *greatest = b, *argmax = 1;
  if (c > *greatest) *greatest = c, *argmax = 2;
  if (d > *greatest) *greatest = d, *argmax = 3;
  *greatest += bias;
  if (!(*greatest > 0.0f)) *greatest = 0.0f, *argmax = RL_ARGMAX_RELU_ZERO;
}

/* Computes ReLU and max-pooling of one window for two channels. outputs: upper left, upper right, lower left and lower right,
 * with the bias added. *argmaxes: the code of the argmax of the first channel in the lower 16 bits, that of the second channel in
 * the upper 16 bits. The first of equal values wins.
 *
 * The code selects with masks instead of predicates. The kernels have few predicate registers to spare, so with predicates each
 * comparison would have to wait for the previous selection. */
template <class Code = argmax_number>
static __device__ __forceinline__ void relu_pool_half2(const __half2 outputs[4], __half2 *greatest, uint32_t *argmaxes) {
  const auto twice = [](uint32_t argmax) { return Code::of(argmax) * 0x10001u; };
  const auto select = [](uint32_t mask, uint32_t a, uint32_t b) { return (mask & a) | (~mask & b); };
  const __half2 zero = __float2half2_rn(0.0f),
                maximum = __hmax2(__hmax2(outputs[0], outputs[1]), __hmax2(outputs[2], outputs[3]));
  const uint32_t is_0 = __heq2_mask(outputs[0], maximum), is_1 = __heq2_mask(outputs[1], maximum),
                 is_2 = __heq2_mask(outputs[2], maximum), is_positive = __hgt2_mask(maximum, zero);
  const uint32_t of_2_or_3 = select(is_2, twice(2), twice(3)), of_1_to_3 = select(is_1, twice(1), of_2_or_3);
  *argmaxes = select(is_positive, select(is_0, twice(0), of_1_to_3), twice(RL_ARGMAX_RELU_ZERO));
  *greatest = __hmax2(maximum, zero);
}

#endif
