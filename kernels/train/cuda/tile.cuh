/* The matrix products of one block of the engine "persistent", as an interface between its kernels (persistent_kernels.cu) and
 * the formats half_tile_format (tile_half.cuh), float_tile_format (tile_float.cuh) and tensor_float_tile_format
 * (tile_tensor_float.cuh). A format is a struct of constants and static functions; the kernels are templates over it.
 *
 * Partition: a block computes one image and TILE_CHANNELS of conv2's 64 output channels; for fc1, up to TILE_IMAGES images, all
 * 128 outputs and a slice of SLICE inputs; for fc1's weight gradient, a tile of TILE_ROWS × TILE_COLUMNS weights, TILE_BATCH
 * images at a time.
 *
 *   typedef … value;            type of activations, multiplied weights and stored gradients; converts from and to float
 *   enum {
 *     THREADS,                  threads of a block
 *     IN_PITCH,                 in[14 · 14 pixels][IN_PITCH], 32 input channels. A pitch is the distance between rows in shared
 *                               memory in values, a multiple of 16 bytes
 *     LOADED_WEIGHT_PITCH,      conv2's weights as loaded: loaded[TILE_CHANNELS][LOADED_WEIGHT_PITCH], 9 taps × 32 input channels
 *     WEIGHT_VALUES,            size of conv2's weights as multiplied
 *     D_OUT_VALUES,             size of d_out, the gradient of conv2's product; its layout is the format's
 *     FORWARD_SCRATCH_FLOATS,   scratch of conv2_forward; 0: conv2 multiplies the weights as loaded, else transformed ones
 *     BACKWARD_SCRATCH_FLOATS,  scratch of conv2_weight_gradient
 *     FORWARD_EXCHANGE_FLOATS,  scratch of conv2_forward if FORWARD_SCRATCH_FLOATS is 0
 *     FORWARD_WARPS,            warps 0 … FORWARD_WARPS - 1 compute conv2_forward. If warps remain, they load weights meanwhile
 *     SEPARATE_MASTER_WEIGHTS,  1: value is rounded, so that FP32 master weights of fc1 are kept beside the multiplied ones
 *     SLICE_PADDING,            rows of a slice are SLICE + SLICE_PADDING apart: fc1's weights [128], its inputs and their
 *                               gradients [TILE_IMAGES]
 *     D_FC1_PITCH,              d_fc1[TILE_IMAGES][D_FC1_PITCH], 128 outputs
 *     D_FC1_TILE_PITCH,         for fc1's weight gradient: d_fc1[TILE_BATCH][D_FC1_TILE_PITCH], TILE_ROWS outputs, and
 *     FC1_IN_TILE_PITCH,        in[TILE_BATCH][FC1_IN_TILE_PITCH], TILE_COLUMNS inputs
 *     FC1_GRADIENT_WARPS,       warps 0 … FC1_GRADIENT_WARPS - 1 compute fc1's weight gradient,
 *     PAIRS_PER_THREAD          that many pairs of adjacent weights in each thread
 *   };
 *   typedef … weight_sums;      a thread's state of conv2's weight gradient over the images of a step
 *
 * All threads call a function with the same pointers, aligned to 16 bytes. The caller synchronises the block between writing an
 * operand and the call, and between the call and overwriting the operand; conv2's functions may also call __syncthreads. Rows
 * beyond the valid images may hold anything, NaN included, and must not affect valid ones. Sums are FP32, in an order that
 * depends on the position alone. A sink is called exactly once for each element, by any thread; its pairs a, b belong to the
 * given even index and the next one.
 *
 *   prepare_weights(const value *loaded, value *weights);     transforms loaded weights into multiplied ones, if there is scratch
 *   template <class Sink> conv2_forward(const value *in, const value *weights, float *scratch, Sink sink);
 *       sink(pooled pixel, channel, const float a[4], const float b[4]): the four products of a 2×2 window, row-major
 *   unpool(int pixel, int channel, uchar4 code, float4 d, value *d_out);      writes d_out of a window for four channels: d at
 *       the position that the code names (kernels.h), else 0
 *   weight_sums init_weight_sums(float *row);                 row[TILE_CHANNELS][9 · 32] in global memory
 *   conv2_weight_gradient(value *in, const value *d_out, float *scratch, weight_sums &sums);   adds an image. Overwrites `in` if
 *       there is scratch
 *   store_weight_gradient(const weight_sums &sums, float *row);               unless the sums are in `row` already
 *   template <class BeforeSink, class Sink> conv2_input_gradient(const value *weights, value *d_out, BeforeSink before_sink, Sink
 * sink); sink(pixel of 14×14, input channel, a, b): the part from this block's output channels. May overwrite d_out. All threads
 *       call before_sink() before any calls sink. If there is scratch, it must follow the weight gradient, whose scratch the sink
 *       may then overwrite
 *   template <int SLICE, class Sink> fc1_forward(const value *in, const value *weights, Sink sink);
 *       sink(image, output, a, b): the product over the slice
 *   template <int SLICE, class Sink> fc1_backward(const value *d_fc1, const value *weights, Sink sink);
 *       sink(image, input of the slice, a, b): d_fc1 · weights
 *   fc1_weight_gradient(const value *d_fc1, const value *in, float sums[PAIRS_PER_THREAD][2]);   adds TILE_BATCH images; called
 *       by warps 0 … FC1_GRADIENT_WARPS - 1
 *   tile_row(i), tile_column(i)                               position of this thread's pair i in the tile */
#ifndef RL_TRAIN_CUDA_TILE_H
#define RL_TRAIN_CUDA_TILE_H

#include "train/cuda/kernels.h"
#include "train/cuda/vector.cuh"

enum {
  TILE_THREADS = 384,
  TILE_WARPS = TILE_THREADS / 32,
  TILE_CHANNELS = RL_C2 / 2,
  TILE_TAPS = 9,
  TILE_K = TILE_TAPS * RL_C1, /* 288 products in each sum of conv2 */
  TILE_IMAGES = 8,
  TILE_ROWS = 16,
  TILE_COLUMNS = 144, /* fc1.weight is 8 × 16 tiles of TILE_ROWS × TILE_COLUMNS */
  TILE_BATCH = 64
};

/* Defaults that formats share. */
struct tile_format {
  enum { THREADS = TILE_THREADS, FC1_GRADIENT_WARPS = TILE_COLUMNS / 16, PAIRS_PER_THREAD = 4 };
  static __device__ __forceinline__ int lane() { return threadIdx.x % 32; }
  static __device__ __forceinline__ int warp() { return threadIdx.x / 32; }
  /* Returns x. The compiler does not see that, so that it computes addresses from the result where they are used instead of
   * hoisting them out of a loop, which costs registers. */
  static __device__ __forceinline__ int optimization_barrier(int x) {
    asm volatile("" : "+r"(x));
    return x;
  }
};

template <int COUNT> struct register_sums { float values[COUNT]; };

/* conv2's input gradient as mma products with N = 8: d_out · weights, without the border of zeros. Row y of d_out contributes to
 * rows y, y + 1, y + 2 of the result, one for each row of taps; columns likewise. A set is the 16 pixels of rows r, r + 3, r + 6,
 * r + 9 and columns c, c + 3, c + 6, c + 9. Row set r of d_out with row of taps t contributes to row set r + t of the result
 * (0 to 4).
 *
 * A warp computes eight input channels and three of the nine pairs (r, t): one that it adds to sum[0], two that it adds to
 * sum[1]. These hold sets 2 and 2, 0 and 3, or 4 and 1 of the result; sets that share pixels are added at the end.
 *
 * F::accumulate_tap_row(weights, d_out, row, tap_row, channel, sum) adds set `row` of d_out with one row of taps; sum[x] is the
 * set of columns x, x + 3, …. Rows 0-3 of the A fragment are the four pixels of a column of the set. Rows 4-7 are a column
 * LANE_COLUMN_STEP columns of the set further right; rows 8-15 are HALF_COLUMN_STEP columns of the set further right than rows
 * 0-7. A format has steps of 1 and 2 or of 2 and 1. */
enum { FRAGMENT_COLUMN_STRIDE = 3, TILE_SET_COLUMNS = 5 };
typedef float tile_accumulators[TILE_SET_COLUMNS][4];

/* sum[x + 3] holds the pixels of sum[x] one column of the set further right: adds them to the lower half of the fragment or to
 * the lane 16 further on, whichever holds that column. */
template <class F> static __device__ __forceinline__ void tile_merge_columns(tile_accumulators sum) {
  const bool right = F::lane() >= 16;
  for (int x = 0; x < TILE_SET_COLUMNS - FRAGMENT_COLUMN_STRIDE; x++)
    for (int c = 0; c < 2; c++) {
      const float *upper = &sum[x + FRAGMENT_COLUMN_STRIDE][c], *lower = upper + 2;
      const float below = __shfl_xor_sync(0xffffffffu, *lower, 16);
      if (F::HALF_COLUMN_STEP == 1) {
        sum[x][2 + c] += *upper;
        if (right) sum[x][c] += below;
      } else {
        const float above = __shfl_xor_sync(0xffffffffu, *upper, 16);
        sum[x][2 + c] += right ? below : above;
        if (right) sum[x][c] += above;
      }
    }
}

template <class F, class Sink>
static __device__ __forceinline__ void tile_sink_rows(const tile_accumulators sum, int y, int lane, int channel, Sink sink) {
  for (int x = 0; x < TILE_SET_COLUMNS; x++)
    for (int i = 0; i < 2; i++) {
      const int column = lane / 16 * F::LANE_COLUMN_STEP + i * F::HALF_COLUMN_STEP;
      if (x < FRAGMENT_COLUMN_STRIDE || column == 3)
        sink(y * RL_P1 + x + column * FRAGMENT_COLUMN_STRIDE, channel, sum[x][i * 2], sum[x][i * 2 + 1]);
    }
}

template <class F, class BeforeSink, class Sink>
static __device__ __forceinline__ void tile_input_gradient(const typename F::value *weights, const typename F::value *d_out,
                                                           BeforeSink before_sink, Sink sink) {
  const int pairs = F::warp() % 3, channel = F::warp() / 3 * 8;
  const int set_row[2] = {pairs == 0   ? 2
                          : pairs == 1 ? 0
                                       : 4,
                          pairs == 0   ? 2
                          : pairs == 1 ? 3
                                       : 1}; /* r + t of sum[0] and sum[1] */
  const int lane_row = F::lane() / 4 % 4;    /* this lane's row of a set */
  tile_accumulators sum[2] = {};
  const int single = pairs == 2 ? 2 : 0; /* r of the pair in sum[0] */
  F::accumulate_tap_row(weights, d_out, single, set_row[0] - single, channel, sum[0]);
#pragma unroll 1
  for (int row = pairs == 2 ? 0 : 1; row != (pairs == 2 ? 2 : 3); row++)
    F::accumulate_tap_row(weights, d_out, row, set_row[1] - row, channel, sum[1]);
  for (int i = 0; i < 2; i++) tile_merge_columns<F>(sum[i]);
  /* Adds rows of sum[1] to the same rows of sum[0], which lie in this lane's row of the set, the one above or the one below. */
  const int row_shift = pairs == 0 ? 0 : pairs == 1 ? -1 : 1;
  const bool in_both = lane_row + row_shift >= 0 && lane_row + row_shift < 4;
  for (int x = 0; x < TILE_SET_COLUMNS; x++)
    for (int i = 0; i < 4; i++) {
      if (x >= FRAGMENT_COLUMN_STRIDE && i < 2) continue; /* merged already */
      const float v = __shfl_sync(0xffffffffu, sum[1][x][i], F::lane() + row_shift * 4);
      if (in_both) sum[0][x][i] += v;
    }
  before_sink();
  const int lane = F::optimization_barrier(F::lane()), pair = channel + lane % 4 * 2;
  tile_sink_rows<F>(sum[0], F::optimization_barrier(set_row[0]) + lane_row * FRAGMENT_COLUMN_STRIDE, lane, pair, sink);
  if (lane_row - row_shift < 0 || lane_row - row_shift > 3)
    tile_sink_rows<F>(sum[1], F::optimization_barrier(set_row[1]) + lane_row * FRAGMENT_COLUMN_STRIDE, lane, pair, sink);
}

#endif
