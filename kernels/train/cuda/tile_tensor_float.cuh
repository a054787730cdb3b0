/* The format TF32 of the products in tile.cuh: mma.sync m16n8k8 instructions on tensor cores, D[16×8] += A[16×8] · B[8×8].
 * tile.cuh documents the functions of a format. M, N and K are the sizes of an mma: rows of A, columns of B, depth. A fragment is
 * the part of an operand that one lane holds.
 *
 * Loads from shared memory: an operand that is stored as the fragment needs it is loaded by ldmatrix, or as pairs of floats.
 * ldmatrix.trans exists only for 16-bit values. So an operand that has to be transposed is loaded as single floats, or as float2,
 * where adjacent lanes load adjacent pairs. A float2 gives a lane two adjacent channels, but the fragment needs channels that are
 * 4 or 8 apart. Then the function uses the same permutation of the channels in both operands, or permutes the result.
 *
 * Reuse of fragments in conv2: a fragment holds pixels in columns that are three (or six) apart, beginning with column c (below:
 * pixels at c). It is an operand of the products for all three taps t = 0, 1, 2 in a row of the filter:
 *
 *   conv2_forward          output at c += input at c + t × weights of tap t
 *   conv2_weight_gradient  gradient of tap t += out_gradient at c × input at c + t
 *   conv2_input_gradient   gradient of the input at c + t += out_gradient at c × weights of tap t
 *
 * Bank conflicts: the pitch of a pixel is an odd number of 16-byte vectors, so a row of 14 pixels begins 6 vectors (modulo 8)
 * after the row above it. A warp reads 32 bytes from each of 8 pixels: four rows, adjacent or three apart, × two columns that are
 * three apart. These reads are free of bank conflicts. */
#ifndef RL_TRAIN_CUDA_TILE_TENSOR_FLOAT_H
#define RL_TRAIN_CUDA_TILE_TENSOR_FLOAT_H

#include "train/cuda/mma.cuh"
#include "train/cuda/tensor_float.cuh"
#include "train/cuda/tile.cuh"

struct tensor_float_tile_format : tile_format<tensor_float> {
  enum {
    VECTOR = 4, /* floats in 16 bytes */
    IN_PITCH = RL_CONV1_CHANNELS + VECTOR,
    WEIGHT_PITCH = CONV2_K + VECTOR, /* of the weights: [TILE_CHANNELS][WEIGHT_PITCH] */
    LOADED_WEIGHT_PITCH = WEIGHT_PITCH,
    WEIGHT_VALUES = TILE_CHANNELS * WEIGHT_PITCH,
    OUT_PITCH = TILE_CHANNELS + 2 * VECTOR,             /* of a pixel of out_gradient */
    OUT_ROW_PITCH = RL_CONV2_SIDE * OUT_PITCH + VECTOR, /* of a row of 12 pixels of out_gradient */
    OUT_GRADIENT_VALUES = RL_CONV2_SIDE * OUT_ROW_PITCH,
    CONV2_FORWARD_SCRATCH_FLOATS = 0,
    CONV2_WARP_SCRATCH_FLOATS = THREADS * 12,
    CONV2_FORWARD_WARPS = TILE_WARPS,
    CONV1_IS_SPLIT = 1,
    CONV1_GRADIENT_IS_SPLIT = 0,
    HAS_FP32_MASTER_WEIGHTS = 1,
    SLICE_PADDING = VECTOR,
    FC1_PRODUCT_GRADIENT_PITCH = RL_FC1_OUTPUTS + 2 * VECTOR,
    FC1_PRODUCT_GRADIENT_TILE_PITCH = TILE_ROWS + 2 * VECTOR,
    FC1_INPUT_TILE_PITCH = TILE_COLUMNS + 2 * VECTOR,
    K = 8 /* depth of an mma */
  };

  typedef register_sums<TILE_CHANNELS * CONV2_K / THREADS> weight_sums;

  /* FP16 has the same 11 significant bits as TF32, and half of FP32's bytes. A sum is multiplied by ROW_SCALE, then rounded and
   * stored. A sum below 2⁻²² becomes subnormal, so its error is not relative to it but up to 2⁻³³; one from 2⁸ − 2⁻⁴ on becomes
   * infinite. */
  typedef __half row_value;
  static constexpr float ROW_SCALE = 256.0f;

  /* Position of a lane in a fragment (PTX ISA 9.0, "mma.m16n8k8"): the lane holds rows lane_row and lane_row + 8 of A and column
   * lane_row of B, each at the depths lane_k and lane_k + 4. */
  static __device__ __forceinline__ int lane_row() { return lane() / 4; }
  static __device__ __forceinline__ int lane_k() { return lane() % 4; }

  /* These functions load values as the 32-bit registers of a fragment. */
  static __device__ __forceinline__ uint32_t load_bits(const value *from) { return *(const uint32_t *)from; }
  static __device__ __forceinline__ void load_pair(uint32_t &a, uint32_t &b, const value *from) {
    const uint2 v = *(const uint2 *)from;
    a = v.x, b = v.y;
  }

  /* An accumulator gives a lane two results in a column: `low` in row lane_row() and `high` in row lane_row() + 8. pair_rows
   * exchanges one of them with the lane of the adjacent row, so that each lane has the results of two adjacent rows: `even` in
   * row paired_row() and `odd` in the next row. */
  static __device__ __forceinline__ int paired_row() { return lane_row() / 2 * 2 + lane_row() % 2 * 8; }
  static __device__ __forceinline__ void pair_rows(float low, float high, float &even, float &odd) {
    const bool is_odd_row = lane_row() % 2;
    const float kept = is_odd_row ? high : low, received = __shfl_xor_sync(0xffffffffu, is_odd_row ? low : high, 4);
    even = is_odd_row ? received : kept;
    odd = is_odd_row ? kept : received;
  }

  /* Layout of out_gradient [12 rows][12 pixels][32 channels], without a border. Of every eight channels, the four even ones are
   * stored before the four odd ones. Then depths lane_k and lane_k + 4 of an mma are two adjacent channels, and so two adjacent
   * rows of the weights. out_channel returns the channel (0 to 7) that is stored at index `stored`. */
  static __device__ __forceinline__ int out_gradient_offset(int y, int x) { return y * OUT_ROW_PITCH + x * OUT_PITCH; }
  static __device__ __forceinline__ int out_channel(int stored) { return stored % 4 * 2 + stored / 4; }

  static __device__ __forceinline__ float2 pool_channels(const float a[4], const float b[4], const float *biases,
                                                         uint8_t *argmaxes, bool *) {
    const float2 bias = *(const float2 *)biases;
    float pooled[2];
    uchar2 argmax;
    bias_relu_pool(a[0], a[1], a[2], a[3], bias.x, &pooled[0], &argmax.x);
    bias_relu_pool(b[0], b[1], b[2], b[3], bias.y, &pooled[1], &argmax.y);
    *(uchar2 *)argmaxes = argmax;
    return make_float2(tensor_float(pooled[0]), tensor_float(pooled[1]));
  }

  static __device__ __forceinline__ void unpool(int pixel, int channel, uchar4 argmax, float4 gradient, value *out_gradient) {
    const tensor_float x(gradient.x), y(gradient.y), z(gradient.z), w(gradient.w);
    for (int position = 0; position < 4; position++) {
      value *to = &out_gradient[out_gradient_offset(pixel / RL_POOLED2_SIDE * 2 + position / 2,
                                                    pixel % RL_POOLED2_SIDE * 2 + position % 2) +
                                channel / 8 * 8 + channel % 8 / 2];
      *(float2 *)to = make_float2(argmax.x == position ? x.value : 0, argmax.z == position ? z.value : 0);
      *(float2 *)(to + 4) = make_float2(argmax.y == position ? y.value : 0, argmax.w == position ? w.value : 0);
    }
  }

  /* conv2_forward computes weights · pixelsᵀ: M is output channels, N is pixels. A warp computes 16 output channels × four rows
   * of 12 pixels, but adds up only over one half of the input channels. Then the two warps that have the two halves add up each
   * other's sums: one warp gets the totals for the left half of the rows, the other warp those for the right half.
   *
   * A set is the eight pixels (N) of an mma: four rows × two columns FORWARD_SET_STRIDE apart. The six columns of the left half
   * of a row are the three sets 0 and 3, 1 and 4, 2 and 5; those of the right half likewise. */
  enum {
    FORWARD_SETS = 3,
    FORWARD_SET_STRIDE = 3,               /* columns between the two columns of a set */
    FORWARD_READ_SETS = FORWARD_SETS + 2, /* sets of input pixels: the three taps in a row reach two columns further */
    HALF_ROW_PIXELS = FORWARD_SETS * 2,
    WARPS_PER_CHANNEL_HALF = TILE_WARPS / 2 /* number of warps that add up over the same half of the input channels */
  };

  enum { CONV2_LOADS_INPUT_FIRST = 1 };

  /* The pixels of the first row of taps are loaded before the wait for the weights. Those of two rows would take too many
   * registers. */
  template <class WaitForWeights, class Epilogue>
  static __device__ __forceinline__ void conv2_forward(const value *in, const value *weights, float *scratch,
                                                       WaitForWeights wait_for_weights, Epilogue epilogue) {
    const int top = warp() % 3 * 4, channel = warp() / 3 % 2 * 16, channel_half = warp() / WARPS_PER_CHANNEL_HALF,
              row = lane() % 8, matrix = lane() / 8;
    const uint32_t a_address = shared_address(
                       &weights[(channel + matrix % 2 * 8 + row) * WEIGHT_PITCH + channel_half * 2 * K + matrix / 2 * VECTOR]),
                   b_address = shared_address(&in[((top + row % 4) * RL_POOLED1_SIDE + row / 4 * FORWARD_SET_STRIDE) * IN_PITCH +
                                                  channel_half * 2 * K + matrix * VECTOR]);
    float sum[2][FORWARD_SETS][4] = {};
    uint32_t b[2][FORWARD_READ_SETS][4];
    const auto load_pixels = [&](int tap_y) {
      for (int right = 0; right < 2; right++)
        for (int i = 0; i < FORWARD_READ_SETS; i++)
          ldmatrix_x4(b[right][i], b_address + (tap_y * RL_POOLED1_SIDE + right * HALF_ROW_PIXELS + i) * IN_PITCH * 4);
    };
    load_pixels(0);
    wait_for_weights();
#pragma unroll
    for (int tap_y = 0; tap_y < 3; tap_y++) {
      if (tap_y > 0) load_pixels(tap_y);
      for (int k = 0; k < 2; k++)
        for (int tap_x = 0; tap_x < 3; tap_x++) {
          uint32_t a[4];
          ldmatrix_x4(a, a_address + ((tap_y * 3 + tap_x) * RL_CONV1_CHANNELS + k * K) * 4);
          for (int right = 0; right < 2; right++)
            for (int i = 0; i < FORWARD_SETS; i++) mma_m16n8k8_tf32(sum[right][i], a, &b[right][i + tap_x][k * 2]);
        }
    }
    add_channel_halves(sum, channel_half, scratch);
    apply_window_epilogue(sum[0], top / 2 + lane_k() % 2, channel_half * 3, channel, epilogue);
  }

  /* Adds up the sums of the two warps that compute the same pixels and output channels, through `scratch`. sum: [left or right
   * half of the rows][set]. Afterwards sum[0] is the total over all input channels, for the half of the rows with index
   * channel_half. RAW: named barrier 1 + i, where i is the index of the pair of warps, synchronises the two warps, because each
   * reads what the other has written. */
  static __device__ __forceinline__ void add_channel_halves(float sum[2][FORWARD_SETS][4], int channel_half, float *scratch) {
    float4 *exchange = (float4 *)scratch + warp() % WARPS_PER_CHANNEL_HALF * 2 * FORWARD_SETS * 32 + lane();
    for (int i = 0; i < FORWARD_SETS; i++)
      exchange[(channel_half * FORWARD_SETS + i) * 32] =
          make_float4(channel_half ? sum[0][i][0] : sum[1][i][0], channel_half ? sum[0][i][1] : sum[1][i][1],
                      channel_half ? sum[0][i][2] : sum[1][i][2], channel_half ? sum[0][i][3] : sum[1][i][3]);
    asm volatile("bar.sync %0, 64;" ::"r"(warp() % WARPS_PER_CHANNEL_HALF + 1) : "memory");
    for (int i = 0; i < FORWARD_SETS; i++) {
      const float4 v = exchange[((1 - channel_half) * FORWARD_SETS + i) * 32];
      const float other[4] = {v.x, v.y, v.z, v.w};
      for (int c = 0; c < 4; c++) sum[0][i][c] = (channel_half ? sum[1][i][c] : sum[0][i][c]) + other[c];
    }
  }

  /* Passes the 2×2 windows of a half row to the epilogue. A lane holds two rows of three columns: columns 0 to 2, or, if `right`,
   * 3 to 5. The six columns contain three windows. A lane has all of the outer window on its side, and one column of the middle
   * window. The left lane receives the middle window's other column from the right lane, whose index is `lane ^ 2`. */
  template <class Epilogue> static __device__ __forceinline__ void apply_window_epilogue(const float sum[FORWARD_SETS][4], int y,
                                                                                         int x, int channel, Epilogue epilogue) {
    const bool right = lane_k() >= 2;
    float even[FORWARD_SETS][2], odd[FORWARD_SETS][2], neighbour[2][2];
    for (int i = 0; i < FORWARD_SETS; i++)
      for (int lower = 0; lower < 2; lower++) pair_rows(sum[i][lower], sum[i][2 + lower], even[i][lower], odd[i][lower]);
    for (int lower = 0; lower < 2; lower++) {
      neighbour[0][lower] = __shfl_xor_sync(0xffffffffu, even[0][lower], 2);
      neighbour[1][lower] = __shfl_xor_sync(0xffffffffu, odd[0][lower], 2);
    }
    float outer[2][4], middle[2][4]; /* [channel][position in the window] */
    for (int position = 0; position < 4; position++) {
      const int i = position % 2, lower = position / 2;
      outer[0][position] = right ? even[1 + i][lower] : even[i][lower];
      outer[1][position] = right ? odd[1 + i][lower] : odd[i][lower];
      middle[0][position] = i ? neighbour[0][lower] : even[2][lower];
      middle[1][position] = i ? neighbour[1][lower] : odd[2][lower];
    }
    epilogue(y * RL_POOLED2_SIDE + x + right * 2, channel + paired_row(), outer[0], outer[1]);
    if (!right) epilogue(y * RL_POOLED2_SIDE + x + 1, channel + paired_row(), middle[0], middle[1]);
  }

  /* conv2_weight_gradient computes inᵀ · out_gradient: M is input channels, N is output channels, K is pixels. A warp computes 16
   * input channels × 16 output channels for the three taps in row tap_row() of the filter. The eight pixels (K) of an mma are
   * four rows × two columns that are COLUMN_DISTANCE apart. */
  enum { COLUMN_DISTANCE = 6 };
  static __device__ __forceinline__ int tap_row() { return warp() % 3; }
  static __device__ __forceinline__ int first_input() { return warp() / 3 % 2 * 16; }
  static __device__ __forceinline__ int first_output() { return warp() / 6 * 16; }

  static __device__ __forceinline__ weight_sums init_weight_sums(row_value *) { return {}; }

  static __device__ __forceinline__ void conv2_weight_gradient(const value *in, const value *out_gradient, weight_sums &sums) {
    /* Position of the pixel at depth lane_k. The pixel at depth lane_k + 4 is the one below it. */
    const int y = lane_k() / 2 * 2, x_offset = lane_k() % 2 * COLUMN_DISTANCE;
    const value *a_from = &in[((tap_row() + y) * RL_POOLED1_SIDE + x_offset) * IN_PITCH + first_input() + lane_row() * 2],
                *b_from = &out_gradient[out_gradient_offset(y, x_offset) + first_output() + lane_row()];
#pragma unroll 1
    for (int top = 0; top < RL_CONV2_SIDE; top += 4) {
      uint32_t a[3][4]; /* ring of fragments of the input: the pixels at column x are in a[x % 3] */
#pragma unroll
      for (int x = 0; x < COLUMN_DISTANCE + 2; x++) {
        const value *window = &a_from[(top * RL_POOLED1_SIDE + x) * IN_PITCH];
        load_pair(a[x % 3][0], a[x % 3][1], window);
        load_pair(a[x % 3][2], a[x % 3][3], window + RL_POOLED1_SIDE * IN_PITCH);
        if (x < 2) continue;
        for (int i = 0; i < 2; i++) {
          const value *gradient = &b_from[out_gradient_offset(top, x - 2) + i * 8];
          const uint32_t b[2] = {load_bits(gradient), load_bits(gradient + OUT_ROW_PITCH)};
          for (int tap_x = 0; tap_x < 3; tap_x++) mma_m16n8k8_tf32(&sums.values[(tap_x * 2 + i) * 4], a[(x - 2 + tap_x) % 3], b);
        }
      }
    }
  }

  /* A lane has two adjacent input channels of each of two output channels. Lanes with adjacent input channels exchange one pair,
   * so that each lane stores four input channels (8 bytes) of one output channel. */
  static __device__ __forceinline__ bool store_weight_gradient(const weight_sums &sums, int tap_x, row_value *row) {
    half2_check check;
    for (int i = 0; i < 2; i++) {
      const float *tile_sums = &sums.values[(tap_x * 2 + i) * 4];
      const __half2 a = __floats2half2_rn(tile_sums[0] * ROW_SCALE, tile_sums[2] * ROW_SCALE),
                    b = __floats2half2_rn(tile_sums[1] * ROW_SCALE, tile_sums[3] * ROW_SCALE);
      check.add(b);
      check.add(a);
      *(uint2 *)&row[(first_output() + i * 8 + out_channel(lane_k() * 2 + lane_row() % 2)) * CONV2_K +
                     (tap_row() * 3 + tap_x) * RL_CONV1_CHANNELS + first_input() + lane_row() / 2 * 4] = exchange_pairs(a, b, 4);
    }
    return check.all_finite();
  }

  enum { COLUMNS_BETWEEN_LANES = 2, COLUMNS_BETWEEN_FRAGMENT_HALVES = 1 }; /* tile.cuh */

  template <class Between, class Epilogue>
  static __device__ __forceinline__ void conv2_input_gradient(const value *weights, const value *out_gradient, Between between,
                                                              Epilogue epilogue) {
    tile_input_gradient<tensor_float_tile_format>(weights, out_gradient, between, epilogue);
  }

  static __device__ __forceinline__ void accumulate_tap_row(const value *weights, const value *out_gradient, int row_set,
                                                            int tap_row, int channel, tile_accumulators sum) {
    const int matrix_row = lane() % 8, matrix = lane() / 8;
    const uint32_t a_address = shared_address(
        &out_gradient[out_gradient_offset(
                          row_set + matrix_row % 4 * SET_STRIDE,
                          (matrix_row / 4 * COLUMNS_BETWEEN_LANES + matrix % 2 * COLUMNS_BETWEEN_FRAGMENT_HALVES) * SET_STRIDE) +
                      matrix / 2 * VECTOR]);
    const value *b_from = &weights[lane_k() * 2 * WEIGHT_PITCH + tap_row * 3 * RL_CONV1_CHANNELS + channel + lane_row()];
#pragma unroll 2
    for (int k = 0; k < TILE_CHANNELS; k += K) {
      uint32_t b[3][2];
      for (int tap_x = 0; tap_x < 3; tap_x++)
        for (int i = 0; i < 2; i++) b[tap_x][i] = load_bits(&b_from[(k + i) * WEIGHT_PITCH + tap_x * RL_CONV1_CHANNELS]);
      for (int column_set = 0; column_set < SET_STRIDE; column_set++) {
        uint32_t a[4];
        ldmatrix_x4(a, a_address + (out_gradient_offset(0, column_set) + k) * 4);
        for (int tap_x = 0; tap_x < 3; tap_x++) mma_m16n8k8_tf32(sum[column_set + tap_x], a, b[tap_x]);
      }
    }
  }

  /* fc1's products: N is images, except in fc1_weight_gradient, where K is images. */

  enum { CHAINS = 2 /* independent accumulators, to hide mma latency */ };

  enum { FC1_LOADS_WEIGHTS_FIRST = 1 };

  /* A warp computes a group of 16 outputs of fc1 (M) for all images. A warp without a group loads the weights of the last group,
   * so that all warps wait at the same place and the registers do not depend on a branch, which would cause spills. fc1_backward
   * does the same. */
  template <int SLICE_INPUTS, class WaitForInput, class Epilogue>
  static __device__ __forceinline__ void fc1_forward(const value *in, const value *weights, WaitForInput wait_for_input,
                                                     Epilogue epilogue) {
    enum { PITCH = SLICE_INPUTS + SLICE_PADDING, STEPS = SLICE_INPUTS / K };
    const int group = min(warp(), RL_FC1_OUTPUTS / 16 - 1);
    const int row = lane() % 8, matrix = lane() / 8;
    const uint32_t a_address = shared_address(&weights[(group * 16 + matrix % 2 * 8 + row) * PITCH + matrix / 2 * VECTOR]),
                   b_address = shared_address(&in[row * PITCH + matrix * VECTOR]);
    float sum[CHAINS][4] = {};
    uint32_t a[STEPS][4], images[STEPS][2];
#pragma unroll
    for (int k = 0; k < STEPS; k++) ldmatrix_x4(a[k], a_address + k * K * 4);
    wait_for_input();
    if (warp() >= RL_FC1_OUTPUTS / 16) return;
#pragma unroll
    for (int k = 0; k < STEPS; k += 2) ldmatrix_x4(images[k], b_address + k * K * 4); /* fills images[k] and images[k + 1] */
#pragma unroll
    for (int k = 0; k < STEPS; k++) mma_m16n8k8_tf32(sum[k % CHAINS], a[k], images[k]);
    for (int i = 0; i < 2; i++) {
      float even, odd;
      pair_rows(sum[0][i] + sum[1][i], sum[0][2 + i] + sum[1][2 + i], even, odd);
      epilogue(lane_k() * 2 + i, warp() * 16 + paired_row(), even, odd);
    }
  }

  /* A warp computes 16 inputs (M); K is outputs. The weights are loaded before the wait. Rows i and i + 8 of A are the adjacent
   * inputs 2 i and 2 i + 1 of the group, and depths lane_k and lane_k + 4 are adjacent outputs, so that float2 loads fill the
   * fragments. */
  template <int SLICE_INPUTS, class WaitForGradient, class Epilogue>
  static __device__ __forceinline__ void fc1_backward(const value *fc1_product_gradient, const value *weights,
                                                      WaitForGradient wait_for_gradient, Epilogue epilogue) {
    enum { PITCH = SLICE_INPUTS + SLICE_PADDING, STEPS = RL_FC1_OUTPUTS / K };
    static_assert(SLICE_INPUTS / 16 <= TILE_WARPS, "all inputs must have a warp");
    const int column = min(warp(), SLICE_INPUTS / 16 - 1) * 16 + lane_row() * 2;
    const value *a_from = &weights[lane_k() * 2 * PITCH + column],
                *b_from = &fc1_product_gradient[lane_row() * FC1_PRODUCT_GRADIENT_PITCH + lane_k() * 2];
    float sum[CHAINS][4] = {};
    uint32_t a[STEPS][4], images[STEPS][2];
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
      load_pair(a[k][0], a[k][1], &a_from[k * K * PITCH]);
      load_pair(a[k][2], a[k][3], &a_from[(k * K + 1) * PITCH]);
    }
    wait_for_gradient();
    if (warp() >= SLICE_INPUTS / 16) return;
#pragma unroll
    for (int k = 0; k < STEPS; k++) load_pair(images[k][0], images[k][1], &b_from[k * K]);
#pragma unroll
    for (int k = 0; k < STEPS; k++) mma_m16n8k8_tf32(sum[k % CHAINS], a[k], images[k]);
    for (int i = 0; i < 2; i++) epilogue(lane_k() * 2 + i, column, sum[0][i] + sum[1][i], sum[0][2 + i] + sum[1][2 + i]);
  }

  /* A warp computes 16 outputs (M) × 16 inputs (two N of 8); K is images. Rows i and i + 8 of A are the adjacent outputs 2 i and
   * 2 i + 1, so that float2 loads fill the fragments. */
  static __device__ __forceinline__ void fc1_weight_gradient(const value *fc1_product_gradient, const value *in,
                                                             float sums[FC1_GRADIENT_PAIRS_PER_THREAD][2]) {
    const value *a_from = &fc1_product_gradient[lane_k() * FC1_PRODUCT_GRADIENT_TILE_PITCH + lane_row() * 2],
                *b_from = &in[lane_k() * FC1_INPUT_TILE_PITCH + warp() * 16 + lane_row()];
#pragma unroll 2
    for (int k = 0; k < TILE_BATCH; k += K) {
      uint32_t a[4];
      load_pair(a[0], a[1], &a_from[k * FC1_PRODUCT_GRADIENT_TILE_PITCH]);
      load_pair(a[2], a[3], &a_from[(k + 4) * FC1_PRODUCT_GRADIENT_TILE_PITCH]);
      for (int i = 0; i < 2; i++) {
        const uint32_t b[2] = {load_bits(&b_from[k * FC1_INPUT_TILE_PITCH + i * 8]),
                               load_bits(&b_from[(k + 4) * FC1_INPUT_TILE_PITCH + i * 8])};
        mma_m16n8k8_tf32(sums[i * 2], a, b); /* an accumulator is two pairs of sums */
      }
    }
  }

  static __device__ __forceinline__ int fc1_gradient_row(int i) { return lane_row() * 2 + i % 2; }
  static __device__ __forceinline__ int fc1_gradient_column(int i) { return warp() * 16 + i / 2 * 8 + lane_k() * 2; }
};

#endif
