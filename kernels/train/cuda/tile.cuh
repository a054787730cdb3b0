/* What one block of the engine "persistent" multiplies, as a contract between its kernel (persistent_kernels.cu) and the formats:
 * half_tiles (tile_half.cuh), float_tiles (tile_float.cuh), tensor_float_tiles (tile_tensor_float.cuh). A format is a struct of
 * constants and static functions; the kernel is a template over it.
 *
 * A block has one image and TILE_CHANNELS of conv2's 64 output channels; of fc1, up to TILE_IMAGES images, all 128 outputs and a
 * slice of SLICE inputs; of fc1's weight gradient, TILE_ROWS × TILE_COLUMNS over TILE_BATCH images at a time.
 *
 *   typedef … value;               of activations, multiplied weights and stored gradients: made of a float, and a float again
 *   enum {
 *     THREADS,                     of a block
 *     IN_PITCH,                    values between rows in shared memory, multiples of 16 bytes: in[P1²][IN_PITCH] of 32
 *                                  channels, 14×14 pixels
 *     RAW_WEIGHT_PITCH, WEIGHT_VALUES,    conv2's weights as they come, raw[TILE_CHANNELS][RAW_WEIGHT_PITCH] of 9 taps × 32 input
 *                                  channels, and as they are multiplied
 *     D_OUT_VALUES,                  d_out, the gradient of conv2's product, in whatever order
 *     FORWARD_SCRATCH_FLOATS,             floats that conv2's functions want for themselves;
 *     BACKWARD_SCRATCH_FLOATS,            0: raw weights are multiplied as they are
 *     FORWARD_EXCHANGE_FLOATS,                floats of its own that conv2_forward gets as scratch where there is no other
 *     FORWARD_WARPS,               that conv2_forward uses, the first: where others are left, those ask for weights while these
 *                                  multiply, and two while the others are at conv1; else all ask for all of them in between
 *     SEPARATE_MASTER_WEIGHTS,               0: weights that are multiplied are as exact as those that are updated
 *     SLICE_PADDING,                   rows of SLICE inputs are SLICE + SLICE_PADDING apart: fc1's weights [128], its inputs and
 *                                  their gradients [TILE_IMAGES]
 *     D_FC1_PITCH,                d_fc1[TILE_IMAGES][D_FC1_PITCH] of 128
 *     D_FC1_TILE_PITCH, FC1_IN_TILE_PITCH,     d_fc1[TILE_BATCH][D_FC1_TILE_PITCH] of TILE_ROWS,
 * in[TILE_BATCH][FC1_IN_TILE_PITCH] of TILE_COLUMNS FC1_GRADIENT_WARPS, PAIRS_PER_THREAD  so many warps, the first, have so many
 * pairs of fc1's weights a thread
 *   };
 *
 *   typedef … weight_sums;         what a thread keeps of conv2's weight gradient over the images of a step: sums, or where
 *                                  they are added to
 *
 * Functions are called by all threads with the same pointers, all 16-byte aligned; what they read was written before a barrier of
 * the block, and nothing that they read is written before the next. Those of conv2 may take barriers themselves. Rows behind the
 * images that there are hold anything, NaN too, and must not touch those that there are. Sums are FP32, in an order that depends
 * on nothing but the position.
 *
 *   prepare_weights(const value *raw, value *weights);                            where there is scratch: raw lies elsewhere
 *   template <class Sink> conv2_forward(const value *in, const value *weights, float *scratch, Sink sink);
 *       sink(pixel of 6×6, channel, const float a[4], const float b[4]): the four products of a pool, row-major, of channel
 *       (even) and the next
 *   unpool(int pixel, int channel, uchar4 code, float4 d, value *d_out);          the gradient behind a pool, four channels,
 *                                                                                 as their codes say
 *   weight_sums init_weight_sums(float *row);                                           row[TILE_CHANNELS][9 · 32] of memory
 *   conv2_weight_gradient(value *in, const value *d_out, float *scratch, weight_sums &sums);    an image more; in is lost where
 *                                                                                               there is scratch
 *   store_weight_gradient(const weight_sums &sums, float *row);                   unless they are there
 *   template <class Ready, class Sink> conv2_input_gradient(const value *weights, value *d_out, Ready ready, Sink sink);
 *       sink(pixel of 14×14, channel, a, b): of input channel (even) and the next, from this block's output channels alone. May
 *       write over d_out. Behind the weight gradient, whose scratch the sink may use once all threads have called ready()
 *   template <int SLICE, class Sink> fc1_forward(const value *in, const value *weights, Sink sink);
 *       sink(image, output, a, b): the product over the slice for output (even) and the next
 *   template <int SLICE, class Sink> fc1_backward(const value *d_fc1, const value *weights, Sink sink);
 *       sink(image, k, a, b): d_fc1 · weights for inputs k (even, in the slice) and the next
 *   fc1_weight_gradient(const value *d_fc1, const value *in, float sums[PAIRS_PER_THREAD][2]);       adds TILE_BATCH images; the
 *                                                                                              warps in use alone
 *   tile_row(i), tile_column(i)                                                   of pair i of this thread in the tile
 *
 * Each product goes to its sink exactly once, whichever thread has it. */
#ifndef RL_TRAIN_CUDA_TILE_H
#define RL_TRAIN_CUDA_TILE_H

#include "train/cuda/kernels.h"
#include "train/cuda/vector.cuh"

enum {
  TILE_THREADS = 384,
  TILE_WARPS = TILE_THREADS / 32,
  TILE_CHANNELS = RL_C2 / 2,
  TILE_TAPS = 9,
  TILE_K = TILE_TAPS * RL_C1, /* 288: what a product of conv2 sums up */
  TILE_IMAGES = 8,
  TILE_ROWS = 16,
  TILE_COLUMNS = 144, /* 8 × 16 such tiles are fc1.weight */
  TILE_BATCH = 64
};

/* What formats have that have no reason for something else. */
struct tile_format {
  enum { THREADS = TILE_THREADS, FC1_GRADIENT_WARPS = TILE_COLUMNS / 16, PAIRS_PER_THREAD = 4 };
  static __device__ __forceinline__ int lane() { return threadIdx.x % 32; }
  static __device__ __forceinline__ int warp() { return threadIdx.x / 32; }
  /* The same number, though the compiler can't know: addresses made of it are made where they are wanted, instead of in front of
   * all steps, where they do not fit into registers. */
  static __device__ __forceinline__ int optimization_barrier(int of) {
    asm volatile("" : "+r"(of));
    return of;
  }
};

template <int COUNT> struct tile_sums { float of[COUNT]; };

/* conv2's input gradient by products of 16×8: d_out · weights, without the border. Each row of d_out goes into three rows of
 * the result, each column into three columns. Rows r, r + 3, r + 6, r + 9 and columns likewise make a set of 16 pixels, the sums'
 * sets begin at rows and columns 0 to 4. A warp has eight input channels, and of the nine pairs (row of d_out's set, row of taps)
 * those three that end in rows 2, or 0 and 3, or 4 and 1: the first into sums[0], the others into sums[1]. What two sets have of
 * one pixel is added at the end.
 *
 * F::add_row(weights, d_out, row, tap_row, channel, sums[5]) adds a set of d_out's rows through a row of taps. Of a product's
 * rows the first four are the rows of a set's column; columns go on F::LANE_COLUMN of them further right in lanes 16 and up, and
 * F::HALF_COLUMN further in the lower half of the product: 1 and 2, or 2 and 1. */
enum { TILE_EVERY = 3, TILE_SUM_COLUMNS = 5 };
typedef float tile_set_sums[TILE_SUM_COLUMNS][4];

/* Column x + 3 of the sums is the next one of column x: of the lower half of the product, or of the lane that has the columns
 * behind. */
template <class F> static __device__ __forceinline__ void tile_add_columns(tile_set_sums sum) {
  const bool right = F::lane() >= 16;
  for (int x = 0; x < TILE_SUM_COLUMNS - TILE_EVERY; x++)
    for (int c = 0; c < 2; c++) {
      const float *upper = &sum[x + TILE_EVERY][c], *lower = upper + 2;
      const float below = __shfl_xor_sync(0xffffffffu, *lower, 16);
      if (F::HALF_COLUMN == 1) {
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
static __device__ __forceinline__ void tile_sink_rows(const tile_set_sums sum, int y, int lane, int channel, Sink sink) {
  for (int x = 0; x < TILE_SUM_COLUMNS; x++)
    for (int i = 0; i < 2; i++) {
      const int column = lane / 16 * F::LANE_COLUMN + i * F::HALF_COLUMN;
      if (x < TILE_EVERY || column == 3) sink(y * RL_P1 + x + column * TILE_EVERY, channel, sum[x][i * 2], sum[x][i * 2 + 1]);
    }
}

template <class F, class Ready, class Sink>
static __device__ __forceinline__ void tile_input_gradient(const typename F::value *weights, const typename F::value *d_out,
                                                           Ready ready, Sink sink) {
  const int group = F::warp() % 3, channel = F::warp() / 3 * 8;
  const int first[2] = {group == 0 ? 2 : group == 1 ? 0 : 4, group == 0 ? 2 : group == 1 ? 3 : 1}; /* rows of the sums' sets */
  const int down = F::lane() / 4 % 4;                                                              /* this lane's row in a set */
  tile_set_sums sum[2] = {};
  const int alone = group == 2 ? 2 : 0; /* of d_out's */
  F::add_row(weights, d_out, alone, first[0] - alone, channel, sum[0]);
#pragma unroll 1
  for (int row = group == 2 ? 0 : 1; row != (group == 2 ? 2 : 3); row++)
    F::add_row(weights, d_out, row, first[1] - row, channel, sum[1]);
  for (int i = 0; i < 2; i++) tile_add_columns<F>(sum[i]);
  /* sums[0] of a row += sums[1] of the same row: of this lane's, of the one above or of the one below. */
  const int other = group == 0 ? 0 : group == 1 ? -1 : 1;
  const bool both = down + other >= 0 && down + other < 4;
  for (int x = 0; x < TILE_SUM_COLUMNS; x++)
    for (int i = 0; i < 4; i++) {
      if (x >= TILE_EVERY && i < 2) continue; /* no pixel's */
      const float v = __shfl_sync(0xffffffffu, sum[1][x][i], F::lane() + other * 4);
      if (both) sum[0][x][i] += v;
    }
  ready();
  const int fresh = F::optimization_barrier(F::lane()), pair = channel + fresh % 4 * 2;
  tile_sink_rows<F>(sum[0], F::optimization_barrier(first[0]) + down * TILE_EVERY, fresh, pair, sink);
  if (down - other < 0 || down - other > 3)
    tile_sink_rows<F>(sum[1], F::optimization_barrier(first[1]) + down * TILE_EVERY, fresh, pair, sink);
}

#endif
