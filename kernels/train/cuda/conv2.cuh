/* The second layer, 32→64 channels on 14×14, in FP16 on tensor cores (conv2_forward.cu, conv2_backward.cu): its sizes, and how
 * its tensors lie in shared memory. Weights are [64][9 taps][32], activations NHWC. Rows are an odd number of 16-byte units long,
 * and pixels lie as in memory, 14 in a row: what ldmatrix reads at once are four neighbours of a row and those two rows below,
 * or eight neighbours, and both are apart modulo 8. */
#ifndef RL_TRAIN_CUDA_CONV2_H
#define RL_TRAIN_CUDA_CONV2_H

#include "train/cuda/kernels.h"
#include "train/cuda/mma.cuh"

enum {
  TAPS = 9,
  DEPTH = TAPS * RL_C1,
  MAP1 = RL_P1 * RL_P1,
  MAP2 = RL_P2 * RL_P2,
  UNIT = 8, /* halves in 16 bytes */
  WEIGHT_PITCH = DEPTH + UNIT,
  IN_PITCH = RL_C1 + UNIT,
  OUT_PITCH = RL_C2 + UNIT,
  IN_IMAGE = MAP1 * IN_PITCH, /* halves */
  /* The product's 12×12 pixels are 3×3 tiles of 4×4, which are what a warp multiplies at once. */
  TILE_SIDE = 4,
  TILES_IN_ROW = RL_H2 / TILE_SIDE,
  TILES = TILES_IN_ROW * TILES_IN_ROW
};

/* Row i of a tile's 16 pixels: two rows of the image, then the two below each of them. Pixels from the tile's corner. */
static __device__ __forceinline__ int tile_pixel(int i) { return (i / 4 % 2 * 2 + i / 8) * RL_P1 + i % 4; }

static __device__ __forceinline__ int tile_corner(int tile) {
  return (tile / TILES_IN_ROW * RL_P1 + tile % TILES_IN_ROW) * TILE_SIDE;
}

template <int THREADS> static __device__ __forceinline__ void copy_image(const __half *image, __half *to) {
  const int parts = RL_C1 / UNIT, count = MAP1 * parts, turns = (count + THREADS - 1) / THREADS;
  static_assert(THREADS % parts == 0, "a thread has the same part of each of its pixels");
  image += threadIdx.x * UNIT;
  to += threadIdx.x / parts * IN_PITCH + threadIdx.x % parts * UNIT;
#pragma unroll
  for (int turn = 0; turn < turns; turn++)
    if ((turn + 1) * THREADS <= count || threadIdx.x < count - turn * THREADS)
      cp_async_16(&to[turn * THREADS / parts * IN_PITCH], &image[turn * THREADS * UNIT]);
}

#endif
