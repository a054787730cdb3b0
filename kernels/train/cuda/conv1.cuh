/* The first layer's input, and the gradients of its 320 parameters from a pooled gradient. */
#ifndef RL_TRAIN_CUDA_CONV1_H
#define RL_TRAIN_CUDA_CONV1_H

#include "train/cuda/gather.cuh"

enum { CONV1_WIDTH = RL_IMAGE + 2 /* of an image with a border of zeros */, CONV1_ROW = RL_C1 * 10 /* weights, then biases */ };

static __device__ __forceinline__ float normalised(uint8_t byte) { return (byte * (1.0f / 255.0f) - 0.1307f) * (1.0f / 0.3081f); }

/* Rows [first, first + count) of the image with a border of zeros around it, first = 0 being the border, into
 * tile[count][CONV1_WIDTH]. */
static __device__ __forceinline__ void load_image_rows(const uint8_t *image, int first, int count, float *tile) {
#pragma unroll 1
  for (int i = threadIdx.x; i < count * CONV1_WIDTH; i += blockDim.x) {
    int y = first + i / CONV1_WIDTH - 1, x = i % CONV1_WIDTH - 1;
    bool inside = y >= 0 && y < RL_IMAGE && x >= 0 && x < RL_IMAGE;
    tile[i] = inside ? normalised(image[y * RL_IMAGE + x]) : 0.0f;
  }
}

/* A pooled element's gradient goes to the one conv1 output that won. sums[0..8]: weights, sums[9]: bias of its channel; pixel: of
 * the pooled rows below tile, and inside of them where nothing is let through, too. No branch: lanes have different codes. */
static __device__ __forceinline__ void add_element(float gradient, int code, int pixel, const float *tile, float sums[10]) {
  const float let_through = code == RL_POOL_RELU_ZERO ? 0.0f : gradient;
  const float *corner = &tile[(pixel / RL_P1 * 2 + code / 2 % 2) * CONV1_WIDTH + pixel % RL_P1 * 2 + code % 2];
  for (int k = 0; k < 9; k++) sums[k] = fmaf(let_through, corner[k / 3 * CONV1_WIDTH + k % 3], sums[k]);
  sums[9] += let_through;
}

/* Adds up the rows of a block's warps into partial[row]; all threads. */
template <int WARPS>
static __device__ __forceinline__ void add_rows(const float (*sums)[CONV1_ROW], float *partial, uint32_t row) {
  for (int i = threadIdx.x; i < CONV1_ROW; i += blockDim.x) {
    float sum = 0.0f;
    for (int from = 0; from < WARPS; from++) sum += sums[from][i];
    partial[row * CONV1_ROW + i] = sum;
  }
}

/* The same of warps whose lanes are channels; sums: [warps][CONV1_ROW] of shared memory. */
template <int WARPS> static __device__ __forceinline__ void add_channel_sums(const float mine[10], float (*sums)[CONV1_ROW],
                                                                             float *partial, uint32_t row) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int k = 0; k < 9; k++) sums[warp][lane * 9 + k] = mine[k];
  sums[warp][RL_C1 * 9 + lane] = mine[9];
  __syncthreads();
  add_rows<WARPS>(sums, partial, row);
}

#endif
