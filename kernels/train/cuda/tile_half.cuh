/* The format FP16 of the products in tile.cuh: mma.sync m16n8k16 instructions on tensor cores, D[16×8] += A[16×16] · B[16×8].
 * tile.cuh documents the functions of a format. M, N and K are the sizes of an mma: rows of A, columns of B, depth. A fragment is
 * the part of an operand that one lane holds; ldmatrix loads it from shared memory.
 *
 * Bank conflicts: the pitch of a pixel is an odd number of 16-byte vectors and an image row has 14 pixels. So the eight addresses
 * that ldmatrix reads in one phase are in different banks. The eight pixels of a phase are
 *
 *   conv2_forward          the upper, or the lower, pixels of four adjacent 2×2 windows
 *   conv2_weight_gradient  four adjacent rows × two columns that are three apart
 *   conv2_input_gradient   four rows that are three apart × two columns that are three apart
 *
 * Reuse of fragments in conv2's gradients: a fragment holds 16 pixels, four rows × the columns c, c + 3, c + 6, c + 9 (below:
 * pixels at c). It is an operand of the products for all three taps t = 0, 1, 2 in a row of the filter:
 *
 *   conv2_weight_gradient  gradient of tap t += out_gradient at c × input at c + t
 *   conv2_input_gradient   gradient of the input at c + t += out_gradient at c × weights of tap t */
#ifndef RL_TRAIN_CUDA_TILE_HALF_H
#define RL_TRAIN_CUDA_TILE_HALF_H

#include "train/cuda/mma.cuh"
#include "train/cuda/tile.cuh"

struct half_tile_format : tile_format<__half> {
  enum {
    VECTOR = 8, /* FP16 values in 16 bytes */
    IN_PITCH = RL_CONV1_CHANNELS + VECTOR,
    WEIGHT_PITCH = CONV2_K + VECTOR,    /* of the weights: [TILE_CHANNELS][WEIGHT_PITCH] */
    OUT_PITCH = TILE_CHANNELS + VECTOR, /* of a pixel of out_gradient */
    LOADED_WEIGHT_PITCH = WEIGHT_PITCH,
    WEIGHT_VALUES = TILE_CHANNELS * WEIGHT_PITCH,
    OUT_ROW_PITCH = RL_POOLED1_SIDE * OUT_PITCH, /* of a row of out_gradient: 12 pixels and two that are not used */
    OUT_GRADIENT_VALUES = RL_CONV2_SIDE * OUT_ROW_PITCH,
    CONV2_FORWARD_SCRATCH_FLOATS = 0,
    CONV2_WARP_SCRATCH_FLOATS = 0,
    /* A window tile is four adjacent 2×2 pooling windows, whose 16 pixels are the rows (M) of an mma. */
    WINDOW_TILES = RL_CONV2_SIDE * RL_CONV2_SIDE / 16,
    CONV2_FORWARD_WARPS = WINDOW_TILES,
    CONV1_IS_SPLIT = 0,
    CONV1_GRADIENT_IS_SPLIT = 0,
    HAS_FP32_MASTER_WEIGHTS = 1,
    SLICE_PADDING = VECTOR,
    FC1_PRODUCT_GRADIENT_PITCH = RL_FC1_OUTPUTS + VECTOR,
    FC1_PRODUCT_GRADIENT_TILE_PITCH = TILE_ROWS + VECTOR,
    FC1_INPUT_TILE_PITCH = TILE_COLUMNS + VECTOR,
    TAPS_PER_ROW = 3,
    TAP_ROW_STEPS = TAPS_PER_ROW * RL_CONV1_CHANNELS / 16 /* mma instructions along the depth of a row of taps */
  };

  typedef __half row_value;
  typedef register_sums<TILE_CHANNELS * CONV2_K / THREADS> weight_sums;

  static __device__ __forceinline__ int out_gradient_offset(int y, int x) { return y * OUT_ROW_PITCH + x * OUT_PITCH; }

  static __device__ __forceinline__ float2 pool_channels(const float a[4], const float b[4], const float *biases,
                                                         uint8_t *argmaxes, bool *overflow) {
    const float2 bias = *(const float2 *)biases;
    __half2 outputs[4], greatest, not_finite = __float2half2_rn(0.0f); /* a sum of x - x, which is 0 if x is finite, else NaN */
    for (int i = 0; i < 4; i++) {
      outputs[i] = __floats2half2_rn(a[i] + bias.x, b[i] + bias.y);
      not_finite = __hadd2(not_finite, __hsub2(outputs[i], outputs[i]));
    }
    *overflow |= (half2_bits(not_finite) & 0x7fff7fff) != 0;
    uint32_t wide_argmaxes;
    relu_pool_half2(outputs, &greatest, &wide_argmaxes);
    *(uchar2 *)argmaxes = make_uchar2((uint8_t)wide_argmaxes, (uint8_t)(wide_argmaxes >> 16));
    return __half22float2(greatest);
  }

  static __device__ __forceinline__ void unpool(int pixel, int channel, uchar4 argmax, float4 gradient, value *out_gradient) {
    for (int position = 0; position < 4; position++)
      store4(&out_gradient[out_gradient_offset(pixel / RL_POOLED2_SIDE * 2 + position / 2,
                                               pixel % RL_POOLED2_SIDE * 2 + position % 2) +
                           channel],
             make_float4(argmax.x == position ? gradient.x : 0, argmax.y == position ? gradient.y : 0,
                         argmax.z == position ? gradient.z : 0, argmax.w == position ? gradient.w : 0));
  }

  /* Return the coordinates of the pixel in row i (0 to 15) of A in conv2_forward. The pixel is in window 4 · tile + i % 4; it is
   * an upper pixel if i < 8, and a left pixel if i % 8 < 4. */
  static __device__ __forceinline__ int fragment_pixel_y(int tile, int i) {
    return (tile * 4 + i % 4) / RL_POOLED2_SIDE * 2 + i / 8;
  }
  static __device__ __forceinline__ int fragment_pixel_x(int tile, int i) {
    return (tile * 4 + i % 4) % RL_POOLED2_SIDE * 2 + i / 4 % 2;
  }

  /* A warp computes a window tile (M) × 32 output channels; sum[c] holds eight of the channels (N). The loop over rows of taps is
   * not unrolled: it runs once for each microbatch, and more instructions would cause instruction cache misses. */
  template <class WaitForWeights, class Epilogue>
  static __device__ __forceinline__ void conv2_forward(const value *in, const value *weights, float *,
                                                       WaitForWeights wait_for_weights, Epilogue epilogue) {
    wait_for_weights();
    if (warp() >= CONV2_FORWARD_WARPS) return;
    const int row = lane() % 16;
    const uint32_t a_address = shared_address(
                       &in[(fragment_pixel_y(warp(), row) * RL_POOLED1_SIDE + fragment_pixel_x(warp(), row)) * IN_PITCH +
                           lane() / 16 * VECTOR]),
                   b_address = shared_address(&weights[(lane() / 16 * 8 + lane() % 8) * WEIGHT_PITCH + lane() / 8 % 2 * VECTOR]);
    float sum[4][4] = {};
#pragma unroll 1
    for (int tap_y = 0; tap_y < 3; tap_y++)
#pragma unroll
      for (int k = 0; k < TAP_ROW_STEPS; k++) {
        uint32_t a[4], b[2][4];
        ldmatrix_x4(a, a_address + ((tap_y * RL_POOLED1_SIDE + k / 2) * IN_PITCH + k % 2 * 16) * 2);
        for (int i = 0; i < 2; i++) ldmatrix_x4(b[i], b_address + (i * 16 * WEIGHT_PITCH + (tap_y * TAP_ROW_STEPS + k) * 16) * 2);
        for (int i = 0; i < 4; i++) mma_m16n8k16(sum[i], a, &b[i / 2][i % 2 * 2]);
      }
    /* Lanes 0 to 15 hold the left pixels of the four windows, lanes 16 to 31 the right pixels, each for 32 channels. The two
     * halves of the warp exchange half of the channels, so that each lane has the left and the right pixels of 16 channels. */
    const bool right = lane() >= 16;
    for (int i = 0; i < 2; i++) {
      float received[4];
      for (int c = 0; c < 4; c++) received[c] = __shfl_xor_sync(0xffffffffu, right ? sum[i][c] : sum[i + 2][c], 16);
      float windows[2][4]; /* [channel][pixel, row-major] */
      for (int c = 0; c < 2; c++)
        for (int lower = 0; lower < 2; lower++) {
          const float kept = right ? sum[i + 2][lower * 2 + c] : sum[i][lower * 2 + c];
          windows[c][lower * 2] = right ? received[lower * 2 + c] : kept;
          windows[c][lower * 2 + 1] = right ? kept : received[lower * 2 + c];
        }
      epilogue(warp() * 4 + lane() / 4 % 4, (right * 2 + i) * 8 + lane() % 4 * 2, windows[0], windows[1]);
    }
  }

  /* conv2_weight_gradient computes out_gradientᵀ · in: M is output channels, N is columns of the weights, K is pixels. The
   * weights are a matrix of 32 output channels × 288 columns (9 taps × 32 input channels). A warp computes 16 output channels,
   * beginning with first_channel(), × 48 columns: for each of the three taps in a row of the filter, the 16 columns of column
   * tile weight_column_tile(tap). The 16 pixels (K) of an mma are four adjacent rows × every third column. */
  static __device__ __forceinline__ int first_channel() { return warp() / 6 * 16; }
  static __device__ __forceinline__ int weight_column_tile(int tap) {
    return (warp() % 3 * TAPS_PER_ROW + tap) * 2 + warp() / 3 % 2;
  }

  static __device__ __forceinline__ weight_sums init_weight_sums(row_value *) { return {}; }

  static __device__ __forceinline__ void conv2_weight_gradient(const value *in, const value *out_gradient, weight_sums &sums) {
    /* Indices of the pixels whose addresses this lane passes to ldmatrix, for A and for B. */
    const int a_pixel = lane() / 16 * 8 + lane() % 8, b_pixel = lane() % 16;
    const uint32_t a_address = shared_address(&out_gradient[out_gradient_offset(a_pixel % 4, a_pixel / 4 * 3) + first_channel() +
                                                            lane() / 8 % 2 * VECTOR]),
                   b_address = shared_address(&in[((warp() % 3 + b_pixel % 4) * RL_POOLED1_SIDE + b_pixel / 4 * 3) * IN_PITCH +
                                                  warp() / 3 % 2 * 16 + lane() / 16 * VECTOR]);
#pragma unroll 1
    for (int top = 0; top < RL_CONV2_SIDE; top += 4) {
      uint32_t b[3][4]; /* ring of fragments of the input: the pixels at column x are in b[x % 3] */
#pragma unroll
      for (int x = 0; x < 3 + 2; x++) {
        ldmatrix_x4_trans(b[x % 3], b_address + (top * RL_POOLED1_SIDE + x) * IN_PITCH * 2);
        if (x < 2) continue;
        uint32_t a[4]; /* the pixels of out_gradient at column x - 2 */
        ldmatrix_x4_trans(a, a_address + out_gradient_offset(top, x - 2) * 2);
        for (int tap = 0; tap < TAPS_PER_ROW; tap++)
          for (int c = 0; c < 2; c++) mma_m16n8k16(&sums.values[(tap * 2 + c) * 4], a, &b[(x - 2 + tap) % 3][c * 2]);
      }
    }
  }

  /* Stores the sums of a tap. First, adjacent lanes exchange pairs of columns, so that each lane stores four adjacent columns (8
   * bytes) of a tile of 16 columns: even lanes in the first half of the tile, odd lanes in the second half. */
  static __device__ __forceinline__ bool store_weight_gradient(const weight_sums &sums, int tap, row_value *row) {
    const bool odd = lane() % 2;
    half2_check check;
    for (int row_half = 0; row_half < 2; row_half++) {
      const float *first = &sums.values[tap * 8 + row_half * 2],
                  *second = first + 4; /* the sums in the first and in the second half of the column tile */
      const __half2 a = __floats2half2_rn(first[0], first[1]), b = __floats2half2_rn(second[0], second[1]);
      check.add(b);
      check.add(a);
      *(uint2 *)&row[(first_channel() + row_half * 8 + lane() / 4) * CONV2_K + weight_column_tile(tap) * 16 + odd * 8 +
                     lane() / 2 % 2 * 4] = exchange_pairs(a, b, 1);
    }
    return check.all_finite();
  }

  enum { COLUMNS_BETWEEN_LANES = 1, COLUMNS_BETWEEN_FRAGMENT_HALVES = 2 }; /* tile.cuh */

  template <class Between, class Epilogue>
  static __device__ __forceinline__ void conv2_input_gradient(const value *weights, const value *out_gradient, Between between,
                                                              Epilogue epilogue) {
    tile_input_gradient<half_tile_format>(weights, out_gradient, between, epilogue);
  }

  static __device__ __forceinline__ void accumulate_tap_row(const value *weights, const value *out_gradient, int row_set,
                                                            int tap_row, int channel, tile_accumulators sum) {
    const int matrix_row = lane() % 8, matrix = lane() / 8;
    const uint32_t a_address = shared_address(&out_gradient[out_gradient_offset(row_set + matrix_row % 4 * SET_STRIDE,
                                                                                (matrix_row / 4 * COLUMNS_BETWEEN_LANES +
                                                                                 matrix % 2 * COLUMNS_BETWEEN_FRAGMENT_HALVES) *
                                                                                    SET_STRIDE) +
                                                            matrix / 2 * VECTOR]),
                   b_address = shared_address(&weights[lane() * WEIGHT_PITCH + tap_row * 3 * RL_CONV1_CHANNELS + channel]);
    uint32_t b[3][4]; /* weights of the three taps in the row, for all 32 output channels (K) */
    for (int tap_x = 0; tap_x < 3; tap_x++) ldmatrix_x4_trans(b[tap_x], b_address + tap_x * RL_CONV1_CHANNELS * 2);
    for (int column_set = 0; column_set < SET_STRIDE; column_set++)
      for (int k = 0; k < 2; k++) {
        uint32_t a[4];
        ldmatrix_x4(a, a_address + (out_gradient_offset(0, column_set) + k * 16) * 2);
        for (int tap_x = 0; tap_x < 3; tap_x++) mma_m16n8k16(sum[column_set + tap_x], a, &b[tap_x][k * 2]);
      }
  }

  /* fc1's products have M = 8, one row for each image. Two steps of the depth share an operand A with 16 rows: rows 0 … 7 are the
   * images at the depths of the even step, rows 8 … 15 are the images at the depths of the odd step. The mma of a step computes
   * the product in its half of the rows; the results in the other half are not used. So no register of A is copied.
   *
   * image_address returns the address that the lane passes to ldmatrix_x4 for A of steps 0 and 1. in: [8 images][pitch].
   * multiply_images computes the products of a warp's 16 columns (two N of 8). */
  static __device__ __forceinline__ uint32_t image_address(const value *in, int pitch) {
    const int matrix = lane() / 8; /* depths 0 … 7 of the even and of the odd step, then depths 8 … 15 */
    return shared_address(&in[lane() % 8 * pitch + matrix % 2 * 16 + matrix / 2 * VECTOR]);
  }
  template <int STEPS, class Epilogue>
  static __device__ __forceinline__ void multiply_images(const uint32_t (*a)[4], const uint32_t (*b)[4], Epilogue epilogue) {
    float sum[2][2][4] = {}; /* [even and odd steps][N] */
#pragma unroll
    for (int k = 0; k < STEPS; k++)
      for (int c = 0; c < 2; c++) mma_m16n8k16(sum[k % 2][c], a[k / 2], &b[k][c * 2]);
    for (int c = 0; c < 2; c++)
      epilogue(lane() / 4, warp() * 16 + c * 8 + lane() % 4 * 2, sum[0][c][0] + sum[1][c][2], sum[0][c][1] + sum[1][c][3]);
  }

  /* A warp computes 16 outputs of fc1 (two N of 8) for all images (M). */
  template <int SLICE_INPUTS, class WaitForInput, class Epilogue>
  static __device__ __forceinline__ void fc1_forward(const value *in, const value *weights, WaitForInput wait_for_input,
                                                     Epilogue epilogue) {
    enum { PITCH = SLICE_INPUTS + SLICE_PADDING, STEPS = SLICE_INPUTS / 16 };
    wait_for_input();
    if (warp() >= RL_FC1_OUTPUTS / 16) return;
    const uint32_t a_address = image_address(in, PITCH),
                   b_address =
                       shared_address(&weights[(warp() * 16 + lane() / 16 * 8 + lane() % 8) * PITCH + lane() / 8 % 2 * VECTOR]);
    uint32_t a[(STEPS + 1) / 2][4], b[STEPS][4]; /* all loads are issued before the first mma, to hide their latency */
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
      if (k % 2 == 0) ldmatrix_x4(a[k / 2], a_address + k * 16 * 2);
      ldmatrix_x4(b[k], b_address + k * 16 * 2);
    }
    multiply_images<STEPS>(a, b, epilogue);
  }

  /* A warp computes a group of 16 inputs (two N of 8) for all images (M); K is outputs. The weights are loaded before the wait. A
   * warp without a group loads the last group, so that all warps wait at the same place and the registers do not depend on a
   * branch, which would cause spills. */
  template <int SLICE_INPUTS, class WaitForGradient, class Epilogue>
  static __device__ __forceinline__ void fc1_backward(const value *fc1_product_gradient, const value *weights,
                                                      WaitForGradient wait_for_gradient, Epilogue epilogue) {
    enum { PITCH = SLICE_INPUTS + SLICE_PADDING, STEPS = RL_FC1_OUTPUTS / 16 };
    static_assert(SLICE_INPUTS / 16 <= TILE_WARPS, "all inputs must have a warp");
    const int group = min(warp(), SLICE_INPUTS / 16 - 1);
    const uint32_t a_address = image_address(fc1_product_gradient, FC1_PRODUCT_GRADIENT_PITCH),
                   b_address = shared_address(&weights[lane() % 16 * PITCH + group * 16 + lane() / 16 * VECTOR]);
    uint32_t a[STEPS / 2][4], b[STEPS][4];
#pragma unroll
    for (int k = 0; k < STEPS; k++) ldmatrix_x4_trans(b[k], b_address + k * 16 * PITCH * 2);
    wait_for_gradient();
    if (warp() >= SLICE_INPUTS / 16) return;
#pragma unroll
    for (int k = 0; k < STEPS; k += 2) ldmatrix_x4(a[k / 2], a_address + k * 16 * 2);
    multiply_images<STEPS>(a, b, epilogue);
  }

  /* A warp computes 16 outputs (M) × 16 inputs (two N of 8); K is images. */
  static __device__ __forceinline__ void fc1_weight_gradient(const value *fc1_product_gradient, const value *in,
                                                             float sums[FC1_GRADIENT_PAIRS_PER_THREAD][2]) {
#pragma unroll
    for (int k = 0; k < TILE_BATCH; k += 16) {
      uint32_t a[4], b[4];
      ldmatrix_x4_trans(
          a, shared_address(&fc1_product_gradient[(k + lane() / 16 * 8 + lane() % 8) * FC1_PRODUCT_GRADIENT_TILE_PITCH +
                                                  lane() / 8 % 2 * VECTOR]));
      ldmatrix_x4_trans(b, shared_address(&in[(k + lane() % 16) * FC1_INPUT_TILE_PITCH + warp() * 16 + lane() / 16 * VECTOR]));
      for (int c = 0; c < 2; c++) mma_m16n8k16(sums[c * 2], a, &b[c * 2]); /* an accumulator is two pairs of sums */
    }
  }

  static __device__ __forceinline__ int fc1_gradient_row(int i) { return i % 2 * 8 + lane() / 4; }
  static __device__ __forceinline__ int fc1_gradient_column(int i) { return warp() * 16 + i / 2 * 8 + lane() % 4 * 2; }
};

#endif
