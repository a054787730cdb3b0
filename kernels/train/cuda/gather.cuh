/* Functions that find image n of a batch on the device: its position in the epoch, from that its index in the data set
 * (rl_gather), and from that its pixels and its label. */
#ifndef RL_TRAIN_CUDA_GATHER_H
#define RL_TRAIN_CUDA_GATHER_H

#include "train/cuda/kernels.h"

/* Returns the position of image n of the batch in the epoch or the evaluation. */
static __device__ __forceinline__ uint32_t epoch_position(const rl_gather &gather, uint32_t n) {
  return *gather.step * gather.stride + n;
}

/* Returns the data set index of the image at a position of the epoch. */
static __device__ __forceinline__ uint32_t dataset_index_at(const rl_gather &gather, uint32_t position) {
  return gather.order ? gather.order[position] : position;
}

static __device__ __forceinline__ uint32_t dataset_index_of(const rl_gather &gather, uint32_t n) {
  return dataset_index_at(gather, epoch_position(gather, n));
}

static __device__ __forceinline__ const uint8_t *image_pixels(const rl_gather &gather, uint32_t n) {
  return gather.images + (size_t)dataset_index_of(gather, n) * RL_IMAGE_PIXELS;
}

static __device__ __forceinline__ uint32_t label_of(const rl_gather &gather, uint32_t n) {
  return gather.labels[dataset_index_of(gather, n)];
}

#endif
