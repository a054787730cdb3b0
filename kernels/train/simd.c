/* Implements simd.h by plain loops and GCC vectors. The file is compiled once for each instruction set; the build defines RL_SIMD
 * as the name of the table. simd.h explains the names x, y, w, b and their gradients. */
#include "train/simd.h"

#include <math.h>
#include <string.h>

#include "half.h"
#include "train/simd_vector.h"
#include "train/model.h"
#include "train/oracle.h"
#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum { PADDED_SIDE = RL_IMAGE_SIDE + 2 };

static void to_half(size_t count, const float *floats, uint16_t *halves) {
  size_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128((__m128i *)(halves + i), _mm256_cvtps_ph(_mm256_loadu_ps(floats + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < count; i++) halves[i] = rl_half_from_float(floats[i]);
}

static void from_half(size_t count, const uint16_t *halves, float *floats) {
  size_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= count; i += 8) _mm256_storeu_ps(floats + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(halves + i))));
#endif
  for (; i < count; i++) floats[i] = rl_half_to_float(halves[i]);
}

static bool all_finite(size_t count, const float *values) {
  uint32_t nonfinite = 0;
  for (size_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, values + i, sizeof bits);
    nonfinite |= (bits & 0x7f800000) == 0x7f800000;
  }
  return nonfinite == 0;
}

/* Makes the CPU treat subnormal floats as 0, and returns the previous mode. Reason: if the gradient of a weight stays 0, its
 * moments decay to subnormal numbers, on which x86 is about 100 times slower. Such moments are negligible compared with Adam's
 * epsilon. */
#ifdef __SSE2__
static unsigned disable_subnormals(void) {
  unsigned mxcsr = _mm_getcsr();
  _mm_setcsr(mxcsr | 0x8040); /* flush to zero, denormals are zero */
  return mxcsr;
}
static void restore_mxcsr(unsigned mxcsr) { _mm_setcsr(mxcsr); }
#else
static unsigned disable_subnormals(void) { return 0; }
static void restore_mxcsr(unsigned mxcsr) { (void)mxcsr; }
#endif

static __attribute__((noinline)) void adam_loop(size_t count, const float *restrict gradient, float scale, float rate,
                                                float bias_correction_m, float bias_correction_v, float *restrict w,
                                                float *restrict m, float *restrict v) {
  float inverse_scale = 1 / scale, step_size = rate / bias_correction_m, root_factor = 1 / sqrtf(bias_correction_v);
  for (size_t i = 0; i < count; i++) {
    float g = gradient[i] * inverse_scale;
    m[i] = 0.9f * m[i] + 0.1f * g;
    v[i] = 0.999f * v[i] + 0.001f * g * g;
    w[i] -= step_size * m[i] / (sqrtf(v[i]) * root_factor + 1e-8f);
  }
}

static void adam(size_t count, const float *gradient, float scale, float rate, float bias_correction_m, float bias_correction_v,
                 float *w, float *m, float *v) {
  unsigned mxcsr = disable_subnormals();
  adam_loop(count, gradient, scale, rate, bias_correction_m, bias_correction_v, w, m, v);
  restore_mxcsr(mxcsr);
}

static void add(size_t count, const float *restrict terms, float *restrict sums) {
  for (size_t i = 0; i < count; i++) sums[i] += terms[i];
}

static void pad_image(const float *x, float padded[PADDED_SIDE][PADDED_SIDE]) {
  memset(padded, 0, sizeof(float) * PADDED_SIDE * PADDED_SIDE);
  for (int y = 0; y < RL_IMAGE_SIDE; y++) memcpy(&padded[y + 1][1], x + y * RL_IMAGE_SIDE, sizeof(float) * RL_IMAGE_SIDE);
}

static void conv1_forward(const float *x, const float *w, const float *b, float *y, uint8_t *argmax) {
  float padded[PADDED_SIDE][PADDED_SIDE];
  pad_image(x, padded);
  for (int c = 0; c < RL_CONV1_CHANNELS; c += VECTOR_WIDTH) {
    float_vector taps[9], bias = load(b + c);
    for (int tap = 0; tap < 9; tap++) taps[tap] = load(w + tap * RL_CONV1_CHANNELS + c);
    for (int pixel = 0; pixel < RL_POOLED1_PIXELS; pixel++) {
      running_max max = initial_maximum();
      for (int i = 0; i < 4; i++) {
        const float *corner = &padded[2 * (pixel / RL_POOLED1_SIDE) + i / 2][2 * (pixel % RL_POOLED1_SIDE) + i % 2];
        float_vector sum = bias;
        for (int tap = 0; tap < 9; tap++) sum += corner[tap / 3 * PADDED_SIDE + tap % 3] * taps[tap];
        max = update_maximum(max, sum, i);
      }
      store_maximum(max, y + pixel * RL_CONV1_CHANNELS + c, argmax + pixel * RL_CONV1_CHANNELS + c);
    }
  }
}

static void conv1_gradient(const float *x, const float *dy, const uint8_t *argmax, float *dw, float *db) {
  float padded[PADDED_SIDE][PADDED_SIDE];
  pad_image(x, padded);
  for (int c = 0; c < RL_CONV1_CHANNELS; c += VECTOR_WIDTH) {
    float_vector sum[9] = {{0}}, bias = {0};
    for (int pixel = 0; pixel < RL_POOLED1_PIXELS; pixel++) {
      float_vector gradient = load(dy + pixel * RL_CONV1_CHANNELS + c);
      int_vector index = load_argmax(argmax + pixel * RL_CONV1_CHANNELS + c);
      for (int i = 0; i < 4; i++) {
        const float *corner = &padded[2 * (pixel / RL_POOLED1_SIDE) + i / 2][2 * (pixel % RL_POOLED1_SIDE) + i % 2];
        float_vector selected = select_or_zero(index == i, gradient);
        bias += selected;
        for (int tap = 0; tap < 9; tap++) sum[tap] += corner[tap / 3 * PADDED_SIDE + tap % 3] * selected;
      }
    }
    for (int tap = 0; tap < 9; tap++) store(load(dw + tap * RL_CONV1_CHANNELS + c) + sum[tap], dw + tap * RL_CONV1_CHANNELS + c);
    store(load(db + c) + bias, db + c);
  }
}

/* Returns the offset in conv2's product of input i, 0–3, of the pooling window that yields the pooled pixel `pixel`. */
static inline size_t pool_input_offset(int pixel, int i) {
  return (size_t)((2 * (pixel / RL_POOLED2_SIDE) + i / 2) * RL_CONV2_SIDE + 2 * (pixel % RL_POOLED2_SIDE) + i % 2) *
         RL_CONV2_CHANNELS;
}

static void pool2_forward(const float *product, const float *b, float *y, uint8_t *argmax) {
  for (int pixel = 0; pixel < RL_POOLED2_PIXELS; pixel++)
    for (int c = 0; c < RL_CONV2_CHANNELS; c += VECTOR_WIDTH) {
      running_max max = initial_maximum();
      for (int i = 0; i < 4; i++) max = update_maximum(max, load(product + pool_input_offset(pixel, i) + c) + load(b + c), i);
      store_maximum(max, y + pixel * RL_CONV2_CHANNELS + c, argmax + pixel * RL_CONV2_CHANNELS + c);
    }
}

static void pool2_gradient(const float *dy, const uint8_t *argmax, float *product_gradient, float *db) {
  for (int pixel = 0; pixel < RL_POOLED2_PIXELS; pixel++)
    for (int c = 0; c < RL_CONV2_CHANNELS; c += VECTOR_WIDTH) {
      float_vector gradient = load(dy + pixel * RL_CONV2_CHANNELS + c);
      int_vector index = load_argmax(argmax + pixel * RL_CONV2_CHANNELS + c);
      for (int i = 0; i < 4; i++) store(select_or_zero(index == i, gradient), product_gradient + pool_input_offset(pixel, i) + c);
      store(load(db + c) + select_or_zero(index != RL_ARGMAX_RELU_ZERO, gradient), db + c);
    }
}

enum {
  /* Floats of the three input pixels in a row of the filter, which are contiguous. */
  FILTER_ROW_FLOATS = 3 * RL_CONV1_CHANNELS
};

static void im2col(const float *x, float *columns) {
  for (int y = 0; y < RL_CONV2_SIDE; y++)
    for (int column = 0; column < RL_CONV2_SIDE; column++)
      for (int ky = 0; ky < 3; ky++, columns += FILTER_ROW_FLOATS)
        memcpy(columns, x + ((y + ky) * RL_POOLED1_SIDE + column) * RL_CONV1_CHANNELS, sizeof(float) * FILTER_ROW_FLOATS);
}

static void col2im(const float *columns, float *x) {
  memset(x, 0, sizeof(float) * RL_POOLED1_PIXELS * RL_CONV1_CHANNELS);
  for (int y = 0; y < RL_CONV2_SIDE; y++)
    for (int column = 0; column < RL_CONV2_SIDE; column++)
      for (int ky = 0; ky < 3; ky++, columns += FILTER_ROW_FLOATS) {
        float *restrict row = x + ((y + ky) * RL_POOLED1_SIDE + column) * RL_CONV1_CHANNELS;
        for (int i = 0; i < FILTER_ROW_FLOATS; i++) row[i] += columns[i];
      }
}

static void bias_relu(size_t rows, size_t count, const float *b, float *y) {
  for (size_t row = 0; row < rows; row++, y += count)
    for (size_t i = 0; i < count; i++) {
      float value = y[i] + b[i];
      y[i] = value < 0 ? 0 : value;
    }
}

#define QUOTE_VALUE(NAME) QUOTE(NAME)
#define QUOTE(NAME) #NAME
const rl_simd RL_SIMD = {.name = QUOTE_VALUE(RL_SIMD),
                         .to_half = to_half,
                         .from_half = from_half,
                         .all_finite = all_finite,
                         .adam = adam,
                         .add = add,
                         .conv1_forward = conv1_forward,
                         .conv1_gradient = conv1_gradient,
                         .pool2_forward = pool2_forward,
                         .pool2_gradient = pool2_gradient,
                         .im2col = im2col,
                         .col2im = col2im,
                         .bias_relu = bias_relu};
