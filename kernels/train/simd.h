/* The vectorised loops of the CPU engines that are not matrix products. simd.c is compiled once for each instruction set;
 * rl_simd_usable lists the tables for this CPU. Layouts are channels last; argmax as in oracle.h. */
#ifndef RL_TRAIN_SIMD_H
#define RL_TRAIN_SIMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rl_simd {
  const char *name;
  void (*to_half)(size_t count, const float *floats, uint16_t *halves); /* rounds to nearest even */
  void (*from_half)(size_t count, const uint16_t *halves, float *floats);
  bool (*all_finite)(size_t count, const float *values);
  /* One step of torch.optim.Adam with gradient / scale. unbias: 1 - beta^step. */
  void (*adam)(size_t count, const float *gradient, float scale, float rate, float unbias_m, float unbias_v, float *w, float *m,
               float *v);
  void (*add)(size_t count, const float *terms, float *sums);
  /* conv1, ReLU and pooling of one image: x[28][28], w[9][32], b[32] -> y[14][14][32] */
  void (*conv1_forward)(const float *x, const float *w, const float *b, float *y, uint8_t *argmax);
  /* Adds the gradients of one image: dy[14][14][32] -> dw[9][32], db[32] */
  void (*conv1_gradient)(const float *x, const float *dy, const uint8_t *argmax, float *dw, float *db);
  /* Bias, ReLU and pooling: c[12][12][64] -> y[6][6][64] */
  void (*pool2_forward)(const float *c, const float *b, float *y, uint8_t *argmax);
  /* dy[6][6][64] -> dc[12][12][64]; also adds dy to db[64] */
  void (*pool2_gradient)(const float *dy, const uint8_t *argmax, float *dc, float *db);
  /* x[14][14][32] -> columns[144][9][32], and back: x becomes the sum of the columns' entries for each pixel */
  void (*image_to_columns)(const float *x, float *columns);
  void (*columns_to_image)(const float *columns, float *x);
  /* y[rows][count] = max(y + b[count], 0) */
  void (*bias_relu)(size_t rows, size_t count, const float *b, float *y);
} rl_simd;

extern const rl_simd rl_simd_baseline, rl_simd_avx2, rl_simd_avx512;
enum { RL_SIMD_TABLES = 3 };
/* Writes the tables that this CPU can run, the fastest first, and returns how many. */
int rl_simd_usable(const rl_simd *tables[RL_SIMD_TABLES]);

#endif
