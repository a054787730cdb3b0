/* Bias, max-pooling and ReLU of one window. */
#ifndef RL_TRAIN_CUDA_POOL_H
#define RL_TRAIN_CUDA_POOL_H

#include "train/cuda/kernels.h"

/* Computes the pooled value and the argmax (kernels.h) of a window a b / c d. Of equal values the first one wins. */
static __device__ __forceinline__ void bias_relu_pool(float a, float b, float c, float d, float bias, float *best,
                                                      uint8_t *argmax) {
  *best = a;
  *argmax = 0;
  if (b > *best) *best = b, *argmax = 1;
  if (c > *best) *best = c, *argmax = 2;
  if (d > *best) *best = d, *argmax = 3;
  *best += bias;
  if (!(*best > 0.0f)) *best = 0.0f, *argmax = RL_ARGMAX_RELU_ZERO;
}

#endif
