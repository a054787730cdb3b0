/* conv1 of one image on tensor cores, for the engine "persistent" in FP16 and TF32: the forward pass with bias, ReLU and pooling,
 * and the gradients of conv1's parameters. mma.cuh explains mma, mma.sp and their fragments; M, N and K are rows of A,
 * columns of B, and depth.
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
#include "train/cuda/tensor_float.cuh"

enum {
  CONV1_WINDOWS = RL_POOLED1_SIDE * RL_POOLED1_SIDE,
  FORWARD_TILE_WINDOWS = 8,  /* windows of a tile in conv1_tile_forward */
  GRADIENT_TILE_WINDOWS = 8, /* windows of a tile in conv1_tile_gradient; K of an mma.sp is their four positions each */
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

/* A lane's sums over the windows of its warp, in the layout of mma sums whose rows (M) are channels and whose columns (N) are
 * taps: [half of the channels][0] has taps 0 to 7, [1] has tap 8 and the bias. */
typedef struct conv1_tile_sums {
  float tap[2][2][4];
} conv1_tile_sums;

/* In conv1_tile_forward, argmax1 holds the argmax as a code: the selector with which __byte_perm arranges the gradient of a
 * window, the two lower bytes of its first operand, as the FP16 group of an mma.sp whose first value is at position 0, 1 or 2
 * (bits 8 and 9 of the code) and whose second value is at position 3. Bytes 4 to 7, of its second operand, are zero. */
struct argmax_group_code {
  static __device__ __forceinline__ constexpr uint32_t of(uint32_t argmax) {
    return argmax < 3 ? 0x4410 + argmax * 0x100 : argmax == 3 ? 0x1044 : 0x4444;
  }
  static __device__ __forceinline__ constexpr uint32_t argmax(uint32_t code) {
    return code == of(RL_ARGMAX_RELU_ZERO) ? (uint32_t)RL_ARGMAX_RELU_ZERO : code == of(3) ? 3 : code >> 8 & 3;
  }
};

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

/* Computes pooled1[window][PITCH] and argmax1[window][PITCH] (argmax_group_code) for all windows and 32 channels. WARPS warps
 * call it; `warp` is the caller's index among them. An mma computes eight windows × the two positions of a row (M) × eight
 * channels (N). */
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
      relu_pool_half2<argmax_group_code>(outputs, &pooled, &argmaxes);
      *(__half2 *)&pooled1[window * PITCH + i * 8 + channel] = pooled;
      *(uint32_t *)&argmax1[window * PITCH + i * 8 + channel] = argmaxes;
    }
  }
}

/* The pixels that one lane's fragment of B needs: those of tap lane / 4, and those of tap 8. In the second product, column 0 is
 * tap 8, column 1 has ones, for the bias, and the other columns are not used. */
static __device__ __forceinline__ uint32_t last_tap_or_one(uint32_t pixels, uint32_t one) {
  return threadIdx.x % 32 / 4 == 1 ? one : pixels;
}

/* Adds the gradients of conv1's weights and biases to sums. pooled1_gradient and argmax1 (argmax_group_code) have TILED_WINDOWS
 * rows of PITCH values. In the rows of windows that do not exist, pooled1_gradient must be zero, and argmax1 must be initialised.
 * WARPS warps call it; `warp` is the caller's index among them.
 *
 * An mma.sp computes 16 channels (M) × eight taps, or tap 8 and the bias (N), for the four positions of eight windows (K). A has
 * the gradient of a window at its argmax, so a group of A is a window: group i is window 2 i of the tile, group i + 4 is window
 * 2 i + 1. */
template <int WARPS, int PITCH>
static __device__ __forceinline__ void conv1_tile_gradient(int warp, const __half *pooled1_gradient, const uint16_t *argmax1,
                                                           const conv1_image image, conv1_tile_sums &sums) {
  const int lane = threadIdx.x % 32, tap = lane / 4, k = lane % 4, fragment = lane % 8 * PITCH + lane / 8 * 8;
  const uint32_t own_half = k % 2 ? 0x7632 : 0x5410; /* selects the indices of the odd windows, or of the even windows */
#pragma unroll 1
  for (int tile = warp; tile < GRADIENT_TILES; tile += WARPS) {
    uint32_t gradient[4], code[4], b[2][4]; /* gradient, code: of the channel lane / 4 + 8 i, windows 2 k and 2 k + 1 */
    ldmatrix_x4_trans(gradient, shared_address(&pooled1_gradient[tile * GRADIENT_TILE_WINDOWS * PITCH + fragment]));
    ldmatrix_x4_trans(code, shared_address(&argmax1[tile * GRADIENT_TILE_WINDOWS * PITCH + fragment]));
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const __half2 *row = window_corner(image, tile * GRADIENT_TILE_WINDOWS + i * 4 + k / 2 * 2) + k % 2 * IMAGE_PAIR_PITCH;
      for (int odd = 0; odd < 2; odd++) {
        b[0][odd * 2 + i] = half2_bits(row[tap / 3 * IMAGE_PAIR_PITCH + tap % 3 + odd * 2]);
        b[1][odd * 2 + i] = last_tap_or_one(half2_bits(row[2 * IMAGE_PAIR_PITCH + 2 + odd * 2]), 0x3c003c00u);
      }
    }
    /* Collects the indices of a row's first values: of the even windows in lane 4 i, of the odd ones in lane 4 i + 1. Those of
     * the second M are two bits higher. */
    uint32_t indices[2]; /* of this lane's windows: even in the lower half, odd in the upper half */
    for (int half = 0; half < 2; half++) indices[half] = (code[half] >> 8 & 0x00030003u) | (code[half + 2] >> 6 & 0x000c000cu);
    const uint32_t own = __byte_perm(indices[0], indices[1], own_half),
                   sent = __byte_perm(indices[0], indices[1], own_half ^ 0x2222),
                   two = own << k * 4 | __shfl_xor_sync(0xffffffffu, sent, 1) << (k ^ 1) * 4,
                   four = two | __shfl_xor_sync(0xffffffffu, two, 2);
#pragma unroll
    for (int m = 0; m < 2; m++) {
      uint32_t a[4];
      for (int i = 0; i < 4; i++) a[i] = __byte_perm(gradient[m * 2 + i % 2] >> i / 2 * 16, 0, code[m * 2 + i % 2] >> i / 2 * 16);
      for (int n = 0; n < 2; n++) mma_sparse_m16n8k32(sums.tap[m][n], a, b[n], four >> m * 2 | 0xccccccccu);
    }
  }
}

/* TF32. The image is stored as floats in rows of FLOAT_IMAGE_PITCH, with the values byte − PIXEL_MIDDLE, which TF32 represents
 * exactly. An argmax is stored in the lowest bits of pooled1, which the products ignore: a bit for each position, the highest one
 * for the first position. */
enum {
  FLOAT_IMAGE_PITCH = 44, /* as it is 12 modulo 32 banks, the loads of four windows × eight taps are free of bank conflicts */
  EXACT_IMAGE_ROWS = CONV1_WIDTH,
  ARGMAX_BITS = 0xf
};
struct argmax_bit {
  static __device__ __forceinline__ constexpr uint32_t of(uint32_t argmax) {
    return argmax == RL_ARGMAX_RELU_ZERO ? 0 : 8u >> argmax;
  }
  static __device__ __forceinline__ uint32_t argmax(uint32_t bit) {
    return bit == 0 ? (uint32_t)RL_ARGMAX_RELU_ZERO : __clz(bit) - 28;
  }
};

/* Fills the image with border pixels. All threads of the block call it, once. */
static __device__ __forceinline__ void clear_float_image(float *image) {
#pragma unroll 1
  for (int i = threadIdx.x; i < EXACT_IMAGE_ROWS * FLOAT_IMAGE_PITCH; i += blockDim.x) image[i] = tensor_float(BORDER);
}

/* Stores the pixels of an image. clear_float_image must have filled the border. All threads of the block call it. */
static __device__ __forceinline__ void store_float_image(const uint8_t *bytes, float *image) {
#pragma unroll 1
  for (int i = threadIdx.x; i < RL_IMAGE_PIXELS; i += blockDim.x)
    image[(i / RL_IMAGE_SIDE + 1) * FLOAT_IMAGE_PITCH + i % RL_IMAGE_SIDE + 1] = bytes[i] - PIXEL_MIDDLE;
}

/* Products of the forward pass have FP16 operands, which represent the pixels exactly and a weight as the sum of a high and a low
 * value. The products are multiplied by FORWARD_SCALE, a power of two, because low values below 2⁻¹⁴ are subnormal: with it, the
 * error of a weight is at most 4e-8, or 2⁻²³ of the weight if that is more. */
static const float FORWARD_SCALE = 64.0f;

/* A lane's fragments of the weights, which are operand B of the forward products, for two tiles of eight channels, and the biases
 * of its results. K has four groups of four values, as in conv1_fragments: group y = 0, 1, 2 has the three taps in row y, and,
 * for a pixel of 1, their sum times PIXEL_INTERCEPT; group 3 has zeros. A half of the channels is first_channel_of_group(half, i)
 * and the next three channels, for i = 0 to 3: channels 2 i and 2 i + 1 of the first tile, and then of the second. */
typedef struct conv1_two_tile_fragments {
  uint32_t high[2][2], low[2][2];
  float biases[2][4]; /* as the elements of the mma sums */
} conv1_two_tile_fragments;
static __device__ __forceinline__ int first_channel_of_group(int half, int i) { return i * 8 + half * 4; }

/* Returns the lane's fragments for a half of the channels. weights: [32][9], then 32 biases. */
static __device__ __forceinline__ conv1_two_tile_fragments load_conv1_two_tile_fragments(int half, const float *weights) {
  const int lane = threadIdx.x % 32, group = lane % 4, channel = first_channel_of_group(half, lane / 8) + lane / 4 % 2;
  const float *from = &weights[channel * 9 + (group < 3 ? group : 0) * 3];
  const float scale = group < 3 ? PIXEL_SLOPE * FORWARD_SCALE : 0.0f;
  const float4 loaded = load4(&weights[RL_CONV1_CHANNELS * 9 + first_channel_of_group(half, group)]);
  const float biases[4] = {loaded.x, loaded.y, loaded.z, loaded.w};
  conv1_two_tile_fragments b;
#pragma unroll
  for (int tile = 0; tile < 2; tile++) {
    float taps[3];
    for (int x = 0; x < 3; x++) taps[x] = from[tile * 2 * 9 + x] * scale;
    split_halves(taps[0], taps[1], &b.high[tile][0], &b.low[tile][0]);
    split_halves(taps[2], (taps[0] + taps[1] + taps[2]) * (PIXEL_INTERCEPT / PIXEL_SLOPE), &b.high[tile][1], &b.low[tile][1]);
    for (int i = 0; i < 4; i++) b.biases[tile][i] = biases[tile * 2 + i % 2] * FORWARD_SCALE;
  }
  return b;
}

/* Returns (a & b) | c by one instruction. With two constants, the compiler would take two. */
static __device__ __forceinline__ uint32_t and_or(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}

/* Computes ReLU and max-pooling of one window in TF32. upper, lower: its outputs times FORWARD_SCALE; those in a row are two
 * elements apart. Returns the bits of the pooled value, rounded to nearest, with those of its argmax. It compares the outputs as
 * integers whose lowest bits are those of the position, so values that differ by less than 2⁻¹⁹ may count as equal; positive
 * floats have the order of their bits. An output of zero has only the bits of its position, and the division by FORWARD_SCALE
 * rounds these to zero, so that it has no argmax. Half of the lowest bit that products read, added to the bits, rounds the value
 * and keeps those of the argmax. */
static __device__ __forceinline__ uint32_t relu_pool_with_argmax(const float *upper, const float *lower) {
  const auto with_position = [](float v, int position) {
    return (int)and_or(__float_as_uint(v), ~(uint32_t)ARGMAX_BITS, argmax_bit::of(position));
  };
  const int a = with_position(upper[0], 0), b = with_position(upper[2], 1), c = with_position(lower[0], 2),
            d = with_position(lower[2], 3), greatest = max(max(max(a, b), max(c, d)), 0);
  return __float_as_uint(__int_as_float(greatest) * (1.0f / FORWARD_SCALE)) + (TENSOR_FLOAT_IGNORED_BITS + 1) / 2;
}

/* Computes a half of the channels of pooled1 for all windows, with the bits of the argmaxes, and calls store(index, bits) for
 * four neighbouring values of pooled1[window][PITCH]. WARPS warps call it; `warp` is the caller's index among them. An mma
 * computes eight windows × the two positions of a row (M) × eight channels (N). */
template <int WARPS, int PITCH, class Store>
static __device__ __forceinline__ void conv1_tile_forward(int warp, int half, const float *weights, const float *image,
                                                          Store store) {
  const int lane = threadIdx.x % 32, group = lane % 4;
  const conv1_two_tile_fragments b = load_conv1_two_tile_fragments(half, weights);
  const float *first_row = image + (group < 3 ? group : 0) * FLOAT_IMAGE_PITCH;
#pragma unroll 1
  for (int tile = warp; tile < FORWARD_TILES; tile += WARPS) {
    const int window = tile * FORWARD_TILE_WINDOWS + lane / 4, existing = min(window, CONV1_WINDOWS - 1);
    const float *row = first_row + existing / RL_POOLED1_SIDE * 2 * FLOAT_IMAGE_PITCH + existing % RL_POOLED1_SIDE * 2;
    float sum[2][2][4]; /* [row of positions][tile of channels][element of the mma sum] */
#pragma unroll
    for (int y = 0; y < 2; y++) {
      const float2 left = *(const float2 *)&row[y * FLOAT_IMAGE_PITCH], right = *(const float2 *)&row[y * FLOAT_IMAGE_PITCH + 2];
      const uint32_t a[4] = {half2_bits(__floats2half2_rn(left.x, left.y)), half2_bits(__floats2half2_rn(left.y, right.x)),
                             half2_bits(__floats2half2_rn(right.x, 1.0f)), half2_bits(__floats2half2_rn(right.y, 1.0f))};
      for (int i = 0; i < 2; i++) mma_m16n8k16(sum[y][i], a, b.low[i], b.biases[i]);
      for (int i = 0; i < 2; i++) mma_m16n8k16(sum[y][i], a, b.high[i]);
    }
    uint32_t pooled[4];
    for (int i = 0; i < 4; i++) pooled[i] = relu_pool_with_argmax(&sum[0][i / 2][i % 2], &sum[1][i / 2][i % 2]);
    if (window < CONV1_WINDOWS)
      store(window * PITCH + first_channel_of_group(half, group), make_uint4(pooled[0], pooled[1], pooled[2], pooled[3]));
  }
}

/* Returns a if a bit is set in x, else 0, by two instructions. If the compiler knew that it is a single bit, it would shift it to
 * the sign, shift it back and mask, which takes three. */
static __device__ __forceinline__ uint32_t select_if(uint32_t x, uint32_t bit, uint32_t a) {
  uint32_t is_set = x & bit;
  asm volatile("" : "+r"(is_set));
  return is_set ? a : 0;
}

/* Does in TF32 what the other conv1_tile_gradient does in FP16. A row of pooled1 and pooled1_gradient has PITCH values. An mma
 * computes 16 channels (M) × eight taps, or tap 8 and the bias (N), for the two positions of a row of four windows (K): lane 4 i
 * + w has window w. Rows i and i + 8 of the first M, and then of the second, are the four channels from first_channel_of_row(i)
 * on. The order of the channels keeps the 16-byte loads of eight neighbouring lanes, from two rows, free of bank conflicts. */
static __device__ __forceinline__ int first_channel_of_row(int i) { return i % 2 * 16 + i / 2 * 4; }

template <int WARPS, int PITCH>
static __device__ __forceinline__ void conv1_tile_gradient(int warp, const tensor_float *pooled1_gradient,
                                                           const tensor_float *pooled1, const float *image,
                                                           conv1_tile_sums &sums) {
  const int lane = threadIdx.x % 32;
  int tap_offset = lane / 4 / 3 * FLOAT_IMAGE_PITCH + lane / 4 % 3;
  asm volatile("" : "+r"(tap_offset)); /* otherwise the compiler computes it again for each window */
#pragma unroll 2
  for (int window = warp * 4 + lane % 4; window < CONV1_WINDOWS; window += WARPS * 4) {
    const int from = window * PITCH + first_channel_of_row(lane / 4);
    const uint4 gradients = *(const uint4 *)&pooled1_gradient[from], pooled = *(const uint4 *)&pooled1[from];
    const uint32_t gradient[4] = {gradients.x, gradients.y, gradients.z, gradients.w},
                   argmax[4] = {pooled.x, pooled.y, pooled.z, pooled.w};
    const float *corner = &image[window / RL_POOLED1_SIDE * 2 * FLOAT_IMAGE_PITCH + window % RL_POOLED1_SIDE * 2];
#pragma unroll
    for (int y = 0; y < 2; y++) {
      uint32_t b[2][2];
      for (int x = 0; x < 2; x++) {
        b[0][x] = __float_as_uint(corner[tap_offset + y * FLOAT_IMAGE_PITCH + x]);
        b[1][x] = last_tap_or_one(__float_as_uint(corner[(y + 2) * FLOAT_IMAGE_PITCH + x + 2]), 0x3f800000u);
      }
#pragma unroll
      for (int m = 0; m < 2; m++) {
        uint32_t a[4];
#pragma unroll
        for (int i = 0; i < 4; i++) a[i] = select_if(argmax[m * 2 + i % 2], 8u >> (y * 2 + i / 2), gradient[m * 2 + i % 2]);
        for (int n = 0; n < 2; n++) mma_m16n8k8_tf32(sums.tap[m][n], a, b[n]);
      }
    }
  }
}

/* Calls epilogue(index, sum) for each of the lane's sums. index: in the weights [32][9], followed by the 32 biases. channel_of(m,
 * half): the channel of the lane's row in the first or second eight rows of an M. */
template <class ChannelOf, class Epilogue>
static __device__ __forceinline__ void conv1_tile_sums_epilogue(const conv1_tile_sums &sums, ChannelOf channel_of,
                                                                Epilogue epilogue) {
  const int lane = threadIdx.x % 32;
  for (int m = 0; m < 2; m++)
    for (int half = 0; half < 2; half++) {
      const int channel = channel_of(m, half);
      const float *taps = &sums.tap[m][0][half * 2], *last = &sums.tap[m][1][half * 2];
      const float bias = __shfl_sync(0xffffffffu, last[1], lane / 4 * 4);
      const auto of_normalised_pixels = [&](float sum) { return fmaf(PIXEL_SLOPE, sum, PIXEL_INTERCEPT * bias); };
      for (int c = 0; c < 2; c++) epilogue(channel * 9 + lane % 4 * 2 + c, of_normalised_pixels(taps[c]));
      if (lane % 4 != 0) continue;
      epilogue(channel * 9 + 8, of_normalised_pixels(last[0]));
      epilogue(RL_CONV1_CHANNELS * 9 + channel, bias);
    }
}

#endif
