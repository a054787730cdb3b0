/* conv1: its normalised input, and the gradients of its 320 parameters from the gradient of its pooled output. */
#ifndef RL_TRAIN_CUDA_CONV1_H
#define RL_TRAIN_CUDA_CONV1_H

#include "train/cuda/gather.cuh"

enum { CONV1_WIDTH = RL_IMAGE_SIDE + 2 /* of an image with a border of zeros */ };

static __device__ __forceinline__ float normalised_pixel(uint8_t byte) {
  return (byte * (1.0f / 255.0f) - 0.1307f) * (1.0f / 0.3081f);
}

/* Normalises rows first … first + count - 1 of the image with a border of zeros into tile[count][CONV1_WIDTH]. Row 0 is the upper
 * border. All threads of the block call it. */
static __device__ __forceinline__ void load_image_rows(const uint8_t *image, int first, int count, float *tile) {
#pragma unroll 1
  for (int i = threadIdx.x; i < count * CONV1_WIDTH; i += blockDim.x) {
    int y = first + i / CONV1_WIDTH - 1, x = i % CONV1_WIDTH - 1;
    bool inside = y >= 0 && y < RL_IMAGE_SIDE && x >= 0 && x < RL_IMAGE_SIDE;
    tile[i] = inside ? normalised_pixel(image[y * RL_IMAGE_SIDE + x]) : 0.0f;
  }
}

/* Adds the contribution of one pooled element to the gradients of its channel: sums[0 … 8] of the weights, sums[9] of the bias.
 * gradient: of the pooled element; max-pooling passes it to the conv1 output at `argmax`. pixel: index of the pooled element,
 * counted from the first pooled row that `tile` (load_image_rows) covers. The function does not branch, because lanes have
 * different argmaxes: so `pixel` must lie in the tile even if the argmax is RL_ARGMAX_RELU_ZERO. */
static __device__ __forceinline__ void add_pooled_gradient(float gradient, int argmax, int pixel, const float *tile,
                                                           float sums[10]) {
  const float passed = argmax == RL_ARGMAX_RELU_ZERO ? 0.0f : gradient;
  const float *corner =
      &tile[(pixel / RL_POOLED1_SIDE * 2 + argmax / 2 % 2) * CONV1_WIDTH + pixel % RL_POOLED1_SIDE * 2 + argmax % 2];
  for (int k = 0; k < 9; k++) sums[k] = fmaf(passed, corner[k / 3 * CONV1_WIDTH + k % 3], sums[k]);
  sums[9] += passed;
}

/* Adds up sums[WARPS], one row for each warp, into row `row` of `partial`. All threads of the block call it. */
template <int WARPS>
static __device__ __forceinline__ void reduce_rows(const float (*sums)[RL_CONV1_PARAMETERS], float *partial, uint32_t row) {
  for (int i = threadIdx.x; i < RL_CONV1_PARAMETERS; i += blockDim.x) {
    float sum = 0.0f;
    for (int warp = 0; warp < WARPS; warp++) sum += sums[warp][i];
    partial[row * RL_CONV1_PARAMETERS + i] = sum;
  }
}

/* The same for sums in registers (add_pooled_gradient); those of lane i belong to channel i. warp_sums: scratch in shared memory,
 * WARPS rows. */
template <int WARPS> static __device__ __forceinline__ void reduce_channel_sums(const float sums[10],
                                                                                float (*warp_sums)[RL_CONV1_PARAMETERS],
                                                                                float *partial, uint32_t row) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int k = 0; k < 9; k++) warp_sums[warp][lane * 9 + k] = sums[k];
  warp_sums[warp][RL_C1 * 9 + lane] = sums[9];
  __syncthreads();
  reduce_rows<WARPS>(warp_sums, partial, row);
}

#endif
