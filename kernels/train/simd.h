/* Vectorised loops of the CPU engines blas and fused, for everything except matrix products, which OpenBLAS computes. simd.c is
 * compiled once for each instruction set, and each time defines one table of functions.
 *
 * Names and layouts: x input, y output, w weights, b bias; d followed by a name is the gradient of that array and has its layout.
 * Activations are channels last. argmax (oracle.h) has the layout of the pooled output y. */
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
  /* Updates the weights w and the moments m and v by one step of torch.optim.Adam with gradient / scale. rate: learning rate.
   * bias_correction_m: 1 - 0.9^step; bias_correction_v: 1 - 0.999^step. */
  void (*adam)(size_t count, const float *gradient, float scale, float rate, float bias_correction_m, float bias_correction_v,
               float *w, float *m, float *v);
  void (*add)(size_t count, const float *terms, float *sums); /* sums += terms */
  /* Computes conv1, ReLU and max-pooling of one image: x[28][28], w[9][32], b[32] -> y[14][14][32] */
  void (*conv1_forward)(const float *x, const float *w, const float *b, float *y, uint8_t *argmax);
  /* Adds the gradients of one image, with dy[14][14][32], to dw[9][32] and db[32]. */
  void (*conv1_gradient)(const float *x, const float *dy, const uint8_t *argmax, float *dw, float *db);
  /* Computes bias, ReLU and max-pooling of conv2's product (its output before the bias): product[12][12][64], b[64] ->
   * y[6][6][64] */
  void (*pool2_forward)(const float *product, const float *b, float *y, uint8_t *argmax);
  /* Computes the gradient of conv2's product, dy[6][6][64] -> product_gradient[12][12][64], and adds dy to db[64] where ReLU did
   * not zero the output. */
  void (*pool2_gradient)(const float *dy, const uint8_t *argmax, float *product_gradient, float *db);
  /* im2col copies x[14][14][32] to columns[144 output pixels][9 taps][32]. col2im is its transpose: it sets each value of x to
   * the sum of all those values in `columns` that im2col would copy from it. */
  void (*im2col)(const float *x, float *columns);
  void (*col2im)(const float *columns, float *x);
  /* Computes y[rows][count] = max(y + b[count], 0), in place. */
  void (*bias_relu)(size_t rows, size_t count, const float *b, float *y);
} rl_simd;

extern const rl_simd rl_simd_baseline, rl_simd_avx2, rl_simd_avx512;
enum { RL_SIMD_TABLES = 3 };
/* Writes the tables that this CPU can run to `tables`, the fastest first, and returns their number, at least 1. */
int rl_simd_list_usable(const rl_simd *tables[RL_SIMD_TABLES]);

#endif
