/* The matrix products of one block of the engine "persistent", as an interface between its kernels (persistent_kernels.cu) and
 * the formats half_tile_format (tile_half.cuh), float_tile_format (tile_float.cuh) and tensor_float_tile_format
 * (tile_tensor_float.cuh). A format is a struct of constants and static functions; the kernels are templates over it.
 *
 * Partition: a block computes one image and TILE_CHANNELS of conv2's 64 output channels; for fc1, up to TILE_IMAGES images, all
 * 128 outputs and a slice of SLICE inputs; for fc1's weight gradient, a tile of TILE_ROWS × TILE_COLUMNS weights, TILE_BATCH
 * images at a time.
 *
 * Pitch: the distance between two rows in shared memory, in values, a multiple of 16 bytes.
 *
 *   typedef … value;                type of activations, multiplied weights and stored gradients; converts from and to float
 *   enum {
 *     THREADS,                        threads of a block
 *     IN_PITCH,                       in[14 · 14 pixels][IN_PITCH], 32 input channels
 *     LOADED_WEIGHT_PITCH,            conv2's weights as loaded: loaded[TILE_CHANNELS][LOADED_WEIGHT_PITCH],
 *                                     9 taps × 32 input channels
 *     WEIGHT_VALUES,                  size of conv2's weights as multiplied
 *     D_OUT_VALUES,                   size of d_out, the gradient of conv2's product, in a layout of the format
 *     CONV2_FORWARD_SCRATCH_FLOATS,   scratch of conv2_forward if it multiplies transformed weights;
 *                                     0: it multiplies the loaded weights
 *     CONV2_WARP_SCRATCH_FLOATS,     scratch of conv2_forward if CONV2_FORWARD_SCRATCH_FLOATS is 0
 *     CONV2_BACKWARD_SCRATCH_FLOATS,  scratch of conv2_weight_gradient
 *     CONV2_FORWARD_WARPS,            warps 0 … CONV2_FORWARD_WARPS - 1 compute conv2_forward while the others load weights
 *     HAS_FP32_MASTER_WEIGHTS,        1: value is rounded, so fc1's FP32 master weights are kept beside the multiplied ones
 *     SLICE_PADDING,                  SLICE + SLICE_PADDING is the pitch of a slice of fc1's weights [128], inputs
 *                                     [TILE_IMAGES] and input gradients [TILE_IMAGES]
 *     D_FC1_PITCH,                    d_fc1[TILE_IMAGES][D_FC1_PITCH], 128 outputs
 *     D_FC1_TILE_PITCH,               for fc1's weight gradient: d_fc1[TILE_BATCH][D_FC1_TILE_PITCH], TILE_ROWS outputs
 *     FC1_IN_TILE_PITCH,              for fc1's weight gradient: in[TILE_BATCH][FC1_IN_TILE_PITCH], TILE_COLUMNS inputs
 *     FC1_GRADIENT_WARPS,             warps 0 … FC1_GRADIENT_WARPS - 1 compute fc1's weight gradient
 *     FC1_GRADIENT_PAIRS_PER_THREAD               pairs of adjacent weights that a thread of these warps computes
 *   };
 *   typedef … weight_sums;          a thread's state of conv2's weight gradient over the images of a step
 *
 * All threads call a function with the same pointers, aligned to 16 bytes. The caller synchronises the block between writing an
 * operand and the call, and between the call and overwriting the operand; conv2's functions may also call __syncthreads. Rows
 * beyond the valid images may hold anything, NaN included, and must not affect valid ones. Sums are FP32, in an order that
 * depends on the position alone. A function calls its epilogue exactly once for each pair of elements, in any thread: a and b
 * belong to the given even index and the next one.
 *
 *   prepare_weights(const value *loaded, value *weights);
 *       Transforms the loaded weights into the multiplied ones. Does nothing if CONV2_FORWARD_SCRATCH_FLOATS is 0.
 *   template <class Epilogue> conv2_forward(const value *in, const value *weights, float *scratch, Epilogue epilogue);
 *       epilogue(pooled pixel, channel, const float a[4], const float b[4]): the four products of a 2×2 window, row-major.
 *   unpool(int pixel, int channel, uchar4 argmax, float4 d, value *d_out);
 *       Writes d_out of a window for four channels: d at the position argmax (kernels.h), else 0.
 *   weight_sums init_weight_sums(float *row);
 *       row[TILE_CHANNELS][9 · 32] in global memory.
 *   conv2_weight_gradient(value *in, const value *d_out, float *scratch, weight_sums &sums);
 *       Adds an image. Overwrites `in` if CONV2_BACKWARD_SCRATCH_FLOATS is not 0.
 *   store_weight_gradient(const weight_sums &sums, float *row);
 *       Stores the sums, unless they are in `row` already.
 *   template <class BeforeEpilogue, class Epilogue> conv2_input_gradient(const value *weights, value *d_out,
 *                                                                        BeforeEpilogue before_epilogue, Epilogue epilogue);
 *       epilogue(pixel of 14×14, input channel, a, b): the part from this block's output channels. May overwrite d_out. All
 *       threads call before_epilogue() before any thread calls epilogue. If CONV2_BACKWARD_SCRATCH_FLOATS is not 0, the weight
 *       gradient must be computed first, and the epilogue may overwrite its scratch.
 *   template <int SLICE, class Epilogue> fc1_forward(const value *in, const value *weights, Epilogue epilogue);
 *       epilogue(image, output, a, b): the product over the slice.
 *   template <int SLICE, class Epilogue> fc1_backward(const value *d_fc1, const value *weights, Epilogue epilogue);
 *       epilogue(image, input of the slice, a, b): d_fc1 · weights.
 *   fc1_weight_gradient(const value *d_fc1, const value *in, float sums[FC1_GRADIENT_PAIRS_PER_THREAD][2]);
 *       Adds TILE_BATCH images. Warps 0 … FC1_GRADIENT_WARPS - 1 call it.
 *   fc1_gradient_row(i), fc1_gradient_column(i)
 *       Position in the tile of this thread's pair i of weights. */
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
 * F::accumulate_tap_row(weights, d_out, row, tap_row, channel, sum) adds the products of row set `row` of d_out and one row of
 * taps; sum[x] is the set of columns x, x + 3, …. Rows 0-3 of the A fragment are the four pixels of a column of the set. Rows 4-7
 * are a column COLUMNS_BETWEEN_LANES columns of the set further right; rows 8-15 are COLUMNS_BETWEEN_FRAGMENT_HALVES columns of
 * the set further right than rows 0-7. These two constants are 1 and 2, or 2 and 1. */
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
      if (F::COLUMNS_BETWEEN_FRAGMENT_HALVES == 1) {
        sum[x][2 + c] += *upper;
        if (right) sum[x][c] += below;
      } else {
        const float above = __shfl_xor_sync(0xffffffffu, *upper, 16);
        sum[x][2 + c] += right ? below : above;
        if (right) sum[x][c] += above;
      }
    }
}

template <class F, class Epilogue> static __device__ __forceinline__ void tile_apply_epilogue(const tile_accumulators sum, int y,
                                                                                              int lane, int channel,
                                                                                              Epilogue epilogue) {
  for (int x = 0; x < TILE_SET_COLUMNS; x++)
    for (int i = 0; i < 2; i++) {
      const int column = lane / 16 * F::COLUMNS_BETWEEN_LANES + i * F::COLUMNS_BETWEEN_FRAGMENT_HALVES;
      if (x < FRAGMENT_COLUMN_STRIDE || column == 3)
        epilogue(y * RL_POOLED1_SIDE + x + column * FRAGMENT_COLUMN_STRIDE, channel, sum[x][i * 2], sum[x][i * 2 + 1]);
    }
}

template <class F, class BeforeEpilogue, class Epilogue>
static __device__ __forceinline__ void tile_input_gradient(const typename F::value *weights, const typename F::value *d_out,
                                                           BeforeEpilogue before_epilogue, Epilogue epilogue) {
  const int role = F::warp() % 3, channel = F::warp() / 3 * 8;
  const int set_row[2] = {role == 0 ? 2 : role == 1 ? 0 : 4, role == 0 ? 2 : role == 1 ? 3 : 1}; /* r + t of sum[0] and sum[1] */
  const int lane_row = F::lane() / 4 % 4;                                                        /* this lane's row of a set */
  tile_accumulators sum[2] = {};
  const int single_row = role == 2 ? 2 : 0; /* r of the pair (r, t) in sum[0] */
  F::accumulate_tap_row(weights, d_out, single_row, set_row[0] - single_row, channel, sum[0]);
#pragma unroll 1
  for (int row = role == 2 ? 0 : 1; row != (role == 2 ? 2 : 3); row++)
    F::accumulate_tap_row(weights, d_out, row, set_row[1] - row, channel, sum[1]);
  for (int i = 0; i < 2; i++) tile_merge_columns<F>(sum[i]);
  /* Adds the pixel rows that sum[1] shares with sum[0]. Row `lane_row` of sum[0] is row lane_row + row_shift of sum[1]. */
  const int row_shift = role == 0 ? 0 : role == 1 ? -1 : 1;
  const bool is_shared_row = lane_row + row_shift >= 0 && lane_row + row_shift < 4;
  for (int x = 0; x < TILE_SET_COLUMNS; x++)
    for (int i = 0; i < 4; i++) {
      if (x >= FRAGMENT_COLUMN_STRIDE && i < 2) continue; /* merged already */
      const float v = __shfl_sync(0xffffffffu, sum[1][x][i], F::lane() + row_shift * 4);
      if (is_shared_row) sum[0][x][i] += v;
    }
  before_epilogue();
  const int lane = F::optimization_barrier(F::lane()), lane_channel = channel + lane % 4 * 2;
  tile_apply_epilogue<F>(sum[0], F::optimization_barrier(set_row[0]) + lane_row * FRAGMENT_COLUMN_STRIDE, lane, lane_channel,
                         epilogue);
  if (lane_row - row_shift < 0 || lane_row - row_shift > 3)
    tile_apply_epilogue<F>(sum[1], F::optimization_barrier(set_row[1]) + lane_row * FRAGMENT_COLUMN_STRIDE, lane, lane_channel,
                           epilogue);
}

#endif
