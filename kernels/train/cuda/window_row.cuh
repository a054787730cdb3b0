/* Both gradients of conv2 in FP32 from one output channel and one row of pooling windows. Max-pooling and ReLU leave at most one
 * gradient in a window, at its argmax. A lane is an input channel. Each gradient is multiplied by the nine weights, which adds to
 * the gradient of the input, and by the nine input pixels under the filter, which adds to the gradient of the weights.
 *
 * Which registers take part depends on the window and on the argmax, so each of the 24 combinations has a separate sequence of 18
 * multiply-adds. All lanes execute the same ones: those in a list. Each sequence ends with the jump to the next one, so a window
 * costs one branch, and a window without a gradient costs nothing. nvcc compiled a switch to up to four branches for each window,
 * therefore the sequences are PTX. */
#ifndef RL_TRAIN_CUDA_WINDOW_ROW_H
#define RL_TRAIN_CUDA_WINDOW_ROW_H

#include "train/cuda/kernels.h"

enum {
  WINDOW_ROW_PIXELS = 4 * RL_POOLED1_SIDE, /* input pixels under a row of windows: four rows of 14 */
  WINDOW_LIST_BITS = 5                     /* of an element of the list */
};

/* Returns the list of the windows that have a gradient. An element is 1 + 4 · window + argmax, the first one in the lowest bits;
 * 0 ends the list. argmaxes: a byte for each window of the row. */
static __device__ __forceinline__ uint32_t window_list(uint2 argmaxes) {
  uint32_t list = 0;
#pragma unroll
  for (int window = RL_POOLED2_SIDE - 1; window >= 0; window--) {
    const uint32_t argmax = (window < 4 ? argmaxes.x : argmaxes.y) >> window % 4 * 8 & 0xff;
    if (argmax != RL_ARGMAX_RELU_ZERO) list = list << WINDOW_LIST_BITS | (1 + 4 * window + argmax);
  }
  return list;
}

#ifdef __CUDACC__
/* The PTX names the registers of input x0_0 … x3_13 by row and column, those of weights w0 … w8 and those of gradients g0 … g5.
 * in_gradient and weight_gradient are operands %0 … %55 and %56 … %64: copies would take registers and moves. The
 * inputs must be copied before the first sequence: the outputs are not early-clobber, so an input may share a register with an
 * output. */
#define RL_MOVE(NAME, OPERAND) "mov.f32 " NAME ", %" #OPERAND ";\n"
/* clang-format off */
#define RL_MOVE_ROW(ROW, A, B, C, D, E, F, G, H, I, J, K, L, M, N)                                                            \
  RL_MOVE("x" #ROW "_0", A) RL_MOVE("x" #ROW "_1", B) RL_MOVE("x" #ROW "_2", C) RL_MOVE("x" #ROW "_3", D)                     \
  RL_MOVE("x" #ROW "_4", E) RL_MOVE("x" #ROW "_5", F) RL_MOVE("x" #ROW "_6", G) RL_MOVE("x" #ROW "_7", H)                     \
  RL_MOVE("x" #ROW "_8", I) RL_MOVE("x" #ROW "_9", J) RL_MOVE("x" #ROW "_10", K) RL_MOVE("x" #ROW "_11", L)                   \
  RL_MOVE("x" #ROW "_12", M) RL_MOVE("x" #ROW "_13", N)
/* clang-format on */

/* The two multiply-adds of a tap. S and D: operands of the gradients of the pixel and of the weight. */
#define RL_TAP(I, PIXEL, S, TAP, D) \
  "fma.rn.f32 %" #S ", g" #I ", w" #TAP ", %" #S ";\n fma.rn.f32 %" #D ", g" #I ", x" #PIXEL ", %" #D ";\n"
/* The sequence of an argmax of window I: the pixels under the filter, each with the operand of its gradient. */
#define RL_POSITION(I, ARGMAX, P0, S0, P1, S1, P2, S2, P3, S3, P4, S4, P5, S5, P6, S6, P7, S7, P8, S8)                         \
  "L" #I "_" #ARGMAX ":\n" RL_TAP(I, P0, S0, 0, 56) RL_TAP(I, P1, S1, 1, 57) RL_TAP(I, P2, S2, 2, 58) RL_TAP(I, P3, S3, 3, 59) \
      RL_TAP(I, P4, S4, 4, 60) RL_TAP(I, P5, S5, 5, 61) RL_TAP(I, P6, S6, 6, 62) RL_TAP(I, P7, S7, 7, 63)                      \
          RL_TAP(I, P8, S8, 8, 64) RL_JUMP
/* The sequences of a window, from its 16 pixels. */
#define RL_WINDOW(I, P00, S00, P01, S01, P02, S02, P03, S03, P10, S10, P11, S11, P12, S12, P13, S13, P20, S20, P21, S21, P22, \
                  S22, P23, S23, P30, S30, P31, S31, P32, S32, P33, S33)                                                      \
  RL_POSITION(I, 0, P00, S00, P01, S01, P02, S02, P10, S10, P11, S11, P12, S12, P20, S20, P21, S21, P22, S22)                 \
  RL_POSITION(I, 1, P01, S01, P02, S02, P03, S03, P11, S11, P12, S12, P13, S13, P21, S21, P22, S22, P23, S23)                 \
  RL_POSITION(I, 2, P10, S10, P11, S11, P12, S12, P20, S20, P21, S21, P22, S22, P30, S30, P31, S31, P32, S32)                 \
  RL_POSITION(I, 3, P11, S11, P12, S12, P13, S13, P21, S21, P22, S22, P23, S23, P31, S31, P32, S32, P33, S33)
#define RL_LABELS(I) ", L" #I "_0, L" #I "_1, L" #I "_2, L" #I "_3"
/* Jumps to the sequence of the next element of the list, or to the end. */
#define RL_JUMP "and.b32 element, %65, 31;\n shr.u32 %65, %65, 5;\n brx.idx.uni element, sequences;\n"

#define RL_FLOATS_7(CONSTRAINT, V, I)                                                                       \
  CONSTRAINT(V[I]), CONSTRAINT(V[I + 1]), CONSTRAINT(V[I + 2]), CONSTRAINT(V[I + 3]), CONSTRAINT(V[I + 4]), \
      CONSTRAINT(V[I + 5]), CONSTRAINT(V[I + 6])
#define RL_FLOATS_9(CONSTRAINT, V) RL_FLOATS_7(CONSTRAINT, V, 0), CONSTRAINT(V[7]), CONSTRAINT(V[8])
#define RL_FLOATS_56(CONSTRAINT, V)                                                                                             \
  RL_FLOATS_7(CONSTRAINT, V, 0), RL_FLOATS_7(CONSTRAINT, V, 7), RL_FLOATS_7(CONSTRAINT, V, 14), RL_FLOATS_7(CONSTRAINT, V, 21), \
      RL_FLOATS_7(CONSTRAINT, V, 28), RL_FLOATS_7(CONSTRAINT, V, 35), RL_FLOATS_7(CONSTRAINT, V, 42),                           \
      RL_FLOATS_7(CONSTRAINT, V, 49)
#endif

/* Adds the products of the windows in the list. All lanes have the same list. */
static __device__ __forceinline__ void add_windows(uint32_t list, const float gradients[RL_POOLED2_SIDE], const float weights[9],
                                                   const float input[WINDOW_ROW_PIXELS], float in_gradient[WINDOW_ROW_PIXELS],
                                                   float weight_gradient[9]) {
#ifdef __CUDACC__
  /* clang-format off */
  __asm__ volatile(
      "{\n.reg .u32 element;\n.reg .f32 x0_<14>, x1_<14>, x2_<14>, x3_<14>, w<9>, g<6>;\n"
      "sequences: .branchtargets END" RL_LABELS(0) RL_LABELS(1) RL_LABELS(2) RL_LABELS(3) RL_LABELS(4) RL_LABELS(5) ";\n"
      RL_MOVE_ROW(0, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79)
      RL_MOVE_ROW(1, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93)
      RL_MOVE_ROW(2, 94, 95, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107)
      RL_MOVE_ROW(3, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119, 120, 121)
      RL_MOVE("w0", 122) RL_MOVE("w1", 123) RL_MOVE("w2", 124) RL_MOVE("w3", 125) RL_MOVE("w4", 126)
      RL_MOVE("w5", 127) RL_MOVE("w6", 128) RL_MOVE("w7", 129) RL_MOVE("w8", 130)
      RL_MOVE("g0", 131) RL_MOVE("g1", 132) RL_MOVE("g2", 133) RL_MOVE("g3", 134) RL_MOVE("g4", 135) RL_MOVE("g5", 136)
      RL_JUMP
      RL_WINDOW(0, 0_0, 0, 0_1, 1, 0_2, 2, 0_3, 3, 1_0, 14, 1_1, 15, 1_2, 16, 1_3, 17,
                2_0, 28, 2_1, 29, 2_2, 30, 2_3, 31, 3_0, 42, 3_1, 43, 3_2, 44, 3_3, 45)
      RL_WINDOW(1, 0_2, 2, 0_3, 3, 0_4, 4, 0_5, 5, 1_2, 16, 1_3, 17, 1_4, 18, 1_5, 19,
                2_2, 30, 2_3, 31, 2_4, 32, 2_5, 33, 3_2, 44, 3_3, 45, 3_4, 46, 3_5, 47)
      RL_WINDOW(2, 0_4, 4, 0_5, 5, 0_6, 6, 0_7, 7, 1_4, 18, 1_5, 19, 1_6, 20, 1_7, 21,
                2_4, 32, 2_5, 33, 2_6, 34, 2_7, 35, 3_4, 46, 3_5, 47, 3_6, 48, 3_7, 49)
      RL_WINDOW(3, 0_6, 6, 0_7, 7, 0_8, 8, 0_9, 9, 1_6, 20, 1_7, 21, 1_8, 22, 1_9, 23,
                2_6, 34, 2_7, 35, 2_8, 36, 2_9, 37, 3_6, 48, 3_7, 49, 3_8, 50, 3_9, 51)
      RL_WINDOW(4, 0_8, 8, 0_9, 9, 0_10, 10, 0_11, 11, 1_8, 22, 1_9, 23, 1_10, 24, 1_11, 25,
                2_8, 36, 2_9, 37, 2_10, 38, 2_11, 39, 3_8, 50, 3_9, 51, 3_10, 52, 3_11, 53)
      RL_WINDOW(5, 0_10, 10, 0_11, 11, 0_12, 12, 0_13, 13, 1_10, 24, 1_11, 25, 1_12, 26, 1_13, 27,
                2_10, 38, 2_11, 39, 2_12, 40, 2_13, 41, 3_10, 52, 3_11, 53, 3_12, 54, 3_13, 55)
      "END:\n"
      "}"
      : RL_FLOATS_56("+f", in_gradient), RL_FLOATS_9("+f", weight_gradient), "+r"(list)
      : RL_FLOATS_56("f", input), RL_FLOATS_9("f", weights), "f"(gradients[0]), "f"(gradients[1]), "f"(gradients[2]),
        "f"(gradients[3]), "f"(gradients[4]), "f"(gradients[5]));
  /* clang-format on */
#else
  for (; list; list >>= WINDOW_LIST_BITS) {
    const int element = (int)(list & ((1 << WINDOW_LIST_BITS) - 1)) - 1, window = element / 4, argmax = element % 4;
    for (int tap = 0; tap < 9; tap++) {
      const int pixel = (argmax / 2 + tap / 3) * RL_POOLED1_SIDE + 2 * window + argmax % 2 + tap % 3;
      in_gradient[pixel] = fmaf(gradients[window], weights[tap], in_gradient[pixel]);
      weight_gradient[tap] = fmaf(gradients[window], input[pixel], weight_gradient[tap]);
    }
  }
#endif
}

#undef RL_MOVE
#undef RL_MOVE_ROW
#undef RL_TAP
#undef RL_POSITION
#undef RL_WINDOW
#undef RL_LABELS
#undef RL_JUMP
#undef RL_FLOATS_7
#undef RL_FLOATS_9
#undef RL_FLOATS_56

#endif
