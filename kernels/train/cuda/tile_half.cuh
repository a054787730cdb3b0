/* tile.cuh in FP16: m16n8k16 products, operands through ldmatrix. Rows of 14 pixels an odd number of 16-byte units each put any
 * eight pixels that are read at once into different banks: the upper or lower halves of four neighbouring pools, and two columns
 * three apart of four rows, neighbours or every third. Both gradients of conv2 read each operand once for the three taps of a
 * row: pixels are taken every third column, so that the next tap's are those of the next set. */
#ifndef RL_TRAIN_CUDA_TILE_HALF_H
#define RL_TRAIN_CUDA_TILE_HALF_H

#include "train/cuda/mma.cuh"
#include "train/cuda/tile.cuh"

struct half_tiles : tile_format {
  typedef __half value;
  enum {
    UNIT = 8, /* halves in 16 bytes */
    IN_PITCH = RL_C1 + UNIT,
    WEIGHT_PITCH = TILE_K + UNIT,
    OUT_PITCH = TILE_CHANNELS + UNIT,
    RAW_WEIGHT_PITCH = WEIGHT_PITCH,
    WEIGHT_VALUES = TILE_CHANNELS * WEIGHT_PITCH,
    OUT_ROW = RL_P1 * OUT_PITCH, /* of the gradient of conv2's product; two pixels of it mean nothing */
    D_OUT_VALUES = RL_H2 * OUT_ROW,
    FORWARD_SCRATCH_FLOATS = 0,
    FORWARD_EXCHANGE_FLOATS = 0,
    BACKWARD_SCRATCH_FLOATS = 0,
    POOL_TILES = RL_H2 * RL_H2 / 16, /* of four pools */
    FORWARD_WARPS = POOL_TILES,
    SEPARATE_MASTER_WEIGHTS = 1,
    SLICE_PADDING = UNIT,
    D_FC1_PITCH = RL_FC1 + UNIT,
    D_FC1_TILE_PITCH = TILE_ROWS + UNIT,
    FC1_IN_TILE_PITCH = TILE_COLUMNS + UNIT,
    ROW_STEPS = 3 * RL_C1 / 16 /* of a row of taps; rows stay a loop: code that is run once a step has to come from afar */
  };

  typedef tile_sums<TILE_CHANNELS * TILE_K / THREADS> weight_sums;

  static __device__ __forceinline__ int out_at(int y, int x) { return y * OUT_ROW + x * OUT_PITCH; }

  static __device__ __forceinline__ void prepare_weights(const value *, value *) {}
  static __device__ __forceinline__ void unpool(int pixel, int channel, uchar4 code, float4 d, value *d_out) {
    for (int at = 0; at < 4; at++)
      store4(&d_out[out_at(pixel / RL_P2 * 2 + at / 2, pixel % RL_P2 * 2 + at % 2) + channel],
             make_float4(code.x == at ? d.x : 0, code.y == at ? d.y : 0, code.z == at ? d.z : 0, code.w == at ? d.w : 0));
  }

  /* Pixel i of 16 of the pools 4 · tile …, as they stand in a product: upper ones before lower ones, left before right there. */
  static __device__ __forceinline__ int pool_y(int tile, int i) { return (tile * 4 + i % 4) / RL_P2 * 2 + i / 8; }
  static __device__ __forceinline__ int pool_x(int tile, int i) { return (tile * 4 + i % 4) % RL_P2 * 2 + i / 4 % 2; }

  /* A warp has four pools × 32 channels. */
  template <class Sink>
  static __device__ __forceinline__ void conv2_forward(const value *in, const value *weights, float *, Sink sink) {
    if (warp() >= FORWARD_WARPS) return;
    const int row = lane() % 16;
    const uint32_t a_row =
                       shared_address(&in[(pool_y(warp(), row) * RL_P1 + pool_x(warp(), row)) * IN_PITCH + lane() / 16 * UNIT]),
                   b_row = shared_address(&weights[(lane() / 16 * 8 + lane() % 8) * WEIGHT_PITCH + lane() / 8 % 2 * UNIT]);
    float sum[4][4] = {};
#pragma unroll 1
    for (int dy = 0; dy < 3; dy++)
#pragma unroll
      for (int k = 0; k < ROW_STEPS; k++) {
        uint32_t a[4], by[2][4];
        ldmatrix_x4(a, a_row + ((dy * RL_P1 + k / 2) * IN_PITCH + k % 2 * 16) * 2);
        for (int i = 0; i < 2; i++) ldmatrix_x4(by[i], b_row + (i * 16 * WEIGHT_PITCH + (dy * ROW_STEPS + k) * 16) * 2);
        for (int i = 0; i < 4; i++) mma_m16n8k16(sum[i], a, &by[i / 2][i % 2 * 2]);
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

  /* A warp has 16 output channels × a row of taps of 16 input channels, in three units of 16 of the 288 columns. What is summed
   * at once are 16 pixels: four rows of every third column. */
  enum { UNITS = 3 };
  static __device__ __forceinline__ int first_channel() { return warp() / 6 * 16; }
  static __device__ __forceinline__ int unit(int tap) { return (warp() % 3 * 3 + tap) * 2 + warp() / 3 % 2; }

  static __device__ __forceinline__ weight_sums init_weight_sums(float *) { return {}; }

  static __device__ __forceinline__ void conv2_weight_gradient(const value *in, const value *d_out, float *, weight_sums &sums) {
    const int a = lane() / 16 * 8 + lane() % 8, b = lane() % 16; /* of the pixels */
    const uint32_t a_row = shared_address(&d_out[out_at(a % 4, a / 4 * 3) + first_channel() + lane() / 8 % 2 * UNIT]),
                   b_row = shared_address(
                       &in[((warp() % 3 + b % 4) * RL_P1 + b / 4 * 3) * IN_PITCH + warp() / 3 % 2 * 16 + lane() / 16 * UNIT]);
#pragma unroll 1
    for (int top = 0; top < RL_H2; top += 4) {
      uint32_t by[3][4];
#pragma unroll
      for (int x = 0; x < 3 + 2; x++) {
        ldmatrix_x4_trans(by[x % 3], b_row + (top * RL_P1 + x) * IN_PITCH * 2);
        if (x < 2) continue;
        uint32_t gradient[4];
        ldmatrix_x4_trans(gradient, a_row + out_at(top, x - 2) * 2);
        for (int tap = 0; tap < UNITS; tap++)
          for (int c = 0; c < 2; c++) mma_m16n8k16(&sums.of[(tap * 2 + c) * 4], gradient, &by[(x - 2 + tap) % 3][c * 2]);
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
        store4(&to[(first_channel() + half * 8 + lane() / 4) * TILE_K + unit(i) * 16 + odd * 8 + lane() / 2 % 2 * 4],
               odd ? make_float4(other[0], other[1], own[0], own[1]) : make_float4(own[0], own[1], other[0], other[1]));
      }
  }

  enum { LANE_COLUMN = 1, HALF_COLUMN = 2 };

  template <class Ready, class Sink>
  static __device__ __forceinline__ void conv2_input_gradient(const value *weights, const value *d_out, Ready ready, Sink sink) {
    tile_input_gradient<half_tiles>(weights, d_out, ready, sink);
  }

  static __device__ __forceinline__ void add_row(const value *weights, const value *d_out, int row, int tap_row, int channel,
                                                 tile_set_sums sum) {
    const int read = lane() % 8, part = lane() / 8;
    const uint32_t a_row = shared_address(&d_out[out_at(row + read % 4 * TILE_EVERY,
                                                        (read / 4 * LANE_COLUMN + part % 2 * HALF_COLUMN) * TILE_EVERY) +
                                                 part / 2 * UNIT]),
                   b_row = shared_address(&weights[lane() * WEIGHT_PITCH + tap_row * 3 * RL_C1 + channel]);
    uint32_t by[3][4]; /* all output channels */
    for (int dx = 0; dx < 3; dx++) ldmatrix_x4_trans(by[dx], b_row + dx * RL_C1 * 2);
    for (int x = 0; x < TILE_EVERY; x++)
      for (int k = 0; k < 2; k++) {
        uint32_t a[4];
        ldmatrix_x4(a, a_row + (out_at(0, x) + k * 16) * 2);
        for (int dx = 0; dx < 3; dx++) mma_m16n8k16(sum[x + dx], a, &by[dx][k * 2]);
      }
  }

  /* Eight images are the upper half of a product's 16 rows; the lower half repeats them. */
  static __device__ __forceinline__ void multiply_upper(float sum[4], const uint32_t a[2], const uint32_t b[2]) {
    const uint32_t twice[4] = {a[0], a[0], a[1], a[1]};
    mma_m16n8k16(sum, twice, b);
  }

  /* A warp has 16 outputs. */
  template <int SLICE, class Sink>
  static __device__ __forceinline__ void fc1_forward(const value *in, const value *weights, Sink sink) {
    enum { PITCH = SLICE + SLICE_PADDING, STEPS = SLICE / 16, CHAINS = 2 /* of sums, so that they wait for each other less */ };
    if (warp() >= RL_FC1 / 16) return;
    const uint32_t a_row = shared_address(&in[lane() % 8 * PITCH + lane() / 8 * UNIT]),
                   b_row = shared_address(&weights[(warp() * 16 + lane() / 16 * 8 + lane() % 8) * PITCH + lane() / 8 % 2 * UNIT]);
    float sum[CHAINS][2][4] = {};
    uint32_t a[STEPS + 1][2], by[STEPS][4]; /* all at once: nothing else hides their latency */
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
      if (k % 2 == 0) ldmatrix_x4(a[k], a_row + k * 16 * 2); /* of this step and the next */
      ldmatrix_x4(by[k], b_row + k * 16 * 2);
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
    enum { PITCH = SLICE + SLICE_PADDING, STEPS = RL_FC1 / 16, CHAINS = 2 };
    const uint32_t a_row = shared_address(&d_fc1[lane() % 8 * D_FC1_PITCH + lane() / 8 * UNIT]),
                   b_row = shared_address(&weights[lane() % 16 * PITCH + lane() / 16 * UNIT]);
    for (int tile = warp(); tile < SLICE / 16; tile += TILE_WARPS) {
      float sum[CHAINS][2][4] = {};
      uint32_t a[STEPS][2], by[STEPS][4];
#pragma unroll
      for (int k = 0; k < STEPS; k++) {
        if (k % 2 == 0) ldmatrix_x4(a[k], a_row + k * 16 * 2);
        ldmatrix_x4_trans(by[k], b_row + (k * 16 * PITCH + tile * 16) * 2);
      }
#pragma unroll
      for (int k = 0; k < STEPS; k++)
        for (int c = 0; c < 2; c++) multiply_upper(sum[k % CHAINS][c], a[k], &by[k][c * 2]);
      for (int c = 0; c < 2; c++)
        sink(lane() / 4, tile * 16 + c * 8 + lane() % 4 * 2, sum[0][c][0] + sum[1][c][0], sum[0][c][1] + sum[1][c][1]);
    }
  }

  /* A warp has 16 outputs × 16 inputs. */
  static __device__ __forceinline__ void fc1_weight_gradient(const value *d_fc1, const value *in,
                                                             float sums[PAIRS_PER_THREAD][2]) {
#pragma unroll
    for (int k = 0; k < TILE_BATCH; k += 16) {
      uint32_t a[4], by[4];
      ldmatrix_x4_trans(a, shared_address(&d_fc1[(k + lane() / 16 * 8 + lane() % 8) * D_FC1_TILE_PITCH + lane() / 8 % 2 * UNIT]));
      ldmatrix_x4_trans(by, shared_address(&in[(k + lane() % 16) * FC1_IN_TILE_PITCH + warp() * 16 + lane() / 16 * UNIT]));
      for (int c = 0; c < 2; c++) mma_m16n8k16(sums[c * 2], a, &by[c * 2]); /* four sums: two pairs */
    }
  }

  static __device__ __forceinline__ int tile_row(int i) { return i % 2 * 8 + lane() / 4; }
  static __device__ __forceinline__ int tile_column(int i) { return warp() * 16 + i / 2 * 8 + lane() % 4 * 2; }
};

#endif
