/* conv1 of one image on tensor cores, for the engine "persistent" in FP16: the forward pass with bias, ReLU and pooling, and the
 * gradients of conv1's parameters. mma.cuh explains mma and its fragments; M, N and K are rows of A, columns of B, and depth.
 *
 * A window is one of the 14 × 14 pooling windows; windows are numbered row by row. Its four positions are the outputs of conv1
 * that it contains: position p is in row p / 2 and column p % 2 of the window. The tap (y, x) of an output at (row, column)
 * multiplies pixel (row + y, column + x) of the image with its border of zeros.
 *
 * The image is stored as pairs of FP16 values (conv1_exact.cuh): pair (y, x) holds the pixels (y, x) and (y, x + 1). So one load
 * of 4 bytes reads two neighbouring pixels at any x: the pixels of two neighbouring taps, or those of one tap for two
 * neighbouring positions. */
#ifndef RL_TRAIN_CUDA_CONV1_TILE_H
#define RL_TRAIN_CUDA_CONV1_TILE_H

#include "train/cuda/conv1_exact.cuh"
#include "train/cuda/mma.cuh"
#include "train/cuda/pool.cuh"

enum {
  CONV1_WINDOWS = RL_POOLED1_SIDE * RL_POOLED1_SIDE,
  FORWARD_TILE_WINDOWS = 8,   /* windows of a tile in conv1_tile_forward */
  GRADIENT_TILE_WINDOWS = 16, /* windows of a tile in conv1_tile_gradient: the K of an mma */
  FORWARD_TILES = (CONV1_WINDOWS + FORWARD_TILE_WINDOWS - 1) / FORWARD_TILE_WINDOWS,
  GRADIENT_TILES = (CONV1_WINDOWS + GRADIENT_TILE_WINDOWS - 1) / GRADIENT_TILE_WINDOWS,
  TILED_WINDOWS = GRADIENT_TILES * GRADIENT_TILE_WINDOWS, /* windows in all tiles; those from CONV1_WINDOWS on do not exist */
  IMAGE_PAIR_ROWS = CONV1_WIDTH + 2, /* rows of pairs that the windows in all tiles read; two rows of ones follow them */
  IMAGE_PAIR_PITCH = 34, /* pairs from one row to the next: even, so that two pairs can be loaded with one 8-byte access */
  FIRST_ONE = IMAGE_PAIR_ROWS * IMAGE_PAIR_PITCH,
  IMAGE_PAIRS = FIRST_ONE + 2 * IMAGE_PAIR_PITCH
};
static_assert(FORWARD_TILES * FORWARD_TILE_WINDOWS <= TILED_WINDOWS, "the rows of pairs must suffice for both directions");
static_assert(RL_POOLED1_SIDE % 2 == 0, "the windows 2 i and 2 i + 1 must be in the same row");

typedef __half2 conv1_image[IMAGE_PAIRS];

/* A lane's sums over the windows of its warp, in the layout of an mma sum whose rows (M) are channels and whose columns (N) are
 * taps: tap[0] has taps 0 to 7, tap[1] has tap 8 and the bias. */
typedef struct conv1_tile_sums {
  float tap[2][4];
} conv1_tile_sums;

/* Fills the image with border pixels, and the rows after it with ones. All threads of the block call it, once. */
static __device__ __forceinline__ void clear_image(conv1_image image) {
#pragma unroll 1
  for (int i = threadIdx.x; i < IMAGE_PAIRS; i += blockDim.x) image[i] = __float2half2_rn(i < FIRST_ONE ? BORDER : 1.0f);
}

/* Stores the pixels of an image in the pairs. clear_image must have filled the border. All threads of the block call it. */
static __device__ __forceinline__ void store_image(const uint8_t *bytes, conv1_image image) {
  __half *halves = (__half *)image;
#pragma unroll 1
  for (int i = threadIdx.x; i < RL_IMAGE_PIXELS; i += blockDim.x) {
    const int pair = (i / RL_IMAGE_SIDE + 1) * IMAGE_PAIR_PITCH + i % RL_IMAGE_SIDE + 1;
    const __half pixel = (__half)(bytes[i] - PIXEL_MIDDLE);
    halves[pair * 2] = pixel;
    halves[pair * 2 - 1] = pixel; /* the second value of the pair to the left */
  }
}

/* Returns the pair at the upper left corner of a window. */
static __device__ __forceinline__ const __half2 *window_corner(const conv1_image image, int window) {
  return &image[window / RL_POOLED1_SIDE * 2 * IMAGE_PAIR_PITCH + window % RL_POOLED1_SIDE * 2];
}

/* A lane's fragments of the weights, which are operand B of the forward products, for four tiles of eight channels: the high and
 * the low FP16 values. K has four groups of four values: group y = 0, 1, 2 has the three taps in row y of the filter, and a zero;
 * group 3 has the bias, as a high and a low value, and two zeros. Group y has the k values 2 y, 2 y + 1, 2 y + 8 and 2 y + 9,
 * which the lanes y, y + 4, … hold. The weights are multiplied by PIXEL_SLOPE, and the bias includes PIXEL_INTERCEPT times the
 * sum of the weights, so that the products of byte − PIXEL_MIDDLE give the output of conv1. */
typedef struct conv1_fragments {
  uint32_t high[4][2], low[4][2];
} conv1_fragments;

/* Returns the lane's fragments. weights: [32][9], then 32 biases. */
static __device__ __forceinline__ conv1_fragments load_conv1_fragments(const float *weights) {
  const int lane = threadIdx.x % 32, group = lane % 4;
  conv1_fragments b;
#pragma unroll
  for (int tile = 0; tile < 4; tile++) {
    const int channel = tile * 8 + lane / 4;
    float taps[3];
    for (int x = 0; x < 3; x++) taps[x] = group < 3 ? weights[channel * 9 + group * 3 + x] : 0.0f;
    float sum = taps[0] + taps[1] + taps[2];
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    split_halves(taps[0] * PIXEL_SLOPE, taps[1] * PIXEL_SLOPE, &b.high[tile][0], &b.low[tile][0]);
    split_halves(taps[2] * PIXEL_SLOPE, 0.0f, &b.high[tile][1], &b.low[tile][1]);
    if (group < 3) continue;
    const float bias = weights[RL_CONV1_CHANNELS * 9 + channel] + PIXEL_INTERCEPT * sum, high = (float)(__half)bias;
    b.high[tile][0] = half2_bits(__floats2half2_rn(high, bias - high));
  }
  return b;
}

/* Computes pooled1[window][PITCH] and argmax1[window][PITCH] for all windows and 32 channels. WARPS warps call it; `warp` is the
 * caller's index among them. An mma computes eight windows × the two positions of a row (M) × eight channels (N). */
template <int WARPS, int PITCH> static __device__ __forceinline__ void conv1_tile_forward(int warp, const float *weights,
                                                                                          const conv1_image image,
                                                                                          __half *pooled1, uint16_t *argmax1) {
  const int lane = threadIdx.x % 32, group = lane % 4, channel = lane % 4 * 2;
  const conv1_fragments b = load_conv1_fragments(weights);
#pragma unroll 1
  for (int tile = warp; tile < FORWARD_TILES; tile += WARPS) {
    const int window = tile * FORWARD_TILE_WINDOWS + lane / 4;
    const __half2 *row = group < 3 ? window_corner(image, window) + group * IMAGE_PAIR_PITCH : &image[FIRST_ONE];
    float sum[2][4][4] = {}; /* [row of positions][tile of channels][element of the mma sum] */
#pragma unroll
    for (int y = 0; y < 2; y++) {
      const uint2 left = *(const uint2 *)&row[y * IMAGE_PAIR_PITCH], right = *(const uint2 *)&row[y * IMAGE_PAIR_PITCH + 2];
      const uint32_t a[4] = {left.x, left.y, right.x, right.y};
      for (int i = 0; i < 4; i++) mma_m16n8k16(sum[y][i], a, b.low[i]);
      for (int i = 0; i < 4; i++) mma_m16n8k16(sum[y][i], a, b.high[i]);
    }
    if (window >= CONV1_WINDOWS) continue;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      __half2 outputs[4], pooled;
      for (int position = 0; position < 4; position++) {
        const float *output = &sum[position / 2][i][position % 2 * 2];
        outputs[position] = __floats2half2_rn(output[0], output[1]);
      }
      uint32_t argmaxes;
      relu_pool_half2(outputs, &pooled, &argmaxes);
      *(__half2 *)&pooled1[window * PITCH + i * 8 + channel] = pooled;
      *(uint32_t *)&argmax1[window * PITCH + i * 8 + channel] = argmaxes;
    }
  }
}

/* Loads the pixels that one tap multiplies in two neighbouring windows. Sets values[x] to the pixels of both windows, for the
 * position in column x of a row of positions. first: the pair that contains the pixels for both positions of the first window. */
static __device__ __forceinline__ void load_tap(const __half2 *first, uint32_t values[2]) {
  const uint32_t window = half2_bits(first[0]), next_window = half2_bits(first[2]);
  values[0] = __byte_perm(window, next_window, 0x5410);
  values[1] = __byte_perm(window, next_window, 0x7632);
}

/* Adds the gradients of conv1's weights and biases to sums. pooled1_gradient and argmax1 have TILED_WINDOWS rows of PITCH values.
 * In the rows of windows that do not exist, pooled1_gradient must be zero, and argmax1 must be initialised. The even warps
 * compute channels 0 to 15, the odd warps channels 16 to 31. WARPS (even) warps call it; `warp` is the caller's index among them.
 *
 * An mma computes 16 channels (M) × eight taps (N) for 16 windows (K) and one position: the gradient of a window counts as zero
 * unless the position is its argmax. (Argmaxes are compared as FP16 values: small integers are equal exactly if the FP16 values
 * with the same bits are.) The mma for sums.tap[1] has tap 8 in column 0 of B, and ones in column 1 for the bias. */
template <int WARPS, int PITCH>
static __device__ __forceinline__ void conv1_tile_gradient(int warp, const __half *pooled1_gradient, const uint16_t *argmax1,
                                                           const conv1_image image, conv1_tile_sums &sums) {
  const int lane = threadIdx.x % 32, column = lane / 4, first_channel = warp % 2 * 16,
            fragment = (lane / 16 * 8 + lane % 8) * PITCH + first_channel + lane / 8 % 2 * 8;
  const uint32_t last_tap_mask = column == 0 ? ~0u : 0, ones = column == 1 ? 0x3c003c00u : 0; /* 0x3c00: 1.0 in FP16 */
#pragma unroll 1
  for (int tile = warp / 2; tile < GRADIENT_TILES; tile += WARPS / 2) {
    uint32_t gradient[4], argmax[4], b[2][2][2][2]; /* b: [row of the position][its column][index in sums.tap][half of K] */
    ldmatrix_x4_trans(gradient, shared_address(&pooled1_gradient[tile * GRADIENT_TILE_WINDOWS * PITCH + fragment]));
    ldmatrix_x4_trans(argmax, shared_address(&argmax1[tile * GRADIENT_TILE_WINDOWS * PITCH + fragment]));
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const __half2 *corner = window_corner(image, tile * GRADIENT_TILE_WINDOWS + half * 8 + lane % 4 * 2);
#pragma unroll
      for (int y = 0; y < 2; y++) {
        uint32_t tap[2], last_tap[2];
        load_tap(corner + (column / 3 + y) * IMAGE_PAIR_PITCH + column % 3, tap);
        load_tap(corner + (2 + y) * IMAGE_PAIR_PITCH + 2, last_tap);
        for (int x = 0; x < 2; x++) {
          b[y][x][0][half] = tap[x];
          b[y][x][1][half] = (last_tap[x] & last_tap_mask) | ones;
        }
      }
    }
#pragma unroll
    for (int position = 0; position < 4; position++) {
      uint32_t a[4];
      for (int i = 0; i < 4; i++)
        a[i] = gradient[i] & __heq2_mask(half2_from_bits(argmax[i]), half2_from_bits((uint32_t)position * 0x10001u));
      for (int n = 0; n < 2; n++) mma_m16n8k16(sums.tap[n], a, b[position / 2][position % 2][n]);
    }
  }
}

/* Calls epilogue(index, sum) for each of the lane's sums of the warp's channels. index: in the weights [32][9], followed by the
 * 32 biases. */
template <class Epilogue>
static __device__ __forceinline__ void conv1_tile_sums_epilogue(int warp, const conv1_tile_sums &sums, Epilogue epilogue) {
  const int lane = threadIdx.x % 32;
  for (int half = 0; half < 2; half++) {
    const int channel = warp % 2 * 16 + half * 8 + lane / 4;
    const float bias = __shfl_sync(0xffffffffu, sums.tap[1][half * 2 + 1], lane / 4 * 4);
    const auto of_normalised_pixels = [&](float sum) { return fmaf(PIXEL_SLOPE, sum, PIXEL_INTERCEPT * bias); };
    for (int c = 0; c < 2; c++) epilogue(channel * 9 + lane % 4 * 2 + c, of_normalised_pixels(sums.tap[0][half * 2 + c]));
    if (lane % 4 != 0) continue;
    epilogue(channel * 9 + 8, of_normalised_pixels(sums.tap[1][half * 2]));
    epilogue(RL_CONV1_CHANNELS * 9 + channel, bias);
  }
}

#endif
