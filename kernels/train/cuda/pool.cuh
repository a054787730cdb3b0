/* Bias, max-pooling and ReLU of one window. */
#ifndef RL_TRAIN_CUDA_POOL_H
#define RL_TRAIN_CUDA_POOL_H

#include "train/cuda/kernels.h"

/* Computes the pooled value and the pool code (kernels.h) of a window a b / c d. Of equal values the first one wins. */
static __device__ __forceinline__ void pool_four(float a, float b, float c, float d, float bias, float *best, uint8_t *code) {
  *best = a;
  *code = 0;
  if (b > *best) *best = b, *code = 1;
  if (c > *best) *best = c, *code = 2;
  if (d > *best) *best = d, *code = 3;
  *best += bias;
  if (!(*best > 0.0f)) *best = 0.0f, *code = RL_POOL_RELU_ZERO;
}

#endif
