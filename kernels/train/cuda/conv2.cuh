/* conv2, 32→64 channels on 14×14 pixels, in FP16 on tensor cores (conv2_forward.cu, conv2_backward.cu): its sizes and layouts in
 * shared memory. Weights are [64][9 taps][32], activations NHWC. A pixel takes an odd number of 16-byte vectors, and an image row
 * has 14 pixels. So the eight addresses of an ldmatrix phase are in different banks, both for eight adjacent pixels and for four
 * adjacent pixels with the four that are two image rows below them. */
#ifndef RL_TRAIN_CUDA_CONV2_H
#define RL_TRAIN_CUDA_CONV2_H

#include "train/cuda/kernels.h"
#include "train/cuda/mma.cuh"

enum {
  TAPS = 9,
  WEIGHT_COLUMNS = TAPS * RL_C1, /* of a weight row; the depth (K) of the forward product */
  VECTOR = 8,                    /* halves in 16 bytes */
  WEIGHT_PITCH = WEIGHT_COLUMNS + VECTOR,
  IN_PITCH = RL_C1 + VECTOR,
  OUT_PITCH = RL_C2 + VECTOR,
  IN_IMAGE_HALVES = RL_POOLED1_PIXELS * IN_PITCH, /* FP16 values of an input image in shared memory */
  /* The 12×12 output pixels are 3×3 tiles of 4×4 pixels; a tile is the M = 16 of a warp's product. */
  TILE_SIDE = 4,
  TILES_IN_ROW = RL_CONV2_SIDE / TILE_SIDE,
  TILES = TILES_IN_ROW * TILES_IN_ROW
};

/* Returns the offset in the image, in pixels, of pixel i of a tile from the tile's first pixel. Pixels 0 … 7 are rows 0 and 2 of
 * the tile, pixels 8 … 15 rows 1 and 3: so the upper and lower pixels of a pooling window are rows i and i + 8 of the product. */
static __device__ __forceinline__ int tile_pixel_offset(int i) { return (i / 4 % 2 * 2 + i / 8) * RL_POOLED1_SIDE + i % 4; }

/* Returns the index in the image of a tile's first pixel. */
static __device__ __forceinline__ int tile_origin(int tile) {
  return (tile / TILES_IN_ROW * RL_POOLED1_SIDE + tile % TILES_IN_ROW) * TILE_SIDE;
}

/* Begins to copy an image [196][32] into to[196][IN_PITCH]. Called by THREADS threads with x = 0 … THREADS - 1. */
template <int THREADS> static __device__ __forceinline__ void load_image_async(const __half *image, __half *to) {
  const int pixel_vectors = RL_C1 / VECTOR, count = RL_POOLED1_PIXELS * pixel_vectors, passes = (count + THREADS - 1) / THREADS;
  static_assert(THREADS % pixel_vectors == 0, "a thread copies the same vector of each of its pixels");
  image += threadIdx.x * VECTOR;
  to += threadIdx.x / pixel_vectors * IN_PITCH + threadIdx.x % pixel_vectors * VECTOR;
#pragma unroll
  for (int i = 0; i < passes; i++)
    if ((i + 1) * THREADS <= count || threadIdx.x < count - i * THREADS)
      cp_async_16(&to[i * THREADS / pixel_vectors * IN_PITCH], &image[i * THREADS * VECTOR]);
}

#endif
