/* What one block of the engine "persistent" multiplies, as a contract between its kernel (persistent.cu) and the formats: half_tiles
 * (tile_half.cuh), float_tiles (tile_float.cuh), tensor_float_tiles (tile_tensor_float.cuh). A format is a struct of constants and static
 * functions; the kernel is a template over it.
 *
 * A block has one image and TILE_CHANNELS of conv2's 64 output channels; of fc1, up to TILE_IMAGES images, all 128 outputs and a slice of
 * SLICE inputs; of fc1's weight gradient, TILE_ROWS × TILE_COLUMNS over TILE_BATCH images at a time.
 *
 *   typedef … value;               of activations, multiplied weights and stored gradients: __half or float
 *   enum {
 *     IN_PITCH,                    values between rows in shared memory, multiples of 16 bytes: in[P1²][IN_PITCH] of 32 channels, 14×14 pixels
 *     WEIGHT_PITCH,                weights[TILE_CHANNELS][WEIGHT_PITCH] of 9 taps × 32 input channels
 *     OUT_PITCH,                   d_out[TILE_OUT_PIXELS][OUT_PITCH] of TILE_CHANNELS
 *     SLICE_PAD,                   rows of SLICE inputs are SLICE + SLICE_PAD apart: fc1's weights [128], its inputs and their gradients [TILE_IMAGES]
 *     HIDDEN_PITCH,                d_fc1[TILE_IMAGES][HIDDEN_PITCH] of 128
 *     ROW_PITCH, COLUMN_PITCH,     d_fc1[TILE_BATCH][ROW_PITCH] of TILE_ROWS, in[TILE_BATCH][COLUMN_PITCH] of TILE_COLUMNS
 *     WEIGHT_SUMS,                 sums of conv2's weight gradient that a thread keeps
 *     TILE_WARPS_USED, TILE_PAIRS  so many warps, the first, have so many pairs of fc1's weights a thread
 *   };
 *
 * Functions are called by all TILE_THREADS threads with the same pointers, all 16-byte aligned; what they read was written before a barrier of the
 * block, and nothing that they read is written before the next. They take no barrier. Rows behind the images that there are hold anything, NaN too, and
 * must not touch those that there are. Sums are FP32, in an order that depends on nothing but the position.
 *
 *   template <class Sink> conv2_forward(const value *in, const value *weights, Sink sink);
 *       sink(pixel of 6×6, channel, const float a[4], const float b[4]): the four products of a pool, row-major, of channel (even) and the next
 *   conv2_weight_gradient(const value *in, const value *d_out, float sums[WEIGHT_SUMS]);       adds to sums
 *   store_weight_gradient(const float sums[WEIGHT_SUMS], float *to);                           to[TILE_CHANNELS][9 · 32] in shared memory
 *   template <class Sink> conv2_input_gradient(const value *weights, const value *d_out, Sink sink);
 *       sink(pixel of 14×14, channel, a, b): of input channel (even) and the next, from this block's output channels alone
 *   template <int SLICE, class Sink> fc1_forward(const value *in, const value *weights, Sink sink);
 *       sink(image, output, a, b): the product over the slice for output (even) and the next
 *   template <int SLICE, class Sink> fc1_backward(const value *d_fc1, const value *weights, Sink sink);
 *       sink(image, k, a, b): d_fc1 · weights for inputs k (even, in the slice) and the next
 *   fc1_weight_gradient(const value *d_fc1, const value *in, float sums[TILE_PAIRS][2]);       adds TILE_BATCH images; the warps in use alone
 *   tile_row(i), tile_column(i)                                                                of pair i of this thread in the tile
 *
 * Each product goes to its sink exactly once, whichever thread has it. */
#ifndef RL_TRAIN_CUDA_TILE_H
#define RL_TRAIN_CUDA_TILE_H

#include "train/cuda/kernels.h"

enum {
  TILE_THREADS = 384,
  TILE_WARPS = TILE_THREADS / 32,
  TILE_CHANNELS = RL_C2 / 2,
  TILE_TAPS = 9,
  TILE_DEPTH = TILE_TAPS * RL_C1, /* 288: what a product of conv2 sums up */
  TILE_IMAGES = 8,
  TILE_ROWS = 16,
  TILE_COLUMNS = 144, /* 8 × 16 such tiles are fc1.weight */
  TILE_BATCH = 64,
  /* The gradient of conv2's product lies in rows of 14: two pixels of zeros in front of each row (and so behind the one before), two rows of
   * zeros above and below. */
  TILE_OUT_ROW = RL_P1,
  TILE_OUT_PIXELS = (RL_H2 + 4) * TILE_OUT_ROW + 4
};

/* Where the gradient of conv2's product at (y, x) lies, -2 … 13 each. */
static __device__ __forceinline__ int tile_out_at(int y, int x) { return (y + 2) * TILE_OUT_ROW + x + 2; }

#endif
