/* Generates random numbers for tests and computes distances between vectors. Call choose_test_seed first: it takes the seed
 * from $ROOFLINED_TEST_SEED, or else from the time, so that the numbers differ from run to run. Without this call the seed is
 * 0. The call does not reset drawn_count, so a seed repeats the numbers of a test only after the same earlier tests. */
#ifndef RL_TESTS_RANDOM_NUMBERS_H
#define RL_TESTS_RANDOM_NUMBERS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "hash.h"

static uint64_t test_seed, drawn_count;

static inline void choose_test_seed(void) {
  const char *text = getenv("ROOFLINED_TEST_SEED");
  test_seed = text != NULL ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
}

static inline uint64_t random_bits(void) { return rl_hash64(test_seed + drawn_count++); }

/* Returns an integer that is uniform in [0, limit). */
static inline int random_below(int limit) { return (int)(random_bits() % (uint64_t)limit); }

/* Returns a number that is uniform in [-1, 1). */
static inline double random_value(void) { return (double)(random_bits() >> 11) * 0x1p-52 - 1; }

/* Returns a number that is uniform in [0, 1). */
static inline double random_ratio(void) { return (random_value() + 1) / 2; }

/* Returns a new array of random values if `random` is true, otherwise of zeros. The caller frees it. */
static inline double *new_numbers(size_t count, bool random) {
  double *values = calloc(count, sizeof *values);
  for (size_t i = 0; random && i < count; i++) values[i] = random_value();
  return values;
}

static inline double dot_product(size_t count, const double *a, const double *b) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += a[i] * b[i];
  return sum;
}

/* Returns ‖a - b‖ / ‖b‖. */
static inline double relative_distance(size_t count, const double *a, const double *b) {
  double difference = 0;
  for (size_t i = 0; i < count; i++) difference += (a[i] - b[i]) * (a[i] - b[i]);
  return sqrt(difference / dot_product(count, b, b));
}

/* Fails the test unless value < limit. name: name of the value for the message. */
static inline void assert_below(const char *name, double value, double limit) {
  if (!(value < limit)) fail_msg("%s: %g is not below %g (seed %llu)", name, value, limit, (unsigned long long)test_seed);
}

#endif
