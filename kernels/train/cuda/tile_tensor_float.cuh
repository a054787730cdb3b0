/* tile.cuh in TF32: m16n8k8 products. Where a product wants rows of its operand as they lie, they
 * come through ldmatrix or as pairs; where it wants them transposed, as the floats or pairs that neighbouring lanes find side by
 * side, and the order of channels inside of a product is chosen so.
 *
 * conv2's operands are read once for the three taps of a row: pixels are taken every third or sixth column, so that the next
 * tap's are those of the next set, which are in registers already. A pixel is an odd number of 16-byte units, a row of 14 pixels
 * therefore 6 banks' units from the next modulo 8: any four rows, neighbours or every third, put 32 bytes each into different
 * banks, and two columns three apart interleave. */
#ifndef RL_TRAIN_CUDA_TILE_TENSOR_FLOAT_H
#define RL_TRAIN_CUDA_TILE_TENSOR_FLOAT_H

#include "train/cuda/mma.cuh"
#include "train/cuda/tensor_float.cuh"
#include "train/cuda/tile.cuh"

struct tensor_float_tiles : tile_format {
  typedef tensor_float value;
  enum {
    UNIT = 4, /* floats in 16 bytes */
    IN_PITCH = RL_C1 + UNIT,
    WEIGHT_PITCH = TILE_K + UNIT,
    RAW_WEIGHT_PITCH = WEIGHT_PITCH,
    WEIGHT_VALUES = TILE_CHANNELS * WEIGHT_PITCH,
    OUT_PITCH = TILE_CHANNELS + 2 * UNIT,
    OUT_ROW = RL_H2 * OUT_PITCH + UNIT,
    D_OUT_VALUES = RL_H2 * OUT_ROW,
    FORWARD_SCRATCH_FLOATS = 0,
    FORWARD_EXCHANGE_FLOATS = THREADS * 12,
    BACKWARD_SCRATCH_FLOATS = 0,
    FORWARD_WARPS = TILE_WARPS,
    SEPARATE_MASTER_WEIGHTS = 1,
    SLICE_PADDING = UNIT,
    D_FC1_PITCH = RL_FC1 + 2 * UNIT,
    D_FC1_TILE_PITCH = TILE_ROWS + 2 * UNIT,
    FC1_IN_TILE_PITCH = TILE_COLUMNS + 2 * UNIT,
    K = 8 /* of a product */
  };

  typedef tile_sums<TILE_CHANNELS * TILE_K / THREADS> weight_sums;

  /* A lane's place in the fragments: row or column `across`, elements `along` and along + 4 of what is summed. */
  static __device__ __forceinline__ int across() { return lane() / 4; }
  static __device__ __forceinline__ int along() { return lane() % 4; }

  static __device__ __forceinline__ uint32_t bits(const value *at) { return *(const uint32_t *)at; }
  static __device__ __forceinline__ void load_pair(uint32_t &a, uint32_t &b, const value *at) {
    const uint2 v = *(const uint2 *)at;
    a = v.x, b = v.y;
  }

  /* Of a column of a product a lane has rows across() and 8 more; of both together, it and its neighbour get a pair of rows each:
   * paired_row() and the next. */
  static __device__ __forceinline__ int paired_row() { return across() / 2 * 2 + across() % 2 * 8; }
  static __device__ __forceinline__ void pair_rows(float low, float high, float &even, float &odd) {
    const bool upper = across() % 2;
    const float own = upper ? high : low, other = __shfl_xor_sync(0xffffffffu, upper ? low : high, 4);
    even = upper ? other : own;
    odd = upper ? own : other;
  }

  /* --- the gradient of conv2's product, without a border. Of eight channels those that are even come first, so that the rows of
   * weights that a product takes at once are every second. --------------------------------------------------------------- */

  static __device__ __forceinline__ int out_at(int y, int x) { return y * OUT_ROW + x * OUT_PITCH; }
  static __device__ __forceinline__ int out_channel(int place) { return place % 4 * 2 + place / 4; } /* of eight */

  static __device__ __forceinline__ void prepare_weights(const value *, value *) {}
  static __device__ __forceinline__ void unpool(int pixel, int channel, uchar4 code, float4 d, value *d_out) {
    const tensor_float x(d.x), y(d.y), z(d.z), w(d.w);
    for (int at = 0; at < 4; at++) {
      value *to = &d_out[out_at(pixel / RL_P2 * 2 + at / 2, pixel % RL_P2 * 2 + at % 2) + channel / 8 * 8 + channel % 8 / 2];
      *(float2 *)to = make_float2(code.x == at ? x.value : 0, code.z == at ? z.value : 0);
      *(float2 *)(to + 4) = make_float2(code.y == at ? y.value : 0, code.w == at ? w.value : 0);
    }
  }

  /* --- forward: weights · pixelsᵀ. A warp has 16 channels × 4 rows of 12 pixels, in sets of columns 0 and 3, 1 and 4, 2 and 5,
   * then those six further right, and sums over half of the input channels; two warps then add up a half row each. ------- */

  enum {
    SETS = 3,
    STEP = 3 /* columns between the two of a set */,
    READ_SETS = SETS + 2,
    HALF_ROW = SETS * 2,
    HALF_WARPS = TILE_WARPS / 2
  };

  template <class Sink>
  static __device__ __forceinline__ void conv2_forward(const value *in, const value *weights, float *scratch, Sink sink) {
    const int top = warp() % 3 * 4, channel = warp() / 3 % 2 * 16, half = warp() / HALF_WARPS, row = lane() % 8,
              part = lane() / 8;
    const uint32_t a_row =
                       shared_address(&weights[(channel + part % 2 * 8 + row) * WEIGHT_PITCH + half * 2 * K + part / 2 * UNIT]),
                   b_row =
                       shared_address(&in[((top + row % 4) * RL_P1 + row / 4 * STEP) * IN_PITCH + half * 2 * K + part * UNIT]);
    float sum[2][SETS][4] = {};
#pragma unroll
    for (int dy = 0; dy < 3; dy++) {
      uint32_t by[2][READ_SETS][4];
      for (int right = 0; right < 2; right++)
        for (int i = 0; i < READ_SETS; i++) ldmatrix_x4(by[right][i], b_row + (dy * RL_P1 + right * HALF_ROW + i) * IN_PITCH * 4);
      for (int k = 0; k < 2; k++)
        for (int dx = 0; dx < 3; dx++) {
          uint32_t a[4];
          ldmatrix_x4(a, a_row + ((dy * 3 + dx) * RL_C1 + k * K) * 4);
          for (int right = 0; right < 2; right++)
            for (int i = 0; i < SETS; i++) mma_m16n8k8_tf32(sum[right][i], a, &by[right][i + dx][k * 2]);
        }
    }
    add_halves(sum, half, scratch);
    sink_pools(sum[0], top / 2 + along() % 2, half * 3, channel, sink);
  }

  /* sum[0]: of this warp's half row, over all channels. */
  static __device__ __forceinline__ void add_halves(float sum[2][SETS][4], int half, float *scratch) {
    float4 *mail = (float4 *)scratch + warp() % HALF_WARPS * 2 * SETS * 32 + lane();
    for (int i = 0; i < SETS; i++)
      mail[(half * SETS + i) * 32] = make_float4(half ? sum[0][i][0] : sum[1][i][0], half ? sum[0][i][1] : sum[1][i][1],
                                                 half ? sum[0][i][2] : sum[1][i][2], half ? sum[0][i][3] : sum[1][i][3]);
    asm volatile("bar.sync %0, 64;" ::"r"(warp() % HALF_WARPS + 1) : "memory");
    for (int i = 0; i < SETS; i++) {
      const float4 v = mail[((1 - half) * SETS + i) * 32];
      const float other[4] = {v.x, v.y, v.z, v.w};
      for (int c = 0; c < 4; c++) sum[0][i][c] = (half ? sum[1][i][c] : sum[0][i][c]) + other[c];
    }
  }

  /* A lane has two rows of columns 0, 1 and 2, or where `right` 3, 4 and 5: a pool of its own and half of the middle one. */
  template <class Sink>
  static __device__ __forceinline__ void sink_pools(const float sum[SETS][4], int y, int x, int channel, Sink sink) {
    const bool right = along() >= 2;
    float even[SETS][2], odd[SETS][2], beside[2][2];
    for (int i = 0; i < SETS; i++)
      for (int lower = 0; lower < 2; lower++) pair_rows(sum[i][lower], sum[i][2 + lower], even[i][lower], odd[i][lower]);
    for (int lower = 0; lower < 2; lower++) {
      beside[0][lower] = __shfl_xor_sync(0xffffffffu, even[0][lower], 2);
      beside[1][lower] = __shfl_xor_sync(0xffffffffu, odd[0][lower], 2);
    }
    float own[2][4], middle[2][4];
    for (int at = 0; at < 4; at++) {
      const int i = at % 2, lower = at / 2;
      own[0][at] = right ? even[1 + i][lower] : even[i][lower];
      own[1][at] = right ? odd[1 + i][lower] : odd[i][lower];
      middle[0][at] = i ? beside[0][lower] : even[2][lower];
      middle[1][at] = i ? beside[1][lower] : odd[2][lower];
    }
    sink(y * RL_P2 + x + right * 2, channel + paired_row(), own[0], own[1]);
    if (!right) sink(y * RL_P2 + x + 1, channel + paired_row(), middle[0], middle[1]);
  }

  /* --- weight gradient: inᵀ · d_out. A warp has a row of taps, 16 input and 16 output channels. What is summed goes in eights:
   * four rows of a column and of the sixth column behind it. ------------------------------------------------------------- */

  enum { COLUMNS = 6 };
  static __device__ __forceinline__ int tap_row() { return warp() % 3; }
  static __device__ __forceinline__ int first_input() { return warp() / 3 % 2 * 16; }
  static __device__ __forceinline__ int first_output() { return warp() / 6 * 16; }

  static __device__ __forceinline__ weight_sums init_weight_sums(float *) { return {}; }

  static __device__ __forceinline__ void conv2_weight_gradient(const value *in, const value *d_out, float *, weight_sums &sums) {
    const int y = along() / 2 * 2, behind = along() % 2 * COLUMNS; /* of the first four; the others are a row below */
    const value *a_from = &in[((tap_row() + y) * RL_P1 + behind) * IN_PITCH + first_input() + across() * 2],
                *b_from = &d_out[out_at(y, behind) + first_output() + across()];
#pragma unroll 1
    for (int top = 0; top < RL_H2; top += 4) {
      uint32_t a[3][4];
#pragma unroll
      for (int x = 0; x < COLUMNS + 2; x++) {
        const value *at = &a_from[(top * RL_P1 + x) * IN_PITCH];
        load_pair(a[x % 3][0], a[x % 3][1], at);
        load_pair(a[x % 3][2], a[x % 3][3], at + RL_P1 * IN_PITCH);
        if (x < 2) continue;
        for (int i = 0; i < 2; i++) {
          const value *gradient = &b_from[out_at(top, x - 2) + i * 8];
          const uint32_t by[2] = {bits(gradient), bits(gradient + OUT_ROW)};
          for (int dx = 0; dx < 3; dx++) mma_m16n8k8_tf32(&sums.of[(dx * 2 + i) * 4], a[(x - 2 + dx) % 3], by);
        }
      }
    }
  }

  static __device__ __forceinline__ void store_weight_gradient(const weight_sums &sums, float *to) {
    for (int dx = 0; dx < 3; dx++)
      for (int i = 0; i < 2; i++)
        for (int c = 0; c < 2; c++)
          *(float2 *)&to[(first_output() + i * 8 + out_channel(along() * 2 + c)) * TILE_K + (tap_row() * 3 + dx) * RL_C1 +
                         first_input() + across() * 2] =
              make_float2(sums.of[(dx * 2 + i) * 4 + c], sums.of[(dx * 2 + i) * 4 + 2 + c]);
  }

  /* --- input gradient (tile.cuh) ---------------------------------------------------------------------------------------- */

  enum { LANE_COLUMN = 2, HALF_COLUMN = 1 };

  template <class Ready, class Sink>
  static __device__ __forceinline__ void conv2_input_gradient(const value *weights, const value *d_out, Ready ready, Sink sink) {
    tile_input_gradient<tensor_float_tiles>(weights, d_out, ready, sink);
  }

  static __device__ __forceinline__ void add_row(const value *weights, const value *d_out, int row, int tap_row, int channel,
                                                 tile_set_sums sum) {
    const int read = lane() % 8, part = lane() / 8;
    const uint32_t a_row = shared_address(
        &d_out[out_at(row + read % 4 * TILE_EVERY, (read / 4 * LANE_COLUMN + part % 2 * HALF_COLUMN) * TILE_EVERY) +
               part / 2 * UNIT]);
    const value *b_from = &weights[along() * 2 * WEIGHT_PITCH + tap_row * 3 * RL_C1 + channel + across()];
#pragma unroll 2
    for (int k = 0; k < TILE_CHANNELS; k += K) {
      uint32_t by[3][2];
      for (int dx = 0; dx < 3; dx++)
        for (int i = 0; i < 2; i++) by[dx][i] = bits(&b_from[(k + i) * WEIGHT_PITCH + dx * RL_C1]);
      for (int x = 0; x < TILE_EVERY; x++) {
        uint32_t a[4];
        ldmatrix_x4(a, a_row + (out_at(0, x) + k) * 4);
        for (int dx = 0; dx < 3; dx++) mma_m16n8k8_tf32(sum[x + dx], a, by[dx]);
      }
    }
  }

  /* --- fc1: images are the columns of products -------------------------------------------------------------------------- */

  enum { CHAINS = 2 /* of sums, so that they wait for each other less */ };

  /* A warp has 16 outputs. */
  template <int SLICE, class Sink>
  static __device__ __forceinline__ void fc1_forward(const value *in, const value *weights, Sink sink) {
    enum { PITCH = SLICE + SLICE_PADDING };
    if (warp() >= RL_FC1 / 16) return;
    const int row = lane() % 8, part = lane() / 8;
    const uint32_t a_row = shared_address(&weights[(warp() * 16 + part % 2 * 8 + row) * PITCH + part / 2 * UNIT]),
                   b_row = shared_address(&in[row * PITCH + part * UNIT]);
    float sum[CHAINS][4] = {};
#pragma unroll 3
    for (int k = 0; k < SLICE; k += 2 * K) {
      uint32_t images[4];
      ldmatrix_x4(images, b_row + k * 4);
      for (int i = 0; i < 2; i++) {
        uint32_t a[4];
        ldmatrix_x4(a, a_row + (k + i * K) * 4);
        mma_m16n8k8_tf32(sum[i], a, &images[i * 2]);
      }
    }
    for (int i = 0; i < 2; i++) {
      float even, odd;
      pair_rows(sum[0][i] + sum[1][i], sum[0][2 + i] + sum[1][2 + i], even, odd);
      sink(along() * 2 + i, warp() * 16 + paired_row(), even, odd);
    }
  }

  /* A warp has 16 inputs, 2 i and the next in rows i and i + 8, and 16 more. Neighbouring outputs are summed by the two halves
   * of a product. */
  template <int SLICE, class Sink>
  static __device__ __forceinline__ void fc1_backward(const value *d_fc1, const value *weights, Sink sink) {
    enum { PITCH = SLICE + SLICE_PADDING };
    const value *b_from = &d_fc1[across() * D_FC1_PITCH + along() * 2];
    for (int column = warp() * 16; column < SLICE; column += TILE_WARPS * 16) {
      const value *a_from = &weights[along() * 2 * PITCH + column + across() * 2];
      float sum[CHAINS][4] = {};
#pragma unroll 4
      for (int k = 0; k < RL_FC1; k += K) {
        uint32_t a[4], images[2];
        load_pair(a[0], a[1], &a_from[k * PITCH]);
        load_pair(a[2], a[3], &a_from[(k + 1) * PITCH]);
        load_pair(images[0], images[1], &b_from[k]);
        mma_m16n8k8_tf32(sum[k / K % CHAINS], a, images);
      }
      for (int i = 0; i < 2; i++)
        sink(along() * 2 + i, column + across() * 2, sum[0][i] + sum[1][i], sum[0][2 + i] + sum[1][2 + i]);
    }
  }

  /* A warp has 16 inputs × 16 outputs; outputs are the rows of products: 2 i and the next in rows i and i + 8. */
  static __device__ __forceinline__ void fc1_weight_gradient(const value *d_fc1, const value *in,
                                                             float sums[PAIRS_PER_THREAD][2]) {
    const value *a_from = &d_fc1[along() * D_FC1_TILE_PITCH + across() * 2],
                *b_from = &in[along() * FC1_IN_TILE_PITCH + warp() * 16 + across()];
#pragma unroll 2
    for (int k = 0; k < TILE_BATCH; k += K) {
      uint32_t a[4];
      load_pair(a[0], a[1], &a_from[k * D_FC1_TILE_PITCH]);
      load_pair(a[2], a[3], &a_from[(k + 4) * D_FC1_TILE_PITCH]);
      for (int i = 0; i < 2; i++) {
        const uint32_t by[2] = {bits(&b_from[k * FC1_IN_TILE_PITCH + i * 8]), bits(&b_from[(k + 4) * FC1_IN_TILE_PITCH + i * 8])};
        mma_m16n8k8_tf32(sums[i * 2], a, by); /* four sums: two pairs */
      }
    }
  }

  static __device__ __forceinline__ int tile_row(int i) { return across() * 2 + i % 2; }
  static __device__ __forceinline__ int tile_column(int i) { return warp() * 16 + i / 2 * 8 + along() * 2; }
};

#endif
