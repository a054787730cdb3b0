/* Functions that the kernels of conv1 (1→32 channels, 3×3 taps, padding 1) share: they normalise images, and add up the gradients
 * of conv1's 320 parameters (288 weights, 32 biases) from the gradient of the pooled output. Each block stores its sums of these
 * gradients as a row of partial sums [320]; Adam adds up the rows. */
#ifndef RL_TRAIN_CUDA_CONV1_H
#define RL_TRAIN_CUDA_CONV1_H

#include "train/cuda/gather.cuh"

enum { CONV1_WIDTH = RL_IMAGE_SIDE + 2 /* pixels in a row of an image with its border of zeros */ };

/* Returns (byte / 255 − mean) / standard deviation, with MNIST's mean and standard deviation. */
static __device__ __forceinline__ float normalised_pixel(uint8_t byte) {
  return (byte * (1.0f / 255.0f) - 0.1307f) * (1.0f / 0.3081f);
}

/* Adds a border of zeros to an image, and writes rows first … first + count - 1 of the result, normalised, to
 * tile[count][CONV1_WIDTH]. Row 0 is the upper border. All threads of the block call it. */
static __device__ __forceinline__ void load_image_rows(const uint8_t *image, int first, int count, float *tile) {
#pragma unroll 1
  for (int i = threadIdx.x; i < count * CONV1_WIDTH; i += blockDim.x) {
    int y = first + i / CONV1_WIDTH - 1, x = i % CONV1_WIDTH - 1;
    bool inside = y >= 0 && y < RL_IMAGE_SIDE && x >= 0 && x < RL_IMAGE_SIDE;
    tile[i] = inside ? normalised_pixel(image[y * RL_IMAGE_SIDE + x]) : 0.0f;
  }
}

/* Adds the contribution of one pooled element to the gradients of its channel: sums[0 … 8] of the nine weights, sums[9] of the
 * bias. gradient: of the pooled element; max-pooling passes it to the output of conv1 at position `argmax` of the element's 2×2
 * window. pixel: index of the pooled element, counted from the first pooled row that `tile` (load_image_rows) covers. `corner` is
 * the upper left of the 3×3 pixels that this output of conv1 depends on.
 *
 * The lanes of a warp have different argmaxes, so the function does not branch on the argmax. It reads the tile even if the
 * argmax is RL_ARGMAX_RELU_ZERO, so the window of `pixel` must be inside the tile. */
static __device__ __forceinline__ void add_pooled_gradient(float gradient, int argmax, int pixel, const float *tile,
                                                           float sums[10]) {
  const float passed = argmax == RL_ARGMAX_RELU_ZERO ? 0.0f : gradient;
  const float *corner =
      &tile[(pixel / RL_POOLED1_SIDE * 2 + argmax / 2 % 2) * CONV1_WIDTH + pixel % RL_POOLED1_SIDE * 2 + argmax % 2];
  for (int k = 0; k < 9; k++) sums[k] = fmaf(passed, corner[k / 3 * CONV1_WIDTH + k % 3], sums[k]);
  sums[9] += passed;
}

/* Adds up the rows of sums[WARPS], one for each warp, and stores the total as row `row` of partial. All threads of the block call
 * it. */
template <int WARPS>
static __device__ __forceinline__ void reduce_rows(const float (*sums)[RL_CONV1_PARAMETERS], float *partial, uint32_t row) {
  for (int i = threadIdx.x; i < RL_CONV1_PARAMETERS; i += blockDim.x) {
    float sum = 0.0f;
    for (int warp = 0; warp < WARPS; warp++) sum += sums[warp][i];
    partial[row * RL_CONV1_PARAMETERS + i] = sum;
  }
}

/* Adds up over the block's warps the sums that the threads have in registers (add_pooled_gradient), where lane i has those of
 * channel i, and stores the total as row `row` of partial. warp_sums: scratch in shared memory, WARPS rows. All threads of the
 * block call it. */
template <int WARPS> static __device__ __forceinline__ void reduce_channel_sums(const float sums[10],
                                                                                float (*warp_sums)[RL_CONV1_PARAMETERS],
                                                                                float *partial, uint32_t row) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int k = 0; k < 9; k++) warp_sums[warp][lane * 9 + k] = sums[k];
  warp_sums[warp][RL_CONV1_CHANNELS * 9 + lane] = sums[9];
  __syncthreads();
  reduce_rows<WARPS>(warp_sums, partial, row);
}

#endif
