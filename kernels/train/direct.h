/* conv2 of the CPU's engine fused, image by image and without im2col: forward with bias, ReLU and pooling; backward from the
 * pool's argmax positions only, at most a quarter of the multiplications. direct.c is compiled once for each instruction set.
 * Layouts: x[14][14][32], y[6][6][64], argmax (oracle.h) as y, w[64][9][32]; gradients as their values. */
#ifndef RL_TRAIN_DIRECT_H
#define RL_TRAIN_DIRECT_H

#include <stdint.h>

typedef struct rl_direct {
  const char *name;
  /* Copies w to taps in the order in which forward reads it. */
  void (*reorder_weights)(const float *w, float *taps);
  void (*forward)(const float *x, const float *taps, const float *b, float *y, uint8_t *argmax);
  void (*input_gradient)(const float *dy, const uint8_t *argmax, const float *w, float *dx);
  /* Adds an image's gradients to dw and db[64]. */
  void (*weight_gradient)(const float *x, const float *dy, const uint8_t *argmax, float *dw, float *db);
} rl_direct;

extern const rl_direct rl_direct_avx2, rl_direct_avx512;
enum { RL_DIRECT_TABLES = 2 };
/* Stores the tables that this CPU can run, fastest first, and returns their number: 0 without AVX2 and FMA. */
int rl_direct_usable(const rl_direct *tables[RL_DIRECT_TABLES]);

#endif
