/* Which image of the data set is image n of a batch. */
#ifndef RL_TRAIN_CUDA_GATHER_H
#define RL_TRAIN_CUDA_GATHER_H

#include "train/cuda/kernels.h"

/* Its place in the epoch, or in the evaluation. */
static __device__ __forceinline__ uint32_t position_of(const rl_gather &gather, uint32_t n) {
  return *gather.step * gather.stride + n;
}

static __device__ __forceinline__ uint32_t index_at(const rl_gather &gather, uint32_t position) {
  return gather.order ? gather.order[position] : position;
}

static __device__ __forceinline__ uint32_t index_of(const rl_gather &gather, uint32_t n) {
  return index_at(gather, position_of(gather, n));
}

static __device__ __forceinline__ const uint8_t *image_of(const rl_gather &gather, uint32_t n) {
  return gather.images + (size_t)index_of(gather, n) * RL_PIXELS;
}

static __device__ __forceinline__ uint32_t label_of(const rl_gather &gather, uint32_t n) {
  return gather.labels[index_of(gather, n)];
}

#endif
