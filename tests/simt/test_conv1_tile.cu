/* Tests conv1 forward in TF32 on tensor cores (conv1_tile.cuh): pooling on the bits of the outputs, and the pooled outputs of a
 * random image and random weights against sums in double. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "device_memory.h"
#include "train/cuda/kernels.h"
#include "train/cuda/conv1_tile.cuh"

enum { PITCH = 36, CHANNELS = RL_CONV1_CHANNELS, WARPS = 2, VALUES = CONV1_WINDOWS * PITCH };

/* Checks relu_pool_with_argmax for a window with these outputs. */
static void check_window(const float outputs[4], uint32_t argmax, const char *what) {
  const float greatest = argmax == RL_ARGMAX_RELU_ZERO ? 0 : outputs[argmax],
              scaled[4] = {outputs[0] * FORWARD_SCALE, outputs[2] * FORWARD_SCALE, outputs[1] * FORWARD_SCALE,
                           outputs[3] * FORWARD_SCALE};
  const uint32_t bits = relu_pool_with_argmax(&scaled[0], &scaled[1]);
  check(argmax_bit::argmax(bits & ARGMAX_BITS) == argmax, what);
  check(__uint_as_float(bits & ~TENSOR_FLOAT_IGNORED_BITS) == (float)tensor_float(greatest), what);
}

static void test_pooling(void) {
  check_window((const float[]){-1, -2, -0.5f, -3}, RL_ARGMAX_RELU_ZERO, "negative outputs become zero");
  check_window((const float[]){0.0f, -0.0f, 0.0f, -0.0f}, RL_ARGMAX_RELU_ZERO, "zeros have no argmax");
  check_window((const float[]){2, 2, 2, 2}, 0, "the first of four equal outputs wins");
  check_window((const float[]){-2, 3, 1, 3}, 1, "the first of two equal outputs wins");
  for (int run = 0; run < 10000; run++) {
    float outputs[4];
    uint32_t argmax = 0;
    for (float &output : outputs) output = ldexpf((float)rand() / (float)RAND_MAX - 0.5f, rand() % 3);
    for (uint32_t i = 1; i < 4; i++)
      if (outputs[i] > outputs[argmax] * (1 + 0x1p-19f)) argmax = i;
    bool is_ambiguous = false; /* two outputs differ by less than 2⁻¹⁹ */
    for (uint32_t i = 0; i < 4; i++) is_ambiguous |= i != argmax && outputs[i] > outputs[argmax] * (1 - 0x1p-18f);
    if (outputs[argmax] <= 0) argmax = RL_ARGMAX_RELU_ZERO;
    if (argmax == RL_ARGMAX_RELU_ZERO || !is_ambiguous) check_window(outputs, argmax, "the greatest output wins, rounded");
  }
}

static __global__ void compute(int half, const float *weights, const uint8_t *bytes, float *pooled1) {
  __shared__ __align__(16) float shared_weights[RL_CONV1_PARAMETERS], image[EXACT_IMAGE_ROWS * FLOAT_IMAGE_PITCH];
  for (int i = threadIdx.x; i < RL_CONV1_PARAMETERS; i += WARPS * 32) shared_weights[i] = weights[i];
  clear_float_image(image);
  __syncthreads();
  store_float_image(bytes, image);
  __syncthreads();
  conv1_tile_forward<WARPS, PITCH>(threadIdx.x / 32, half, shared_weights, image,
                                   [&](int i, uint4 bits) { *(uint4 *)&pooled1[i] = bits; });
}

/* Returns the output of conv1 at a row and column. Pixels beyond the image are zero. */
static double output_of(const std::vector<uint8_t> &bytes, const std::vector<float> &weights, int channel, int row, int column) {
  double sum = weights[CHANNELS * 9 + channel];
  for (int k = 0; k < 9; k++) {
    const int y = row + k / 3 - 1, x = column + k % 3 - 1;
    if (y < 0 || x < 0 || y >= RL_IMAGE_SIDE || x >= RL_IMAGE_SIDE) continue;
    sum += weights[channel * 9 + k] * (bytes[y * RL_IMAGE_SIDE + x] / 255.0 - 0.1307) / 0.3081;
  }
  return sum;
}

/* largest_weight: the weights and biases are uniform in [-largest_weight, largest_weight]. */
static void test_forward(float largest_weight) {
  const float before = -1000;
  std::vector<float> weights(RL_CONV1_PARAMETERS), pooled(VALUES, before);
  std::vector<uint8_t> bytes(RL_IMAGE_PIXELS);
  for (float &weight : weights) weight = largest_weight * (2 * (float)rand() / (float)RAND_MAX - 1);
  for (uint8_t &byte : bytes) byte = (uint8_t)(rand() % 256);
  float *device_weights = copy_to_device(weights), *device_pooled = copy_to_device(pooled);
  uint8_t *device_bytes = copy_to_device(bytes);
  for (int half = 0; half < 2; half++) compute<<<1, WARPS * 32>>>(half, device_weights, device_bytes, device_pooled);
  copy_to_host(device_pooled, pooled);
  for (int window = 0; window < CONV1_WINDOWS; window++)
    for (int channel = 0; channel < PITCH; channel++) {
      uint32_t bits;
      double outputs[4], greatest = 0;
      memcpy(&bits, &pooled[window * PITCH + channel], sizeof bits);
      if (channel >= CHANNELS) check(pooled[window * PITCH + channel] == before, "the padding is not written");
      if (channel >= CHANNELS) continue;
      for (int i = 0; i < 4; i++) {
        outputs[i] =
            output_of(bytes, weights, channel, window / RL_POOLED1_SIDE * 2 + i / 2, window % RL_POOLED1_SIDE * 2 + i % 2);
        greatest = fmax(greatest, outputs[i]);
      }
      const double value = __uint_as_float(bits & ~TENSOR_FLOAT_IGNORED_BITS),
                   tolerance = 3e-6 * largest_weight + 1e-6; /* 1e-6: of nine weights whose low values are subnormal */
      const uint32_t argmax = argmax_bit::argmax(bits & ARGMAX_BITS);
      check(fabs(value - greatest) <= 0x1p-11 * greatest + tolerance, "an output has the error of its rounding to TF32");
      check(fabs((argmax == RL_ARGMAX_RELU_ZERO ? 0 : outputs[argmax]) - greatest) <= 0x1p-19 * greatest + tolerance,
            "an argmax is that of the greatest output");
    }
  cudaFree(device_weights), cudaFree(device_pooled), cudaFree(device_bytes);
}

int main() {
  test_pooling();
  for (float largest_weight : {0.01f, 0.5f, 100.0f}) test_forward(largest_weight);
  return 0;
}
