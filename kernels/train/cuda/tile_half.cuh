/* tile.cuh in FP16: m16n8k16 products, operands through ldmatrix. Rows of 14 pixels an odd number of 16-byte units each put any
 * eight pixels that are read at once into different banks: eight neighbours across the end of a row, and the upper or lower
 * halves of four neighbouring pools. */
#ifndef RL_TRAIN_CUDA_TILE_HALF_H
#define RL_TRAIN_CUDA_TILE_HALF_H

#include "train/cuda/mma.cuh"
#include "train/cuda/tile.cuh"

struct half_tiles : tile_format {
  typedef __half value;
  enum {
    UNIT = 8, /* halves in 16 bytes */
    IN_PITCH = RL_C1 + UNIT,
    WEIGHT_PITCH = TILE_DEPTH + UNIT,
    OUT_PITCH = TILE_CHANNELS + UNIT,
    RAW_PITCH = WEIGHT_PITCH,
    WEIGHT_VALUES = TILE_CHANNELS * WEIGHT_PITCH,
    OUT_VALUES = TILE_OUT_PIXELS * OUT_PITCH,
    FORWARD_SCRATCH = 0,
    FORWARD_MAIL = 0,
    BACKWARD_SCRATCH = 0,
    POOL_TILES = RL_H2 * RL_H2 / 16, /* of four pools */
    FORWARD_WARPS = POOL_TILES,
    KEEPS_WEIGHTS = 1,
    SLICE_PAD = UNIT,
    HIDDEN_PITCH = RL_FC1 + UNIT,
    ROW_PITCH = TILE_ROWS + UNIT,
    COLUMN_PITCH = TILE_COLUMNS + UNIT,
    ROW_STEPS = 3 * RL_C1 / 16, /* of a row of taps; rows stay a loop: code that is run once a step has to come from afar */
    PIXEL_TILES = (RL_P1 * RL_P1 + 15) / 16
  };

  typedef tile_sums<TILE_CHANNELS * TILE_DEPTH / THREADS> weight_sums;


  static __device__ __forceinline__ void prepare_weights(const value *, value *) {}
  static __device__ __forceinline__ void clear_border(value *d_out) { tile_clear_border<half_tiles>(d_out); }
  static __device__ __forceinline__ void unpool(int pixel, int channel, uchar4 code, float4 d, value *d_out) {
    tile_unpool<half_tiles>(pixel, channel, code, d, d_out);
  }

  /* Pixel i of 16 of the pools 4 · tile …, as they stand in a product: upper ones before lower ones, left before right there. */
  static __device__ __forceinline__ int pool_y(int tile, int i) { return (tile * 4 + i % 4) / RL_P2 * 2 + i / 8; }
  static __device__ __forceinline__ int pool_x(int tile, int i) { return (tile * 4 + i % 4) % RL_P2 * 2 + i / 4 % 2; }

  /* A warp has four pools × 32 channels. */
  template <class Sink>
  static __device__ __forceinline__ void conv2_forward(const value *in, const value *weights, float *, Sink sink) {
    if (warp() >= FORWARD_WARPS) return;
    const int row = lane() % 16;
    const uint32_t a_row = shared_address(
                       &in[(pool_y(warp(), row) * RL_P1 + pool_x(warp(), row)) * IN_PITCH + lane() / 16 * UNIT]),
                   b_row = shared_address(&weights[(lane() / 16 * 8 + lane() % 8) * WEIGHT_PITCH + lane() / 8 % 2 * UNIT]);
    float sum[4][4] = {};
#pragma unroll 1
    for (int dy = 0; dy < 3; dy++)
#pragma unroll
      for (int k = 0; k < ROW_STEPS; k++) {
        uint32_t a[4], by[2][4];
        load_matrices(a, a_row + ((dy * RL_P1 + k / 2) * IN_PITCH + k % 2 * 16) * 2);
        for (int i = 0; i < 2; i++) load_matrices(by[i], b_row + (i * 16 * WEIGHT_PITCH + (dy * ROW_STEPS + k) * 16) * 2);
        for (int i = 0; i < 4; i++) multiply_add(sum[i], a, &by[i / 2][i % 2 * 2]);
      }
    /* Lanes below 16 have the left pixels of a pool, those above the right ones: they swap, and each goes on with half
     * of the channels. */
    const bool right = lane() >= 16;
    for (int i = 0; i < 2; i++) {
      float other[4];
      for (int c = 0; c < 4; c++) other[c] = __shfl_xor_sync(0xffffffffu, right ? sum[i][c] : sum[i + 2][c], 16);
      float pools[2][4];
      for (int c = 0; c < 2; c++)
        for (int lower = 0; lower < 2; lower++) {
          const float own = right ? sum[i + 2][lower * 2 + c] : sum[i][lower * 2 + c];
          pools[c][lower * 2] = right ? other[lower * 2 + c] : own;
          pools[c][lower * 2 + 1] = right ? own : other[lower * 2 + c];
        }
      sink(warp() * 4 + lane() / 4 % 4, (right * 2 + i) * 8 + lane() % 4 * 2, pools[0], pools[1]);
    }
  }

  /* A warp has 16 output channels × 48 of the 288 columns, in three units of 16: a tap and half of its channels. Pixels in the
   * order of pools, which come again every three tiles, two rows of pools below. */
  enum { UNITS = 3 };
  static __device__ __forceinline__ int first_channel() { return warp() % 2 * 16; }
  static __device__ __forceinline__ int unit(int i) { return warp() / 2 * UNITS + i; }

  static __device__ __forceinline__ weight_sums begin_sums(float *) { return {}; }

  static __device__ __forceinline__ void conv2_weight_gradient(const value *in, const value *d_out, float *, weight_sums &sums) {
    uint32_t a_row[3], b_row[3], b_unit[UNITS];
    for (int tile = 0; tile < 3; tile++) {
      const int a = lane() / 16 * 8 + lane() % 8, b = lane() % 16;
      a_row[tile] = shared_address(
          &d_out[tile_out_at(pool_y(tile, a), pool_x(tile, a)) * OUT_PITCH + first_channel() + lane() / 8 % 2 * UNIT]);
      b_row[tile] = shared_address(&in[(pool_y(tile, b) * RL_P1 + pool_x(tile, b)) * IN_PITCH + lane() / 16 * UNIT]);
    }
    for (int i = 0; i < UNITS; i++) {
      const int tap = unit(i) / 2;
      b_unit[i] = ((tap / 3 * RL_P1 + tap % 3) * IN_PITCH + unit(i) % 2 * 16) * 2;
    }
#pragma unroll 1
    for (int row = 0; row < POOL_TILES / 3; row++)
#pragma unroll
      for (int k = 0; k < 3; k++) {
        uint32_t a[4], by[4];
        load_transposed(a, a_row[k] + row * 4 * TILE_OUT_ROW * OUT_PITCH * 2);
        for (int i = 0; i < UNITS; i++) {
          load_transposed(by, b_row[k] + b_unit[i] + row * 4 * RL_P1 * IN_PITCH * 2);
          for (int c = 0; c < 2; c++) multiply_add(&sums.of[(i * 2 + c) * 4], a, &by[c * 2]);
        }
      }
  }

  /* Neighbouring lanes swap pairs of columns, so that each has four in a row: of the first eight of a unit where it is even, else
   * of the others. */
  static __device__ __forceinline__ void store_weight_gradient(const weight_sums &sums, float *to) {
    const bool odd = lane() % 2;
    for (int i = 0; i < UNITS; i++)
      for (int half = 0; half < 2; half++) {
        const float *first = &sums.of[i * 8 + half * 2], *second = first + 4;
        float own[2], other[2];
        for (int c = 0; c < 2; c++) {
          own[c] = odd ? second[c] : first[c];
          other[c] = __shfl_xor_sync(0xffffffffu, odd ? first[c] : second[c], 1);
        }
        store4(&to[(first_channel() + half * 8 + lane() / 4) * TILE_DEPTH + unit(i) * 16 + odd * 8 + lane() / 2 % 2 * 4],
               odd ? make_float4(other[0], other[1], own[0], own[1]) : make_float4(own[0], own[1], other[0], other[1]));
      }
  }

  /* Where the product's gradient of a tap's upper left corner lies for this lane's row of 16 pixels. */
  static __device__ __forceinline__ uint32_t corner(const value *d_out, int tile) {
    const int pixel = min(tile * 16 + lane() % 16, RL_P1 * RL_P1 - 1);
    return shared_address(&d_out[tile_out_at(pixel / RL_P1, pixel % RL_P1) * OUT_PITCH + lane() / 16 * UNIT]);
  }

  template <class Sink> static __device__ __forceinline__ void sink_pixels(int tile, int channel, const float sum[4], Sink sink) {
    for (int half = 0; half < 2; half++) {
      const int pixel = tile * 16 + half * 8 + lane() / 4;
      if (pixel < RL_P1 * RL_P1) sink(pixel, channel + lane() % 4 * 2, sum[half * 2], sum[half * 2 + 1]);
    }
  }

  /* A warp has 16 pixels × 32 channels; the first two have half of the channels of the four pixels that are left, too. */
  template <class Ready, class Sink>
  static __device__ __forceinline__ void conv2_input_gradient(const value *weights, const value *d_out, Ready ready, Sink sink) {
    const uint32_t a_row = corner(d_out, warp()), rest_row = corner(d_out, PIXEL_TILES - 1),
                   b_row = shared_address(&weights[lane() % 16 * WEIGHT_PITCH + lane() / 16 * UNIT]);
    float sum[4][4] = {}, rest[2][4] = {};
#pragma unroll 1
    for (int dy = 0; dy < 3; dy++)
#pragma unroll
      for (int k = 0; k < ROW_STEPS; k++) {
        const int channel = k % 2 * 16, back = ((dy * TILE_OUT_ROW + k / 2) * OUT_PITCH - channel) * 2;
        uint32_t a[4], by[2][4];
        load_matrices(a, a_row - back);
        for (int i = 0; i < 2; i++)
          load_transposed(by[i], b_row + (channel * WEIGHT_PITCH + (dy * 3 + k / 2) * RL_C1 + i * 16) * 2);
        for (int i = 0; i < 4; i++) multiply_add(sum[i], a, &by[i / 2][i % 2 * 2]);
        if (warp() >= 2) continue;
        load_matrices(a, rest_row - back);
        for (int i = 0; i < 2; i++) {
          const uint32_t b[2] = {warp() == 0 ? by[0][i * 2] : by[1][i * 2], warp() == 0 ? by[0][i * 2 + 1] : by[1][i * 2 + 1]};
          multiply_add(rest[i], a, b);
        }
      }
    ready();
    for (int i = 0; i < 4; i++) sink_pixels(warp(), i * 8, sum[i], sink);
    if (warp() >= 2) return;
    for (int i = 0; i < 2; i++) sink_pixels(PIXEL_TILES - 1, warp() * 16 + i * 8, rest[i], sink);
  }

  /* Eight images are the upper half of a product's 16 rows; the lower half repeats them. */
  static __device__ __forceinline__ void multiply_upper(float sum[4], const uint32_t a[2], const uint32_t b[2]) {
    const uint32_t twice[4] = {a[0], a[0], a[1], a[1]};
    multiply_add(sum, twice, b);
  }

  /* A warp has 16 outputs. */
  template <int SLICE, class Sink>
  static __device__ __forceinline__ void fc1_forward(const value *in, const value *weights, Sink sink) {
    enum { PITCH = SLICE + SLICE_PAD, STEPS = SLICE / 16, CHAINS = 2 /* of sums, so that they wait for each other less */ };
    if (warp() >= RL_FC1 / 16) return;
    const uint32_t a_row = shared_address(&in[lane() % 8 * PITCH + lane() / 8 * UNIT]),
                   b_row = shared_address(&weights[(warp() * 16 + lane() / 16 * 8 + lane() % 8) * PITCH + lane() / 8 % 2 * UNIT]);
    float sum[CHAINS][2][4] = {};
    uint32_t a[STEPS + 1][2], by[STEPS][4]; /* all at once: nothing else hides their latency */
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
      if (k % 2 == 0) load_matrices(a[k], a_row + k * 16 * 2); /* of this step and the next */
      load_matrices(by[k], b_row + k * 16 * 2);
    }
#pragma unroll
    for (int k = 0; k < STEPS; k++)
      for (int c = 0; c < 2; c++) multiply_upper(sum[k % CHAINS][c], a[k], &by[k][c * 2]);
    for (int c = 0; c < 2; c++)
      sink(lane() / 4, warp() * 16 + c * 8 + lane() % 4 * 2, sum[0][c][0] + sum[1][c][0], sum[0][c][1] + sum[1][c][1]);
  }

  /* A warp has 16 inputs, and 16 more. */
  template <int SLICE, class Sink>
  static __device__ __forceinline__ void fc1_backward(const value *d_fc1, const value *weights, Sink sink) {
    enum { PITCH = SLICE + SLICE_PAD, STEPS = RL_FC1 / 16, CHAINS = 2 };
    const uint32_t a_row = shared_address(&d_fc1[lane() % 8 * HIDDEN_PITCH + lane() / 8 * UNIT]),
                   b_row = shared_address(&weights[lane() % 16 * PITCH + lane() / 16 * UNIT]);
    for (int tile = warp(); tile < SLICE / 16; tile += TILE_WARPS) {
      float sum[CHAINS][2][4] = {};
      uint32_t a[STEPS][2], by[STEPS][4];
#pragma unroll
      for (int k = 0; k < STEPS; k++) {
        if (k % 2 == 0) load_matrices(a[k], a_row + k * 16 * 2);
        load_transposed(by[k], b_row + (k * 16 * PITCH + tile * 16) * 2);
      }
#pragma unroll
      for (int k = 0; k < STEPS; k++)
        for (int c = 0; c < 2; c++) multiply_upper(sum[k % CHAINS][c], a[k], &by[k][c * 2]);
      for (int c = 0; c < 2; c++)
        sink(lane() / 4, tile * 16 + c * 8 + lane() % 4 * 2, sum[0][c][0] + sum[1][c][0], sum[0][c][1] + sum[1][c][1]);
    }
  }

  /* A warp has 16 outputs × 16 inputs. */
  static __device__ __forceinline__ void fc1_weight_gradient(const value *d_fc1, const value *in, float sums[TILE_PAIRS][2]) {
#pragma unroll
    for (int k = 0; k < TILE_BATCH; k += 16) {
      uint32_t a[4], by[4];
      load_transposed(a, shared_address(&d_fc1[(k + lane() / 16 * 8 + lane() % 8) * ROW_PITCH + lane() / 8 % 2 * UNIT]));
      load_transposed(by, shared_address(&in[(k + lane() % 16) * COLUMN_PITCH + warp() * 16 + lane() / 16 * UNIT]));
      for (int c = 0; c < 2; c++) multiply_add(sums[c * 2], a, &by[c * 2]); /* four sums: two pairs */
    }
  }

  static __device__ __forceinline__ int tile_row(int i) { return i % 2 * 8 + lane() / 4; }
  static __device__ __forceinline__ int tile_column(int i) { return warp() * 16 + i / 2 * 8 + lane() % 4 * 2; }
};

#endif
