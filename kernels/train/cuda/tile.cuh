/* What one block of the engine "persistent" multiplies, as a contract between its kernel (persistent.cu) and the formats:
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
 *     RAW_PITCH, WEIGHT_VALUES,    conv2's weights as they come, raw[TILE_CHANNELS][RAW_PITCH] of 9 taps × 32 input
 *                                  channels, and as they are multiplied
 *     OUT_VALUES,                  d_out, the gradient of conv2's product, in whatever order
 *     FORWARD_SCRATCH,             floats that conv2's functions want for themselves;
 *     BACKWARD_SCRATCH,            0: raw weights are multiplied as they are
 *     FORWARD_MAIL,                floats of its own that conv2_forward gets as scratch where there is no other
 *     FORWARD_WARPS,               that conv2_forward uses, the first: where others are left, those ask for weights while these
 *                                  multiply, and two while the others are at conv1; else all ask for all of them in between
 *     KEEPS_WEIGHTS,               0: weights that are multiplied are as exact as those that are updated
 *     SLICE_PAD,                   rows of SLICE inputs are SLICE + SLICE_PAD apart: fc1's weights [128], its inputs and
 *                                  their gradients [TILE_IMAGES]
 *     HIDDEN_PITCH,                d_fc1[TILE_IMAGES][HIDDEN_PITCH] of 128
 *     ROW_PITCH, COLUMN_PITCH,     d_fc1[TILE_BATCH][ROW_PITCH] of TILE_ROWS, in[TILE_BATCH][COLUMN_PITCH] of TILE_COLUMNS
 *     TILE_WARPS_USED, TILE_PAIRS  so many warps, the first, have so many pairs of fc1's weights a thread
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
 *   clear_border(value *d_out);                                                   what unpool does not write
 *   unpool(int pixel, int channel, uchar4 code, float4 d, value *d_out);          the gradient behind a pool, four channels,
 *                                                                                 as their codes say
 *   weight_sums begin_sums(float *row);                                           row[TILE_CHANNELS][9 · 32] of memory
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
 *   fc1_weight_gradient(const value *d_fc1, const value *in, float sums[TILE_PAIRS][2]);       adds TILE_BATCH images; the
 *                                                                                              warps in use alone
 *   tile_row(i), tile_column(i)                                                   of pair i of this thread in the tile
 *
 * Each product goes to its sink exactly once, whichever thread has it. Where d_out is the gradient itself, with zeros around it,
 * the two functions below do. */
#ifndef RL_TRAIN_CUDA_TILE_H
#define RL_TRAIN_CUDA_TILE_H

#include "train/cuda/kernels.h"
#include "train/cuda/vector.cuh"

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
  /* The gradient of conv2's product lies in rows of 14: two pixels of zeros in front of each row (and so behind the one before),
   * two rows of zeros above and below. */
  TILE_OUT_ROW = RL_P1,
  TILE_OUT_PIXELS = (RL_H2 + 4) * TILE_OUT_ROW + 4
};

/* What formats have that have no reason for something else. */
struct tile_format {
  enum { THREADS = TILE_THREADS, TILE_WARPS_USED = TILE_COLUMNS / 16, TILE_PAIRS = 4 };
  static __device__ __forceinline__ int lane() { return threadIdx.x % 32; }
  static __device__ __forceinline__ int warp() { return threadIdx.x / 32; }
  /* The same number, though the compiler can't know: addresses made of it are made where they are wanted, instead of in front of
   * all steps, where they do not fit into registers. */
  static __device__ __forceinline__ int made_anew(int of) {
    asm volatile("" : "+r"(of));
    return of;
  }
};

template <int COUNT> struct tile_sums {
  float of[COUNT];
};

/* Where the gradient of conv2's product at (y, x) lies, -2 … 13 each. */
static __device__ __forceinline__ int tile_out_at(int y, int x) { return (y + 2) * TILE_OUT_ROW + x + 2; }

/* Zeros around it: two rows and two pixels, two pixels behind each row of the product, the rest. */
template <class F> static __device__ __forceinline__ void tile_clear_border(typename F::value *d_out) {
  enum {
    UNITS = TILE_CHANNELS * sizeof(typename F::value) / 16,
    ABOVE = 2 * TILE_OUT_ROW + 2,
    BETWEEN = 2 * (RL_H2 - 1),
    BORDER = TILE_OUT_PIXELS - RL_H2 * RL_H2
  };
#pragma unroll 1
  for (int i = threadIdx.x; i < BORDER * UNITS; i += F::THREADS) {
    const int pixel = i / UNITS;
    const int to = pixel < ABOVE             ? pixel
                   : pixel < ABOVE + BETWEEN ? tile_out_at((pixel - ABOVE) / 2, RL_H2 + (pixel - ABOVE) % 2)
                                             : tile_out_at(RL_H2 - 1, RL_H2) + pixel - ABOVE - BETWEEN;
    *(uint4 *)((unsigned char *)&d_out[to * F::OUT_PITCH] + i % UNITS * 16) = make_uint4(0, 0, 0, 0);
  }
}

template <class F>
static __device__ __forceinline__ void tile_unpool(int pixel, int channel, uchar4 code, float4 d, typename F::value *d_out) {
  for (int at = 0; at < 4; at++)
    store4(&d_out[tile_out_at(pixel / RL_P2 * 2 + at / 2, pixel % RL_P2 * 2 + at % 2) * F::OUT_PITCH + channel],
           make_float4(code.x == at ? d.x : 0, code.y == at ? d.y : 0, code.z == at ? d.z : 0, code.w == at ? d.w : 0));
}

#endif
