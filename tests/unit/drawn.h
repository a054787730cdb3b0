/* Fresh random numbers for tests, and how far apart two lists of numbers are. ROOFLINED_TEST_SEED repeats a run. */
#ifndef RL_TESTS_DRAWN_H
#define RL_TESTS_DRAWN_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "hash.h"

static uint64_t test_seed, drawn;

static inline void choose_seed(void) {
  const char *repeat = getenv("ROOFLINED_TEST_SEED");
  test_seed = repeat != NULL ? strtoull(repeat, NULL, 10) : (uint64_t)time(NULL);
}

static inline uint64_t draw_bits(void) { return rl_hash64(test_seed + drawn++); }

/* In [-1, 1). */
static inline double draw(void) { return (double)(draw_bits() >> 11) * 0x1p-52 - 1; }

static inline double *numbers(size_t count, bool random) {
  double *made = calloc(count, sizeof *made);
  for (size_t i = 0; random && i < count; i++) made[i] = draw();
  return made;
}

static inline double dot(size_t count, const double *a, const double *b) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += a[i] * b[i];
  return sum;
}

/* ‖a - b‖ / ‖b‖ */
static inline double apart(size_t count, const double *a, const double *b) {
  double difference = 0;
  for (size_t i = 0; i < count; i++) difference += (a[i] - b[i]) * (a[i] - b[i]);
  return sqrt(difference / dot(count, b, b));
}

static inline void close_to(const char *what, double found, double limit) {
  if (!(found < limit)) fail_msg("%s: %g is not below %g (seed %llu)", what, found, limit, (unsigned long long)test_seed);
}

#endif
