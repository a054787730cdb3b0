/* What the FP16 kernels of conv2 on tensor cores (conv2_forward.cu, conv2_backward.cu) share: sizes, layouts in shared memory,
 * and tiles of pixels. conv2 is a 3×3 convolution from 32 channels of 14×14 pixels to 64 channels of 12×12 pixels. Weights are
 * [64][9 taps][32 input channels], activations NHWC. M, N and K are the sizes of an mma: rows, columns, depth.
 *
 * Bank conflicts: the pitch of a pixel is an odd number of 16-byte vectors, and an image row has 14 pixels. So the eight
 * addresses that ldmatrix reads in one phase are in different banks, both for eight adjacent pixels and for four adjacent pixels
 * together with the four pixels that are two image rows below them. */
#ifndef RL_TRAIN_CUDA_CONV2_H
#define RL_TRAIN_CUDA_CONV2_H

#include "train/cuda/kernels.h"
#include "train/cuda/mma.cuh"

enum {
  TAPS = 9,
  WEIGHT_COLUMNS = TAPS * RL_CONV1_CHANNELS,      /* values in a row of weights; the depth of the forward product */
  VECTOR = 8,                                     /* FP16 values in 16 bytes */
  WEIGHT_PITCH = WEIGHT_COLUMNS + VECTOR,         /* FP16 values from one row of weights to the next in shared memory */
  IN_PITCH = RL_CONV1_CHANNELS + VECTOR,          /* the same for pixels of the input */
  OUT_PITCH = RL_CONV2_CHANNELS + VECTOR,         /* the same for pixels of out_gradient */
  IN_IMAGE_HALVES = RL_POOLED1_PIXELS * IN_PITCH, /* FP16 values of an input image in shared memory */
  /* The 12×12 output pixels are divided into 3×3 tiles of 4×4 pixels. The 16 pixels of a tile are the rows (M) of a warp's
   * mma. */
  TILE_SIDE = 4,
  TILES_IN_ROW = RL_CONV2_SIDE / TILE_SIDE,
  TILES = TILES_IN_ROW * TILES_IN_ROW
};

/* Returns the distance of pixel i of a tile from the tile's first pixel, in pixels of the 14×14 input image. Pixels 0 … 7 are
 * rows 0 and 2 of the tile, and pixels 8 … 15 are rows 1 and 3. So for i < 8, pixel i + 8 is the pixel below pixel i: rows i and
 * i + 8 of the product belong to the same pooling window. */
static __device__ __forceinline__ int tile_pixel_offset(int i) { return (i / 4 % 2 * 2 + i / 8) * RL_POOLED1_SIDE + i % 4; }

/* Returns the index of a tile's first pixel in the 14×14 input image. */
static __device__ __forceinline__ int tile_origin(int tile) {
  return (tile / TILES_IN_ROW * RL_POOLED1_SIDE + tile % TILES_IN_ROW) * TILE_SIDE;
}

/* Begins to copy an image [196 pixels][32] into to[196][IN_PITCH] with cp.async. The THREADS threads with threadIdx.x = 0 …
 * THREADS - 1 call it. */
template <int THREADS> static __device__ __forceinline__ void load_image_async(const __half *image, __half *to) {
  const int vectors_per_pixel = RL_CONV1_CHANNELS / VECTOR, count = RL_POOLED1_PIXELS * vectors_per_pixel,
            copies_per_thread = (count + THREADS - 1) / THREADS;
  static_assert(THREADS % vectors_per_pixel == 0, "a thread must copy the same vector of each of its pixels");
  image += threadIdx.x * VECTOR;
  to += threadIdx.x / vectors_per_pixel * IN_PITCH + threadIdx.x % vectors_per_pixel * VECTOR;
#pragma unroll
  for (int i = 0; i < copies_per_thread; i++)
    if ((i + 1) * THREADS <= count || threadIdx.x < count - i * THREADS)
      cp_async_16(&to[i * THREADS / vectors_per_pixel * IN_PITCH], &image[i * THREADS * VECTOR]);
}

#endif
