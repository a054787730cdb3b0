/* Bias, ReLU and max-pooling of one 2×2 window. */
#ifndef RL_TRAIN_CUDA_POOL_H
#define RL_TRAIN_CUDA_POOL_H

#include "train/cuda/kernels.h"

/* Computes the pooled value and the argmax (kernels.h) of the window whose upper outputs are a and b and whose lower outputs are
 * c and d, in this order. The first of equal values wins. */
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

#endif
