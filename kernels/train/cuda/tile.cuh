/* The matrix products that one block of the engine "persistent" computes in a training step. This file is the interface between
 * the kernels (persistent_kernels.cu) and three implementations, called formats: half_tile_format (FP16, tile_half.cuh),
 * tensor_float_tile_format (TF32, tile_tensor_float.cuh) and float_tile_format (FP32, tile_float.cuh). A format is a struct of
 * constants and static functions; the kernels are templates over it.
 *
 * The model (train/model.h): conv2 is a 3×3 convolution from 32 channels of 14×14 pixels to 64 channels of 12×12 pixels, which
 * 2×2 max-pooling reduces to 6×6. fc1 has 2304 inputs and 128 outputs. A tap is one of the nine positions of a 3×3 filter. The
 * product of a layer is its output before the bias. out_gradient is the gradient of the loss with respect to conv2's product,
 * fc1_product_gradient that with respect to fc1's product.
 *
 * A block computes a part (tile) of each of these matrix products:
 *   conv2                  one image and TILE_CHANNELS of the 64 output channels
 *   fc1                    up to TILE_IMAGES images, all 128 outputs and a slice of SLICE_INPUTS inputs
 *   fc1's weight gradient  TILE_ROWS outputs × TILE_COLUMNS inputs, TILE_BATCH images at a time
 *
 * Operands are in shared memory, except loaded_weights, which are in registers. A pitch is the distance between two rows in
 * shared memory, counted in values; it is a multiple of 16 bytes.
 *
 * A format defines:
 *
 *   typedef … value;  type of activations, of the weights in products, and of stored gradients; converts from and to float
 *   typedef … row_value;  type of the rows of partial sums of conv2's weight gradient
 *   ROW_SCALE             the factor by which these rows are multiplied
 *   enum {
 *     THREADS,         threads of a block
 *     IN_PITCH,        pitch of a pixel of conv2's input: in[14 · 14 pixels][IN_PITCH], 32 input channels
 *     LOADED_WEIGHT_PITCH,
 *                      pitch of conv2's weights as loaded from global memory: loaded[TILE_CHANNELS][LOADED_WEIGHT_PITCH],
 *                      9 taps × 32 input channels
 *     WEIGHT_VALUES,   number of values of conv2's weights as conv2_forward multiplies them
 *     OUT_GRADIENT_VALUES,
 *                      number of values of out_gradient, whose layout the format chooses
 *     CONV2_FORWARD_SCRATCH_FLOATS,
 *                      0: conv2_forward reads the weights as loaded; else: it transforms them, and this is the size of its
 *                      scratch
 *     CONV2_WARP_SCRATCH_FLOATS,
 *                      size of conv2_forward's scratch if CONV2_FORWARD_SCRATCH_FLOATS is 0
 *     CONV2_GRADIENTS_TOGETHER,
 *                      1: conv2_gradients computes both gradients of conv2; 0: conv2_weight_gradient and conv2_input_gradient
 *     CONV2_FORWARD_WARPS,
 *                      warps 0 … CONV2_FORWARD_WARPS - 1 compute conv2_forward while the others load weights
 *     OUTPUT_WARPS,    if CONV2_FORWARD_SCRATCH_FLOATS is not 0: warps 0 … OUTPUT_WARPS - 1 call conv2_forward's epilogue
 *     CONV1_IS_SPLIT,  1: each block of a pair computes half of conv1, and the blocks exchange the results: half of the
 *                      pixels if CONV1_GRADIENT_IS_SPLIT, else half of the channels (conv1_tile.cuh); 0: each block computes
 *                      conv1 for all pixels and channels
 *     CONV1_GRADIENT_IS_SPLIT,
 *                      1: each block computes conv1's gradients for its half of the pixels; 0: each block adds up those that
 *                      follow from its channels of conv2
 *     HAS_FP32_MASTER_WEIGHTS,
 *                      1: `value` has fewer bits than FP32, so the FP32 weights of fc1 are kept separately
 *     SLICE_PADDING,   SLICE_INPUTS + SLICE_PADDING is the pitch of a slice of fc1's weights (128 rows), of its inputs
 *                      and of their gradients (TILE_IMAGES rows each)
 *     FC1_PRODUCT_GRADIENT_PITCH,
 *                      fc1_product_gradient[TILE_IMAGES][FC1_PRODUCT_GRADIENT_PITCH], 128 outputs
 *     FC1_PRODUCT_GRADIENT_TILE_PITCH, FC1_INPUT_TILE_PITCH,
 *                      for fc1's weight gradient: fc1_product_gradient[TILE_BATCH][…], TILE_ROWS outputs, and
 *                      in[TILE_BATCH][…], TILE_COLUMNS inputs
 *     FC1_GRADIENT_WARPS,
 *                      warps 0 … FC1_GRADIENT_WARPS - 1 compute fc1's weight gradient
 *     FC1_GRADIENT_PAIRS_PER_THREAD
 *                      number of pairs of adjacent weights whose gradients one thread of these warps computes
 *   };
 *   typedef … weight_sums;  a thread's sums of conv2's weight gradient over the images of a step
 *   struct loaded_weights;  a thread's weights of conv2 in registers, if CONV2_FORWARD_SCRATCH_FLOATS is not 0
 *   struct conv2_gradient_memory;
 *                           shared memory of conv2_gradients, if CONV2_GRADIENTS_TOGETHER; its members are weights, out_gradient
 *                           and sums[2]
 *
 * All threads of the block call each function with the same pointers, which are aligned to 16 bytes. The caller synchronises the
 * block (__syncthreads) after it has written an operand and before it calls a function that reads the operand (RAW), and again
 * before it overwrites the operand (WAR). The functions for conv2 may also call __syncthreads themselves. Rows of images that do
 * not exist may hold any values, also NaN; they do not affect the results of other rows. Sums are FP32, and the order of the
 * additions depends only on the position of the result, so results are reproducible.
 *
 * A function passes its results to an epilogue (a callable). Unless its description says otherwise, each call passes two adjacent
 * results: `a` belongs to the index in the call, which is even, and `b` to the next index. Each result is passed exactly once, by
 * any thread.
 *
 *   loaded_weights load_weights(const value *from);
 *       If CONV2_FORWARD_SCRATCH_FLOATS is not 0: loads this thread's weights of conv2 from global memory.
 *   template <class WaitForWeights, class Epilogue>
 *   conv2_forward(const value *in, const value *weights, float *scratch, WaitForWeights wait_for_weights, Epilogue epilogue);
 *       epilogue(pooled pixel, channel, const float a[4], const float b[4]): the four products of a 2×2 pooling window, row
 *       by row. Every thread calls wait_for_weights() once, before it reads `weights`. If CONV2_LOADS_INPUT_FIRST, the
 *       function reads a part of `in` before this call.
 *   template <class AfterProducts, class Epilogue>
 *   conv2_forward(const value *in, const loaded_weights &loaded, value *weights, float *scratch, AfterProducts after_products,
 *                 Epilogue epilogue);
 *       The same if CONV2_FORWARD_SCRATCH_FLOATS is not 0. Stores the transformed weights in `weights`. Every thread calls
 *       after_products() when all threads have read `weights` for the last time. epilogue(pooled pixel, channel, const float
 *       products[4][4]): the products of four channels.
 *   pool_channels(const float a[4], const float b[4], const float *biases, uint8_t *argmaxes, bool *overflow);
 *       Adds the biases of two adjacent channels to their conv2 products a and b in a 2×2 window, and computes ReLU and
 *       pooling. Returns the pooled values, rounded to `value`, and stores both argmaxes. FP16 sets *overflow if an output is
 *       not finite in FP16; the other formats do not check.
 *   unpool(int pixel, int channel, uchar4 argmax, float4 gradient, value *out_gradient);
 *       Writes out_gradient of one 2×2 window for four channels. FP16 and TF32 write, for each channel, `gradient` at the
 *       position argmax (kernels.h) and 0 at the other three positions; FP32 stores the gradient and the argmax
 *       (tile_float.cuh). pixel: index of the window in the pooled image; channel: the first channel.
 *   weight_sums init_weight_sums(row_value *row);
 *       Returns zeros. row: [TILE_CHANNELS][9 · 32] in global memory, where a format may add up the sums instead of in
 *       registers.
 *   conv2_weight_gradient(const value *in, const value *out_gradient, weight_sums &sums);
 *       Adds the gradient of one image to sums.
 *   bool store_weight_gradient(const weight_sums &sums, int third, row_value *row);
 *       If not CONV2_GRADIENTS_TOGETHER: stores a third of the sums, multiplied by ROW_SCALE. Returns whether they are finite as
 *       row_value. third: 0, 1 or 2.
 *   template <class Between, class Epilogue>
 *   conv2_input_gradient(const value *weights, const value *out_gradient, Between between, Epilogue epilogue);
 *       If not CONV2_GRADIENTS_TOGETHER. epilogue(pixel of 14×14, input channel, a, b): the sum over this block's output
 *       channels. Every thread calls between(0), between(1) and between(2) when it has computed about 0, 1 and 3 thirds of its
 *       products.
 *   template <class BeforeEpilogue, class Epilogue>
 *   conv2_gradients(const value *in, conv2_gradient_memory &memory, weight_sums &sums, BeforeEpilogue before_epilogue,
 *                   Epilogue epilogue);
 *       If CONV2_GRADIENTS_TOGETHER: computes both gradients. memory.weights: the weights as in global memory.
 *       memory.out_gradient: written by unpool. The function overwrites both. `in` may overlap memory.sums[0] and no other
 *       member.
 *   template <int SLICE_INPUTS, class WaitForInput, class Epilogue>
 *   fc1_forward(const value *in, const value *weights, WaitForInput wait_for_input, Epilogue epilogue);
 *       epilogue(image, output, a, b): the product of the slice's inputs and weights. Every thread calls wait_for_input() once,
 *       before it reads `in`. If FC1_LOADS_WEIGHTS_FIRST, the function reads the weights before this call, else after it.
 *   template <int SLICE_INPUTS, class WaitForGradient, class Epilogue>
 *   fc1_backward(const value *fc1_product_gradient, const value *weights, WaitForGradient wait_for_gradient, Epilogue epilogue);
 *       epilogue(image, input of the slice, a, b): the product fc1_product_gradient · weights. Every thread calls
 *       wait_for_gradient() once, before it reads fc1_product_gradient.
 *   fc1_weight_gradient(const value *fc1_product_gradient, const value *in, float sums[FC1_GRADIENT_PAIRS_PER_THREAD][2]);
 *       Adds the gradient of TILE_BATCH images to sums. Only warps 0 … FC1_GRADIENT_WARPS - 1 call it.
 *   fc1_gradient_row(i), fc1_gradient_column(i)
 *       Return the output and the first input of this thread's pair i of weights, counted from the start of the block's tile. */
#ifndef RL_TRAIN_CUDA_TILE_H
#define RL_TRAIN_CUDA_TILE_H

#include "train/cuda/kernels.h"
#include "train/cuda/pool.cuh"
#include "train/cuda/vector.cuh"

enum {
  TILE_THREADS = 384, /* threads of a block */
  TILE_WARPS = TILE_THREADS / 32,
  TILE_CHANNELS = RL_CONV2_CHANNELS / 2, /* output channels of conv2 that a block computes */
  TILE_TAPS = 9,
  CONV2_K = TILE_TAPS * RL_CONV1_CHANNELS, /* 288: number of products that are added up for one output of conv2 */
  TILE_IMAGES = 8,                         /* maximum number of images in a block's products of fc1 */
  TILE_ROWS = 16,                          /* outputs in a block's tile of fc1.weight [128][2304] */
  TILE_COLUMNS = 144,                      /* inputs in this tile; fc1.weight is divided into 8 × 16 tiles */
  TILE_BATCH = 64                          /* images that fc1_weight_gradient processes in one call */
};

/* Members that all formats share. */
template <class Value> struct tile_format {
  typedef Value value;
  typedef float row_value;
  static constexpr float ROW_SCALE = 1.0f;
  enum { RECORDS = 0, ONE_MICROBATCH = 0 }; /* 1 in recording and in one_microbatch (persistent.cuh) */
  enum { CONV2_GRADIENTS_TOGETHER = 0, CONV2_LOADS_INPUT_FIRST = 0, FC1_LOADS_WEIGHTS_FIRST = 0 };
  struct conv2_gradient_memory {};
  struct loaded_weights {};
  enum { THREADS = TILE_THREADS, FC1_GRADIENT_WARPS = TILE_COLUMNS / 16, FC1_GRADIENT_PAIRS_PER_THREAD = 4 };
  static __device__ __forceinline__ int lane() { return threadIdx.x % 32; }
  static __device__ __forceinline__ int warp() { return threadIdx.x / 32; }
  /* Returns x, but hides its value from the compiler. Otherwise the compiler would hoist addresses that are computed from x out
   * of a loop, which would take registers. */
  static __device__ __forceinline__ int optimization_barrier(int x) {
    asm volatile("" : "+r"(x));
    return x;
  }
};

/* Sums that a thread keeps in registers. */
template <int COUNT> struct register_sums { float values[COUNT]; };

/* conv2's input gradient in the two formats that use mma instructions: out_gradient [12][12 pixels][32 output channels] times the
 * weights gives the gradient of the input, [14][14 pixels][32 input channels] (below: the result). In the forward pass, conv2
 * multiplied input pixel (y + tap_row, x + tap_column) by the weights of tap (tap_row, tap_column) for output pixel (y, x). So
 * pixel (y, x) of out_gradient contributes to pixel (y + tap_row, x + tap_column) of the result. out_gradient needs no border of
 * zeros.
 *
 * Products: an mma has M = 16 pixels of out_gradient and N = 8 input channels. The 16 pixels are the intersection of a row set
 * and a column set. Row set r is the four rows r, r + 3, r + 6, r + 9; column set c is the four columns c, c + 3, c + 6, c + 9.
 * Sets 0, 1 and 2 are the 12 rows (columns) of out_gradient. Sets 0 to 4 contain the 14 rows (columns) of the result; sets 0 and
 * 3 have three rows (columns) in common, and so have sets 1 and 4. The product of row set r and column set c of out_gradient with
 * a tap belongs to row set r + tap_row and column set c + tap_column of the result.
 *
 * Division of work: three warps, in roles 0 to 2, compute the same eight input channels. Each role computes three of the nine
 * pairs (r, tap_row). It adds up one pair in the accumulators sum[0], and two pairs in sum[1]:
 *
 *   role   sum[0]: pair, row set of the result   sum[1]: pairs, row set of the result
 *   0      (0, 2), 2                             (1, 1) and (2, 0), 2
 *   1      (0, 0), 0                             (1, 2) and (2, 1), 3
 *   2      (2, 2), 4                             (0, 1) and (1, 0), 1
 *
 * Warps of different roles compute different rows of the result, so they need not add up each other's sums. At the end, a warp
 * adds up the rows and columns that are in both of its row sets, and those that are in two column sets.
 *
 * The format provides
 *
 *   accumulate_tap_row(weights, out_gradient, row_set, tap_row, channel, sum)
 *       Adds to sum[0 … 4], the column sets of the result, the products of row set `row_set` of out_gradient with the three
 *       taps of row tap_row, for input channels channel … channel + 7.
 *   COLUMNS_BETWEEN_LANES, COLUMNS_BETWEEN_FRAGMENT_HALVES
 *       1 and 2, or 2 and 1. Row i of a fragment (0 to 15) is the pixel in row i % 4 of the row set and in column
 *       i / 4 % 2 · COLUMNS_BETWEEN_LANES + i / 8 · COLUMNS_BETWEEN_FRAGMENT_HALVES of the column set. */
enum { SET_STRIDE = 3 /* between the rows, or columns, of a set */, RESULT_COLUMN_SETS = 5 };
/* For one row set of the result: an mma accumulator for each column set. */
typedef float tile_accumulators[RESULT_COLUMN_SETS][4];

/* Adds columns 0 to 2 of column set c + 3 to columns 1 to 3 of column set c, which are the same pixels of the result (c is 0 or
 * 1). In a fragment, the pixel in the next column is either in the other half of the lane's registers or in the lane whose index
 * differs by 16. */
template <class Format> static __device__ __forceinline__ void tile_merge_columns(tile_accumulators sum) {
  const bool right = Format::lane() >= 16; /* rows 4 to 7 and 12 to 15 of the fragment */
  for (int set = 0; set < RESULT_COLUMN_SETS - SET_STRIDE; set++)
    for (int channel = 0; channel < 2; channel++) {
      const float *upper_half = &sum[set + SET_STRIDE][channel], *lower_half = upper_half + 2;
      const float other_lower = __shfl_xor_sync(0xffffffffu, *lower_half, 16);
      if (Format::COLUMNS_BETWEEN_FRAGMENT_HALVES == 1) {
        sum[set][2 + channel] += *upper_half;
        if (right) sum[set][channel] += other_lower;
      } else {
        const float other_upper = __shfl_xor_sync(0xffffffffu, *upper_half, 16);
        sum[set][2 + channel] += right ? other_lower : other_upper;
        if (right) sum[set][channel] += other_upper;
      }
    }
}

/* Calls epilogue for the lane's pixels in row y of the result. Of column sets 3 and 4 only the last column is passed, because
 * tile_merge_columns has added the other three to sets 0 and 1. */
template <class Format, class Epilogue> static __device__ __forceinline__ void tile_apply_epilogue(const tile_accumulators sum,
                                                                                                   int y, int lane, int channel,
                                                                                                   Epilogue epilogue) {
  for (int set = 0; set < RESULT_COLUMN_SETS; set++)
    for (int half = 0; half < 2; half++) {
      const int column = lane / 16 * Format::COLUMNS_BETWEEN_LANES + half * Format::COLUMNS_BETWEEN_FRAGMENT_HALVES;
      if (set < SET_STRIDE || column == 3)
        epilogue(y * RL_POOLED1_SIDE + set + column * SET_STRIDE, channel, sum[set][half * 2], sum[set][half * 2 + 1]);
    }
}

/* Implements conv2_input_gradient of a format. */
template <class Format, class Between, class Epilogue>
static __device__ __forceinline__ void tile_input_gradient(const typename Format::value *weights,
                                                           const typename Format::value *out_gradient, Between between,
                                                           Epilogue epilogue) {
  const int role = Format::warp() % 3, channel = Format::warp() / 3 * 8;
  const int result_row_set[2] = {role == 0   ? 2
                                 : role == 1 ? 0
                                             : 4,
                                 role == 0   ? 2
                                 : role == 1 ? 3
                                             : 1}; /* of sum[0] and of sum[1] */
  const int row_in_set = Format::lane() / 4 % 4;   /* row of the lane's pixels in a row set */
  tile_accumulators sum[2] = {};
  const int single_row_set = role == 2 ? 2 : 0; /* r of the pair (r, tap_row) in sum[0] */
  between(0);
  Format::accumulate_tap_row(weights, out_gradient, single_row_set, result_row_set[0] - single_row_set, channel, sum[0]);
  between(1);
#pragma unroll 1
  for (int row_set = role == 2 ? 0 : 1; row_set != (role == 2 ? 2 : 3); row_set++)
    Format::accumulate_tap_row(weights, out_gradient, row_set, result_row_set[1] - row_set, channel, sum[1]);
  for (int i = 0; i < 2; i++) tile_merge_columns<Format>(sum[i]);
  /* Adds to sum[0] the rows of sum[1] that are in both row sets: row i of sum[0]'s row set is row i + row_shift of sum[1]'s row
   * set. */
  const int row_shift = role == 0 ? 0 : role == 1 ? -1 : 1;
  const bool is_common_row = row_in_set + row_shift >= 0 && row_in_set + row_shift < 4;
  for (int set = 0; set < RESULT_COLUMN_SETS; set++)
    for (int i = 0; i < 4; i++) {
      if (set >= SET_STRIDE && i < 2) continue; /* already added to sets 0 and 1 */
      const float v = __shfl_sync(0xffffffffu, sum[1][set][i], Format::lane() + row_shift * 4);
      if (is_common_row) sum[0][set][i] += v;
    }
  between(2);
  const int lane = Format::optimization_barrier(Format::lane()), lane_channel = channel + lane % 4 * 2;
  tile_apply_epilogue<Format>(sum[0], Format::optimization_barrier(result_row_set[0]) + row_in_set * SET_STRIDE, lane,
                              lane_channel, epilogue);
  /* Passes the rows that are only in the row set of sum[1]. */
  if (row_in_set - row_shift < 0 || row_in_set - row_shift > 3)
    tile_apply_epilogue<Format>(sum[1], Format::optimization_barrier(result_row_set[1]) + row_in_set * SET_STRIDE, lane,
                                lane_channel, epilogue);
}

#endif
