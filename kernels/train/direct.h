/* Convolution 2 of the fused engine, image by image and without im2col: forward with bias, ReLU and pooling, backward from the
 * winners of the pools alone, at most a quarter of the products. direct.c is compiled once for each instruction set. Layouts:
 * x[14][14][32], y[6][6][64], argmax as in oracle.h, w[64][9][32]. */
#ifndef RL_TRAIN_DIRECT_H
#define RL_TRAIN_DIRECT_H

#include <stdint.h>

typedef struct rl_direct {
  const char *name;
  /* w in the order in which forward reads it: taps has as many floats */
  void (*arrange)(const float *w, float *taps);
  void (*forward)(const float *x, const float *taps, const float *b, float *y, uint8_t *argmax);
  void (*input_gradient)(const float *dy, const uint8_t *argmax, const float *w, float *dx);
  /* Adds one image's gradient to dw[64][9][32] and db[64]. */
  void (*weight_gradient)(const float *x, const float *dy, const uint8_t *argmax, float *dw, float *db);
} rl_direct;

extern const rl_direct rl_direct_avx2, rl_direct_avx512;
enum { RL_DIRECT_TABLES = 2 };
/* Those that this CPU can run, best first; returns how many: none without AVX2. */
int rl_direct_usable(const rl_direct *tables[RL_DIRECT_TABLES]);

#endif
