/* Sums stay in registers: SPAN channels side by side, for 12 pixels of the output (forward) or for the 9 taps (backward). Each
 * number of the image is broadcast, each vector of weights or inputs comes from the first cache: 36 KB of weights are in use at a
 * time. */
#include "train/direct.h"

#include <immintrin.h>
#include <string.h>

#include "train/simd_vector.h"
#include "train/model.h"
#include "train/oracle.h"

#if defined(__AVX512F__)
enum { VECTORS = 2 }; /* of 32 registers 24 hold sums */
#else
enum { VECTORS = 1 }; /* of 16, 12 */
#endif
enum { TAPS = 9, DEPTH = TAPS * RL_C1, SPAN = VECTORS * VECTOR_WIDTH, ROW = RL_P1 * RL_C1, ACROSS = 3 };

static void arrange(const float *w, float *taps) {
  for (int slice = 0; slice < RL_C2; slice += SPAN)
    for (int i = 0; i < DEPTH; i++)
      for (int o = 0; o < SPAN; o++) *taps++ = w[(slice + o) * DEPTH + i];
}

/* ACROSS pools side by side of SPAN channels. */
static inline void forward_pools(const float *x, const float *taps, const float *b, float *y, uint8_t *argmax) {
  float_vector sum[2][2 * ACROSS][VECTORS];
  for (int i = 0; i < 2 * 2 * ACROSS; i++)
    for (int v = 0; v < VECTORS; v++) sum[i / (2 * ACROSS)][i % (2 * ACROSS)][v] = load(b + v * VECTOR_WIDTH);
  for (int tap = 0; tap < TAPS; tap++) {
    const float *corner = x + tap / 3 * ROW + tap % 3 * RL_C1;
    for (int c = 0; c < RL_C1; c++, taps += SPAN)
      for (int row = 0; row < 2; row++)
        for (int column = 0; column < 2 * ACROSS; column++)
          for (int v = 0; v < VECTORS; v++)
            sum[row][column][v] += corner[row * ROW + column * RL_C1 + c] * load(taps + v * VECTOR_WIDTH);
  }
  for (int pool = 0; pool < ACROSS; pool++)
    for (int v = 0; v < VECTORS; v++) {
      running_max pooled = no_maximum();
      for (int i = 0; i < 4; i++) pooled = update_maximum(pooled, sum[i / 2][2 * pool + i % 2][v], i);
      store_maximum(pooled, y + pool * RL_C2 + v * VECTOR_WIDTH, argmax + pool * RL_C2 + v * VECTOR_WIDTH);
    }
}

static void forward(const float *x, const float *taps, const float *b, float *y, uint8_t *argmax) {
  for (int slice = 0; slice < RL_C2; slice += SPAN)
    for (int at = 0; at < RL_P2 * RL_P2; at += ACROSS) {
      const float *corner = x + at / RL_P2 * 2 * ROW + at % RL_P2 * 2 * RL_C1;
      forward_pools(corner, taps + slice * DEPTH, b + slice, y + at * RL_C2 + slice, argmax + at * RL_C2 + slice);
    }
}

/* Where the inputs of the winner of pool `at` begin. */
static inline size_t under(int at, int argmax) {
  return (size_t)((2 * (at / RL_P2) + argmax / 2) * ROW + (2 * (at % RL_P2) + argmax % 2) * RL_C1);
}

static inline size_t tap_offset(int tap) { return (size_t)(tap / 3 * ROW + tap % 3 * RL_C1); }

enum { OUTPUTS = 32 }; /* whose weights are in use at a time */

/* Bit o: the winner of channel o is `number`. */
static inline uint32_t winners(const uint8_t *argmax, int number) {
  __m256i equal = _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)argmax), _mm256_set1_epi8((char)number));
  return (uint32_t)_mm256_movemask_epi8(equal);
}

static inline void spread(uint32_t chosen, const float *dy, const float *w, float *dx) {
  float_vector sum[TAPS][VECTORS];
  for (int tap = 0; tap < TAPS; tap++)
    for (int v = 0; v < VECTORS; v++) sum[tap][v] = load(dx + tap_offset(tap) + v * VECTOR_WIDTH);
  for (; chosen != 0; chosen &= chosen - 1) {
    int o = __builtin_ctz(chosen);
    for (int tap = 0; tap < TAPS; tap++)
      for (int v = 0; v < VECTORS; v++) sum[tap][v] += dy[o] * load(w + o * DEPTH + tap * RL_C1 + v * VECTOR_WIDTH);
  }
  for (int tap = 0; tap < TAPS; tap++)
    for (int v = 0; v < VECTORS; v++) store(sum[tap][v], dx + tap_offset(tap) + v * VECTOR_WIDTH);
}

static void input_gradient(const float *dy, const uint8_t *argmax, const float *w, float *dx) {
  memset(dx, 0, sizeof(float) * RL_P1 * ROW);
  for (int first = 0; first < RL_C2; first += OUTPUTS)
    for (int at = 0; at < RL_P2 * RL_P2; at++)
      for (int number = 0; number < 4; number++) {
        uint32_t chosen = winners(argmax + at * RL_C2 + first, number);
        for (int c = 0; c < RL_C1; c += SPAN)
          spread(chosen, dy + at * RL_C2 + first, w + first * DEPTH + c, dx + under(at, number) + c);
      }
}

static inline void gather(uint64_t alive, int o, const float *x, const float *dy, const uint8_t *argmax, float *dw) {
  float_vector sum[TAPS][VECTORS];
  for (int tap = 0; tap < TAPS; tap++)
    for (int v = 0; v < VECTORS; v++) sum[tap][v] = load(dw + tap * RL_C1 + v * VECTOR_WIDTH);
  for (; alive != 0; alive &= alive - 1) {
    int at = __builtin_ctzll(alive);
    const float *from = x + under(at, argmax[at * RL_C2 + o]);
    for (int tap = 0; tap < TAPS; tap++)
      for (int v = 0; v < VECTORS; v++) sum[tap][v] += dy[at * RL_C2 + o] * load(from + tap_offset(tap) + v * VECTOR_WIDTH);
  }
  for (int tap = 0; tap < TAPS; tap++)
    for (int v = 0; v < VECTORS; v++) store(sum[tap][v], dw + tap * RL_C1 + v * VECTOR_WIDTH);
}

static void weight_gradient(const float *x, const float *dy, const uint8_t *argmax, float *dw, float *db) {
  uint64_t alive[RL_C2] = {0}; /* bit at: pool `at` of this channel has a winner */
  for (int at = 0; at < RL_P2 * RL_P2; at++)
    for (int o = 0; o < RL_C2; o++) {
      bool lives = argmax[at * RL_C2 + o] != RL_ORACLE_RELU_ZERO;
      alive[o] |= (uint64_t)lives << at;
      db[o] += lives ? dy[at * RL_C2 + o] : 0;
    }
  for (int o = 0; o < RL_C2; o++)
    for (int c = 0; c < RL_C1; c += SPAN) gather(alive[o], o, x + c, dy, argmax, dw + o * DEPTH + c);
}

#define TEXT(NAME) TEXT_OF(NAME)
#define TEXT_OF(NAME) #NAME
const rl_direct RL_DIRECT = {TEXT(RL_DIRECT), arrange, forward, input_gradient, weight_gradient};
