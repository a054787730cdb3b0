/* Compiled several times, with RL_SIMD naming the table; plain loops and vectors of the compiler's own. */
#include "train/simd.h"

#include <math.h>
#include <string.h>

#include "half.h"
#include "train/lanes.h"
#include "train/model.h"
#include "train/oracle.h"
#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum { PADDED = RL_IMAGE + 2 };

static void to_half(size_t count, const float *from, uint16_t *to) {
  size_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128((__m128i *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < count; i++) to[i] = rl_half_from_float(from[i]);
}

static void from_half(size_t count, const uint16_t *from, float *to) {
  size_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= count; i += 8) _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
#endif
  for (; i < count; i++) to[i] = rl_half_to_float(from[i]);
}

static bool all_finite(size_t count, const float *values) {
  uint32_t bad = 0;
  for (size_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, values + i, sizeof bits);
    bad |= (bits & 0x7f800000) == 0x7f800000;
  }
  return bad == 0;
}

/* Where a weight's gradient stays 0, its moments decay into subnormal numbers, on which x86 is a hundred times as slow. They are
 * far below what epsilon lets through: take them as 0. */
#ifdef __SSE2__
static unsigned without_subnormals(void) {
  unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040); /* flush to zero, denormals are zero */
  return before;
}
static void with_subnormals(unsigned before) { _mm_setcsr(before); }
#else
static unsigned without_subnormals(void) { return 0; }
static void with_subnormals(unsigned before) { (void)before; }
#endif

static __attribute__((noinline)) void adam_loop(size_t count, const float *restrict gradient, float scale, float rate,
                                                float unbias_m, float unbias_v, float *restrict w, float *restrict m,
                                                float *restrict v) {
  float unscale = 1 / scale, step = rate / unbias_m, root = 1 / sqrtf(unbias_v);
  for (size_t i = 0; i < count; i++) {
    float g = gradient[i] * unscale;
    m[i] = 0.9f * m[i] + 0.1f * g;
    v[i] = 0.999f * v[i] + 0.001f * g * g;
    w[i] -= step * m[i] / (sqrtf(v[i]) * root + 1e-8f);
  }
}

static void adam(size_t count, const float *gradient, float scale, float rate, float unbias_m, float unbias_v, float *w, float *m,
                 float *v) {
  unsigned before = without_subnormals();
  adam_loop(count, gradient, scale, rate, unbias_m, unbias_v, w, m, v);
  with_subnormals(before);
}

static void add(size_t count, const float *restrict from, float *restrict to) {
  for (size_t i = 0; i < count; i++) to[i] += from[i];
}

static void pad(const float *x, float padded[PADDED][PADDED]) {
  memset(padded, 0, sizeof(float) * PADDED * PADDED);
  for (int y = 0; y < RL_IMAGE; y++) memcpy(&padded[y + 1][1], x + y * RL_IMAGE, sizeof(float) * RL_IMAGE);
}

static void conv1_forward(const float *x, const float *w, const float *b, float *y, uint8_t *choice) {
  float padded[PADDED][PADDED];
  pad(x, padded);
  for (int c = 0; c < RL_C1; c += WIDTH) {
    lanes taps[9], bias = load(b + c);
    for (int tap = 0; tap < 9; tap++) taps[tap] = load(w + tap * RL_C1 + c);
    for (int at = 0; at < RL_P1 * RL_P1; at++) {
      winner pooled = nobody();
      for (int i = 0; i < 4; i++) {
        const float *corner = &padded[2 * (at / RL_P1) + i / 2][2 * (at % RL_P1) + i % 2];
        lanes sum = bias;
        for (int tap = 0; tap < 9; tap++) sum += corner[tap / 3 * PADDED + tap % 3] * taps[tap];
        pooled = challenge(pooled, sum, i);
      }
      store_winner(pooled, y + at * RL_C1 + c, choice + at * RL_C1 + c);
    }
  }
}

static void conv1_gradient(const float *x, const float *dy, const uint8_t *choice, float *dw, float *db) {
  float padded[PADDED][PADDED];
  pad(x, padded);
  for (int c = 0; c < RL_C1; c += WIDTH) {
    lanes sum[9] = {{0}}, bias = {0};
    for (int at = 0; at < RL_P1 * RL_P1; at++) {
      lanes gradient = load(dy + at * RL_C1 + c);
      integers chosen = load_choice(choice + at * RL_C1 + c);
      for (int i = 0; i < 4; i++) {
        const float *corner = &padded[2 * (at / RL_P1) + i / 2][2 * (at % RL_P1) + i % 2];
        lanes part = where(chosen == i, gradient);
        bias += part;
        for (int tap = 0; tap < 9; tap++) sum[tap] += corner[tap / 3 * PADDED + tap % 3] * part;
      }
    }
    for (int tap = 0; tap < 9; tap++) store(load(dw + tap * RL_C1 + c) + sum[tap], dw + tap * RL_C1 + c);
    store(load(db + c) + bias, db + c);
  }
}

/* Where the i-th of the four pixels under pooled position `at` of conv2 begins. */
static inline size_t under(int at, int i) {
  return (size_t)((2 * (at / RL_P2) + i / 2) * RL_H2 + 2 * (at % RL_P2) + i % 2) * RL_C2;
}

static void pool2_forward(const float *c2, const float *b, float *y, uint8_t *choice) {
  for (int at = 0; at < RL_P2 * RL_P2; at++)
    for (int c = 0; c < RL_C2; c += WIDTH) {
      winner pooled = nobody();
      for (int i = 0; i < 4; i++) pooled = challenge(pooled, load(c2 + under(at, i) + c) + load(b + c), i);
      store_winner(pooled, y + at * RL_C2 + c, choice + at * RL_C2 + c);
    }
}

static void pool2_gradient(const float *dy, const uint8_t *choice, float *dc, float *db) {
  for (int at = 0; at < RL_P2 * RL_P2; at++)
    for (int c = 0; c < RL_C2; c += WIDTH) {
      lanes gradient = load(dy + at * RL_C2 + c);
      integers chosen = load_choice(choice + at * RL_C2 + c);
      for (int i = 0; i < 4; i++) store(where(chosen == i, gradient), dc + under(at, i) + c);
      store(load(db + c) + where(chosen != RL_ORACLE_DEAD, gradient), db + c);
    }
}

enum { SPAN = 3 * RL_C1 }; /* the three pixels of a kernel row lie side by side */

static void image_to_columns(const float *x, float *columns) {
  for (int y = 0; y < RL_H2; y++)
    for (int column = 0; column < RL_H2; column++)
      for (int ky = 0; ky < 3; ky++, columns += SPAN)
        memcpy(columns, x + ((y + ky) * RL_P1 + column) * RL_C1, sizeof(float) * SPAN);
}

static void columns_to_image(const float *columns, float *x) {
  memset(x, 0, sizeof(float) * RL_P1 * RL_P1 * RL_C1);
  for (int y = 0; y < RL_H2; y++)
    for (int column = 0; column < RL_H2; column++)
      for (int ky = 0; ky < 3; ky++, columns += SPAN) {
        float *restrict at = x + ((y + ky) * RL_P1 + column) * RL_C1;
        for (int i = 0; i < SPAN; i++) at[i] += columns[i];
      }
}

static void bias_relu(size_t rows, size_t count, const float *b, float *y) {
  for (size_t row = 0; row < rows; row++, y += count)
    for (size_t i = 0; i < count; i++) {
      float value = y[i] + b[i];
      y[i] = value < 0 ? 0 : value;
    }
}

#define TEXT(NAME) TEXT_OF(NAME)
#define TEXT_OF(NAME) #NAME
const rl_simd RL_SIMD = {
    TEXT(RL_SIMD), to_half,        from_half,        all_finite,       adam,     add, conv1_forward, conv1_gradient,
    pool2_forward, pool2_gradient, image_to_columns, columns_to_image, bias_relu};
