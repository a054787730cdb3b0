/* The pooled gradient of conv2 in FP16, for the kernels that compute conv2's gradients: UNPOOL_THREADS threads load that of an
 * image, unpool it, and add it to the gradient of the bias. */
#ifndef RL_TRAIN_CUDA_UNPOOL_H
#define RL_TRAIN_CUDA_UNPOOL_H

#include <cuda_fp16.h>

#include "train/cuda/kernels.h"

enum {
  UNPOOL_THREADS = 128,
  CHANNEL_VECTORS = RL_CONV2_CHANNELS / 8, /* vectors of eight channels in a pixel */
  IMAGE_VECTORS = RL_POOLED2_PIXELS * CHANNEL_VECTORS,
  VECTORS_PER_THREAD = (IMAGE_VECTORS + UNPOOL_THREADS - 1) / UNPOOL_THREADS
};

/* A thread's part of the pooled gradient of an image: up to VECTORS_PER_THREAD vectors, each of eight channels of a pixel. */
typedef struct pooled_part {
  uint4 gradient[VECTORS_PER_THREAD];
  uint2 argmax[VECTORS_PER_THREAD];
} pooled_part;

/* thread: index among the UNPOOL_THREADS. */
static __device__ __forceinline__ pooled_part load_pooled(const __half *pooled_gradient, const uint8_t *argmaxes, uint32_t thread,
                                                          uint32_t image) {
  pooled_part pooled;
  for (int k = 0; k < VECTORS_PER_THREAD; k++) {
    const uint32_t i = thread + k * UNPOOL_THREADS;
    const size_t offset = ((size_t)image * IMAGE_VECTORS + i) * 8;
    pooled.gradient[k] = i < IMAGE_VECTORS ? *(const uint4 *)&pooled_gradient[offset] : make_uint4(0, 0, 0, 0);
    pooled.argmax[k] = i < IMAGE_VECTORS ? *(const uint2 *)&argmaxes[offset]
                                         : make_uint2(RL_ARGMAX_RELU_ZERO * 0x01010101u, RL_ARGMAX_RELU_ZERO * 0x01010101u);
  }
  return pooled;
}

/* Replaces each of two FP16 values by 0 unless its argmax is `position`. __byte_perm creates the mask. selector: its four nibbles
 * are the argmax of the low value, twice, and then that of the high value, twice. They select bytes from a word that has 0xff in
 * byte `position` and zeros elsewhere; RL_ARGMAX_RELU_ZERO (4) selects a zero byte of the second word. */
static __device__ __forceinline__ uint32_t select_by_argmax(uint32_t half2, uint32_t selector, uint32_t position) {
  return half2 & __byte_perm(position < 4 ? 0xffu << position * 8 : 0, 0, selector);
}

/* Calls store(pixel, vector, position, values) for each position of each window of the part: `values` are the unpooled gradients
 * of eight channels, from 8 · vector on, at this position of the window of the pooled pixel. */
template <class Store> static __device__ __forceinline__ void unpool_vectors(const pooled_part &pooled, int thread, Store store) {
  for (int k = 0; k < VECTORS_PER_THREAD; k++) {
    const int i = thread + k * UNPOOL_THREADS;
    if (i >= IMAGE_VECTORS) continue;
    const uint4 gradient = pooled.gradient[k];
    uint32_t selector[4];
    for (int pair = 0; pair < 4; pair++) {
      const uint32_t argmaxes = (&pooled.argmax[k].x)[pair / 2] >> pair % 2 * 16;
      selector[pair] = (argmaxes & 0xf) * 0x11 | (argmaxes >> 8 & 0xf) * 0x1100;
    }
    for (uint32_t position = 0; position < 4; position++)
      store(i / CHANNEL_VECTORS, i % CHANNEL_VECTORS, (int)position,
            make_uint4(select_by_argmax(gradient.x, selector[0], position), select_by_argmax(gradient.y, selector[1], position),
                       select_by_argmax(gradient.z, selector[2], position), select_by_argmax(gradient.w, selector[3], position)));
  }
}

/* Adds the pooled gradient to the bias gradient of this thread's eight channels, without the elements where ReLU's output is
 * zero. Returns false if an added element is infinite or NaN. */
static __device__ __forceinline__ bool accumulate_bias(const pooled_part &pooled, float sums[8]) {
  bool finite = true;
  for (int k = 0; k < VECTORS_PER_THREAD; k++)
    for (int c = 0; c < 8; c++) {
      uint32_t pair = (&pooled.gradient[k].x)[c / 2], argmax = (&pooled.argmax[k].x)[c / 4] >> c % 4 * 8 & 0xff;
      float value = argmax == RL_ARGMAX_RELU_ZERO ? 0.0f : __half2float(__ushort_as_half((unsigned short)(pair >> c % 2 * 16)));
      sums[c] += value;
      finite &= isfinite(value);
    }
  return finite;
}

#endif
