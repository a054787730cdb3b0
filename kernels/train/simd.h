/* The loops of the blas engine that are not matrix products. simd.c is compiled once for each instruction set; the widest that
 * the CPU has is picked at run time. Layouts: channels last. Pool choices as in oracle.h. */
#ifndef RL_TRAIN_SIMD_H
#define RL_TRAIN_SIMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rl_simd {
  const char *name;
  void (*to_half)(size_t count, const float *from, uint16_t *to); /* round to nearest even */
  void (*from_half)(size_t count, const uint16_t *from, float *to);
  bool (*finite)(size_t count, const float *values);
  /* torch.optim.Adam; the gradient is divided by scale. unbias: 1 - beta^step. */
  void (*adam)(size_t count, const float *gradient, float scale, float rate, float unbias_m, float unbias_v, float *w, float *m,
               float *v);
  void (*add)(size_t count, const float *from, float *to);
  /* conv1, ReLU and pooling of one image: x[28][28], w[9][32], b[32] -> y[14][14][32] */
  void (*conv1_forward)(const float *x, const float *w, const float *b, float *y, uint8_t *choice);
  /* Adds one image's gradient: dy[14][14][32] -> dw[9][32], db[32] */
  void (*conv1_gradient)(const float *x, const float *dy, const uint8_t *choice, float *dw, float *db);
  /* bias, ReLU and pooling: c[12][12][64] -> y[6][6][64] */
  void (*pool2_forward)(const float *c, const float *b, float *y, uint8_t *choice);
  /* dy[6][6][64] -> dc[12][12][64], and added to db[64] */
  void (*pool2_gradient)(const float *dy, const uint8_t *choice, float *dc, float *db);
  /* x[14][14][32] <-> columns[144][9][32]; columns_to_image overwrites x with the sum of what each pixel went to */
  void (*image_to_columns)(const float *x, float *columns);
  void (*columns_to_image)(const float *columns, float *x);
  /* rows of [n][count]: y = max(y + b, 0); b repeats for each row */
  void (*bias_relu)(size_t rows, size_t count, const float *b, float *y);
} rl_simd;

extern const rl_simd rl_simd_baseline, rl_simd_avx2, rl_simd_avx512;
enum { RL_SIMD_TABLES = 3 };
/* Those that this CPU can run, best first; returns how many. */
int rl_simd_usable(const rl_simd *tables[RL_SIMD_TABLES]);

#endif
