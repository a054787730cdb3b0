/* Direct convolution, without im2col, for layer conv2 of the CPU engine fused. Every function processes one image. Forward
 * includes bias, ReLU and max-pooling. Backward uses only the outputs that max-pooling selected, so it takes at most a quarter of
 * the multiplications of a backward pass through all outputs. direct.c is compiled once for each instruction set, and each time
 * defines one table of functions.
 *
 * Layouts: input x[14][14][32], output y[6][6][64], argmax[6][6][64] (oracle.h), weights w[64][9 taps][32], bias b[64]. dx, dy,
 * dw and db, the gradients of x, y, w and b, have the same layouts. */
#ifndef RL_TRAIN_DIRECT_H
#define RL_TRAIN_DIRECT_H

#include <stdint.h>

typedef struct rl_direct {
  const char *name;
  /* Copies w to taps[64 * 9 * 32], in the order in which forward reads the weights. */
  void (*reorder_weights)(const float *w, float *taps);
  /* Computes y and argmax. taps: the result of reorder_weights. */
  void (*forward)(const float *x, const float *taps, const float *b, float *y, uint8_t *argmax);
  /* Computes dx. */
  void (*input_gradient)(const float *dy, const uint8_t *argmax, const float *w, float *dx);
  /* Adds the image's gradients to dw and db. */
  void (*weight_gradient)(const float *x, const float *dy, const uint8_t *argmax, float *dw, float *db);
} rl_direct;

extern const rl_direct rl_direct_avx2, rl_direct_avx512;
enum { RL_DIRECT_TABLES = 2 };
/* Writes the tables that this CPU can run to `tables`, the fastest first, and returns their number, which is 0 without AVX2 and
 * FMA. */
int rl_direct_list_usable(const rl_direct *tables[RL_DIRECT_TABLES]);

#endif
