/* Operands of conv1 for products on tensor cores that lose almost no precision in FP16. A pixel is multiplied as byte −
 * PIXEL_MIDDLE, which FP16 represents exactly, and a weight as the sum of two FP16 values, a high and a low one. The sum has a
 * relative error of at most 2⁻²³ or, if the low value is subnormal, an absolute error of at most 2⁻²⁵ (3e-8). */
#ifndef RL_TRAIN_CUDA_CONV1_EXACT_H
#define RL_TRAIN_CUDA_CONV1_EXACT_H

#include <cuda_fp16.h>

#include "train/cuda/conv1.cuh"
#include "train/cuda/vector.cuh"

/* A normalised pixel is (byte − PIXEL_MIDDLE) · PIXEL_SLOPE + PIXEL_INTERCEPT. In the border around an image, whose pixels are
 * zero, the constant BORDER takes the place of byte − PIXEL_MIDDLE. BORDER is rounded to FP16, so a border pixel is 2e-7 instead
 * of zero. */
static const float PIXEL_MIDDLE = 33.375f, PIXEL_SLOPE = 1.0f / (255.0f * 0.3081f),
                   PIXEL_INTERCEPT = (PIXEL_MIDDLE - 0.1307f * 255.0f) * PIXEL_SLOPE, BORDER = 0.1307f * 255.0f - PIXEL_MIDDLE;

/* Returns two bytes of a word as FP16 values, minus PIXEL_MIDDLE. selector: selects the two bytes for __byte_perm, and 0x64 above
 * each, because 0x6400 + byte are the bits of the FP16 value 1024 + byte. */
static __device__ __forceinline__ __half2 minus_middle(uint32_t word, uint32_t selector) {
  const __half2 plus_1024 = half2_from_bits(__byte_perm(word, 0x64646464u, selector));
  return __hsub2(__hsub2(plus_1024, __float2half2_rn(1024.0f)), __float2half2_rn(PIXEL_MIDDLE));
}

/* Splits each of two values into the sum of two FP16 values: *high has the two high parts, *low the two low parts. */
static __device__ __forceinline__ void split_halves(float a, float b, uint32_t *high, uint32_t *low) {
  const __half2 rounded = __floats2half2_rn(a, b);
  *high = half2_bits(rounded);
  *low = half2_bits(__floats2half2_rn(a - __low2float(rounded), b - __high2float(rounded)));
}

#endif
