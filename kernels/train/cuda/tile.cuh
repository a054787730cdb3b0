/* The matrix products of one block of the engine "persistent", as an interface between its kernels (persistent_kernels.cu) and
 * the formats half_tile_format (tile_half.cuh), float_tile_format (tile_float.cuh) and tensor_float_tile_format
 * (tile_tensor_float.cuh). A format is a struct of constants and static functions; the kernels are templates over it.
 *
 * A block computes these parts:
 *   conv2                  one image and TILE_CHANNELS of the 64 output channels
 *   fc1                    up to TILE_IMAGES images, all 128 outputs and a slice of SLICE_INPUTS inputs
 *   fc1's weight gradient  a tile of TILE_ROWS outputs × TILE_COLUMNS inputs, TILE_BATCH images at a time
 *
 * A product is a layer's output before the bias. d_x is the gradient of the loss with respect to x. A pitch is the distance
 * between two rows in shared memory, in values; it is a multiple of 16 bytes.
 *
 *   typedef … value;                type of activations, weights in products, and stored gradients; converts from and to float
 *   enum {
 *     THREADS,                        threads of a block
 *     IN_PITCH,                       in[14 · 14 pixels][IN_PITCH], 32 input channels
 *     LOADED_WEIGHT_PITCH,            conv2's weights as loaded: loaded[TILE_CHANNELS][LOADED_WEIGHT_PITCH],
 *                                     9 taps × 32 input channels
 *     WEIGHT_VALUES,                  number of values of conv2's weights after prepare_weights
 *     D_OUT_VALUES,                   number of values of d_out, the gradient of conv2's product; the format chooses its layout
 *     CONV2_FORWARD_SCRATCH_FLOATS,   size of conv2_forward's scratch if prepare_weights transforms the weights;
 *                                     0: it does not
 *     CONV2_WARP_SCRATCH_FLOATS,      size of conv2_forward's scratch if CONV2_FORWARD_SCRATCH_FLOATS is 0
 *     CONV2_BACKWARD_SCRATCH_FLOATS,  size of conv2_weight_gradient's scratch
 *     CONV2_FORWARD_WARPS,            warps 0 … CONV2_FORWARD_WARPS - 1 compute conv2_forward while the others load weights
 *     HAS_FP32_MASTER_WEIGHTS,        1: value has fewer bits than FP32, so the FP32 master weights of fc1 are kept separately
 *     SLICE_PADDING,                  SLICE_INPUTS + SLICE_PADDING is the pitch of a slice of fc1's weights (128 rows), inputs
 *                                     and input gradients (TILE_IMAGES rows each)
 *     D_FC1_PITCH,                    d_fc1[TILE_IMAGES][D_FC1_PITCH], 128 outputs
 *     D_FC1_TILE_PITCH,               for fc1's weight gradient: d_fc1[TILE_BATCH][D_FC1_TILE_PITCH], TILE_ROWS outputs
 *     FC1_IN_TILE_PITCH,              for fc1's weight gradient: in[TILE_BATCH][FC1_IN_TILE_PITCH], TILE_COLUMNS inputs
 *     FC1_GRADIENT_WARPS,             warps 0 … FC1_GRADIENT_WARPS - 1 compute fc1's weight gradient
 *     FC1_GRADIENT_PAIRS_PER_THREAD   pairs of adjacent weights whose gradient a thread of these warps computes
 *   };
 *   typedef … weight_sums;          a thread's sums of conv2's weight gradient over the images of a step
 *
 * All threads of the block call a function, with the same pointers, aligned to 16 bytes. The caller synchronises the block
 * between writing an operand and the call, and between the call and overwriting the operand; conv2's functions may also call
 * __syncthreads. Rows beyond the valid images may hold any values, also NaN, and must not affect the results of valid rows. Sums
 * are FP32; their order depends only on the element's position. A function calls its epilogue exactly once for each pair of
 * adjacent results, in any thread: `a` belongs to the given index, which is even, and `b` to the next index.
 *
 *   prepare_weights(const value *loaded, value *weights);
 *       Transforms the loaded weights for conv2's functions. Does nothing if CONV2_FORWARD_SCRATCH_FLOATS is 0: these functions
 *       then read the loaded weights.
 *   template <class Epilogue> conv2_forward(const value *in, const value *weights, float *scratch, Epilogue epilogue);
 *       epilogue(pooled pixel, channel, const float a[4], const float b[4]): the four products of a 2×2 window, row-major.
 *   unpool(int pixel, int channel, uchar4 argmax, float4 d, value *d_out);
 *       Writes d_out of a 2×2 window for four channels: d at the channel's argmax (kernels.h), 0 at the other positions. `pixel`
 *       is the window's index in the pooled image.
 *   weight_sums init_weight_sums(float *row);
 *       Returns zeros. row: [TILE_CHANNELS][9 · 32] in global memory; a format may add up the sums there instead.
 *   conv2_weight_gradient(value *in, const value *d_out, float *scratch, weight_sums &sums);
 *       Adds the gradient of one image. Overwrites `in` if CONV2_BACKWARD_SCRATCH_FLOATS is not 0.
 *   store_weight_gradient(const weight_sums &sums, float *row);
 *       Stores the sums, unless they are in `row` already.
 *   template <class BeforeEpilogue, class Epilogue> conv2_input_gradient(const value *weights, value *d_out,
 *                                                                        BeforeEpilogue before_epilogue, Epilogue epilogue);
 *       epilogue(pixel of 14×14, input channel, a, b): the sum over this block's output channels. May overwrite d_out. Every
 *       thread calls before_epilogue() once, before its first epilogue. If CONV2_BACKWARD_SCRATCH_FLOATS is not 0, the weight
 *       gradient must be computed first, and the epilogue may overwrite its scratch.
 *   template <int SLICE_INPUTS, class Epilogue> fc1_forward(const value *in, const value *weights, Epilogue epilogue);
 *       epilogue(image, output, a, b): the product of the slice's inputs and weights.
 *   template <int SLICE_INPUTS, class Epilogue> fc1_backward(const value *d_fc1, const value *weights, Epilogue epilogue);
 *       epilogue(image, input of the slice, a, b): d_fc1 · weights.
 *   fc1_weight_gradient(const value *d_fc1, const value *in, float sums[FC1_GRADIENT_PAIRS_PER_THREAD][2]);
 *       Adds the gradient of TILE_BATCH images. Only warps 0 … FC1_GRADIENT_WARPS - 1 call it.
 *   fc1_gradient_row(i), fc1_gradient_column(i)
 *       Return the output and the first input, in the tile, of this thread's pair i of weights. */
#ifndef RL_TRAIN_CUDA_TILE_H
#define RL_TRAIN_CUDA_TILE_H

#include "train/cuda/kernels.h"
#include "train/cuda/vector.cuh"

enum {
  TILE_THREADS = 384,
  TILE_WARPS = TILE_THREADS / 32,
  TILE_CHANNELS = RL_C2 / 2,
  TILE_TAPS = 9,
  CONV2_K = TILE_TAPS * RL_C1, /* 288: depth of conv2's product */
  TILE_IMAGES = 8,
  TILE_ROWS = 16,
  TILE_COLUMNS = 144, /* fc1.weight is 8 × 16 tiles of TILE_ROWS × TILE_COLUMNS */
  TILE_BATCH = 64
};

/* Defaults that formats share. */
struct tile_format {
  enum { THREADS = TILE_THREADS, FC1_GRADIENT_WARPS = TILE_COLUMNS / 16, FC1_GRADIENT_PAIRS_PER_THREAD = 4 };
  static __device__ __forceinline__ int lane() { return threadIdx.x % 32; }
  static __device__ __forceinline__ int warp() { return threadIdx.x / 32; }
  /* Returns x as a value that the compiler does not know. Without this, the compiler hoists the computation of addresses from x
   * out of a loop, which costs registers. */
  static __device__ __forceinline__ int optimization_barrier(int x) {
    asm volatile("" : "+r"(x));
    return x;
  }
};

template <int COUNT> struct register_sums { float values[COUNT]; };

/* conv2's input gradient as mma products with N = 8 input channels: d_out [12][12] · weights, without a border of zeros. Pixel
 * (y, x) of d_out and tap (ty, tx) contribute to pixel (y + ty, x + tx) of the result [14][14].
 *
 * Row set r is the rows r, r + 3, r + 6, r + 9; column set c is the columns c, c + 3, c + 6, c + 9. The 16 pixels of a row set
 * and a column set of d_out (r and c are 0, 1 or 2) are the A fragment of a product. The product with tap (ty, tx) belongs to row
 * set r + ty and column set c + tx of the result (0 to 4 each). Sets 0 and 3 of the result have three rows (columns) in common,
 * and so have sets 1 and 4.
 *
 * Three warps, in roles 0 to 2, share eight input channels. Each computes three of the nine pairs (r, ty). A pair contributes to
 * row set r + ty of the result; sum[0] accumulates one pair and sum[1] two:
 *
 *   role   row set of sum[0]   row set of sum[1]
 *   0      2                   2
 *   1      0                   3
 *   2      4                   1
 *
 * Warps of different roles have no rows of the result in common. At the end a warp adds up the rows and columns that its own two
 * sums have in common.
 *
 * F::accumulate_tap_row(weights, d_out, row_set, tap_row, channel, sum) adds the products of a row set of d_out and the three
 * taps of a row; sum[c] is column set c of the result. Row i of the fragments is the pixel in row i % 4 of the row set and in
 * column i / 4 % 2 · COLUMNS_BETWEEN_LANES + i / 8 · COLUMNS_BETWEEN_FRAGMENT_HALVES of the column set. These two constants of F
 * are 1 and 2, or 2 and 1. */
enum { SET_STRIDE = 3, RESULT_COLUMN_SETS = 5 };
typedef float tile_accumulators[RESULT_COLUMN_SETS][4]; /* accumulators of a row set of the result, by column set */

/* Adds columns 0 to 2 of column set c + 3 to columns 1 to 3 of column set c, which are the same pixels (c is 0 or 1). The latter
 * are in the other half of the fragment or in the lane 16 away. */
template <class F> static __device__ __forceinline__ void tile_merge_columns(tile_accumulators sum) {
  const bool right = F::lane() >= 16; /* the lane has fragment rows 4 to 7 and 12 to 15 */
  for (int set = 0; set < RESULT_COLUMN_SETS - SET_STRIDE; set++)
    for (int channel = 0; channel < 2; channel++) {
      const float *upper_half = &sum[set + SET_STRIDE][channel], *lower_half = upper_half + 2;
      const float other_lower = __shfl_xor_sync(0xffffffffu, *lower_half, 16);
      if (F::COLUMNS_BETWEEN_FRAGMENT_HALVES == 1) {
        sum[set][2 + channel] += *upper_half;
        if (right) sum[set][channel] += other_lower;
      } else {
        const float other_upper = __shfl_xor_sync(0xffffffffu, *upper_half, 16);
        sum[set][2 + channel] += right ? other_lower : other_upper;
        if (right) sum[set][channel] += other_upper;
      }
    }
}

/* Calls epilogue for the lane's pixels in row y of the result. Of column sets 3 and 4 only column 3 is left: the others have been
 * merged. */
template <class F, class Epilogue> static __device__ __forceinline__ void tile_apply_epilogue(const tile_accumulators sum, int y,
                                                                                              int lane, int channel,
                                                                                              Epilogue epilogue) {
  for (int set = 0; set < RESULT_COLUMN_SETS; set++)
    for (int half = 0; half < 2; half++) {
      const int column = lane / 16 * F::COLUMNS_BETWEEN_LANES + half * F::COLUMNS_BETWEEN_FRAGMENT_HALVES;
      if (set < SET_STRIDE || column == 3)
        epilogue(y * RL_POOLED1_SIDE + set + column * SET_STRIDE, channel, sum[set][half * 2], sum[set][half * 2 + 1]);
    }
}

template <class F, class BeforeEpilogue, class Epilogue>
static __device__ __forceinline__ void tile_input_gradient(const typename F::value *weights, const typename F::value *d_out,
                                                           BeforeEpilogue before_epilogue, Epilogue epilogue) {
  const int role = F::warp() % 3, channel = F::warp() / 3 * 8;
  const int result_row_set[2] = {role == 0 ? 2 : role == 1 ? 0 : 4, role == 0 ? 2 : role == 1 ? 3 : 1}; /* of sum[0], sum[1] */
  const int row_in_set = F::lane() / 4 % 4;                                                             /* of this lane */
  tile_accumulators sum[2] = {};
  const int single_row_set = role == 2 ? 2 : 0; /* r of the pair (r, ty) in sum[0] */
  F::accumulate_tap_row(weights, d_out, single_row_set, result_row_set[0] - single_row_set, channel, sum[0]);
#pragma unroll 1
  for (int row_set = role == 2 ? 0 : 1; row_set != (role == 2 ? 2 : 3); row_set++)
    F::accumulate_tap_row(weights, d_out, row_set, result_row_set[1] - row_set, channel, sum[1]);
  for (int i = 0; i < 2; i++) tile_merge_columns<F>(sum[i]);
  /* Adds the rows of sum[1] that sum[0] has too: row i of sum[0] is row i + row_shift of sum[1]. */
  const int row_shift = role == 0 ? 0 : role == 1 ? -1 : 1;
  const bool is_common_row = row_in_set + row_shift >= 0 && row_in_set + row_shift < 4;
  for (int set = 0; set < RESULT_COLUMN_SETS; set++)
    for (int i = 0; i < 4; i++) {
      if (set >= SET_STRIDE && i < 2) continue; /* merged already */
      const float v = __shfl_sync(0xffffffffu, sum[1][set][i], F::lane() + row_shift * 4);
      if (is_common_row) sum[0][set][i] += v;
    }
  before_epilogue();
  const int lane = F::optimization_barrier(F::lane()), lane_channel = channel + lane % 4 * 2;
  tile_apply_epilogue<F>(sum[0], F::optimization_barrier(result_row_set[0]) + row_in_set * SET_STRIDE, lane, lane_channel,
                         epilogue);
  /* The rows of sum[1] that sum[0] does not have. */
  if (row_in_set - row_shift < 0 || row_in_set - row_shift > 3)
    tile_apply_epilogue<F>(sum[1], F::optimization_barrier(result_row_set[1]) + row_in_set * SET_STRIDE, lane, lane_channel,
                           epilogue);
}

#endif
