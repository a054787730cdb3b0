/* Tests the fixed-point sums of exchange.cuh: they count their addends, do not depend on the order of additions, differ from the
 * exact sum by at most half a unit for each addend, and report addends that are not finite or too large. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

extern "C" {
#include <cmocka.h>
}

#include "train/cuda/exchange.cuh"

enum { BLOCKS = 8, BLOCK_THREADS = 16, ADDENDS = BLOCKS * BLOCK_THREADS };
static_assert(ADDENDS == 128, "a sum of this many of the largest addends must not overflow");

/* Thread i of the grid adds values[order[i]] to *sum, and stores whether it was valid. */
static __global__ void add(const float *values, const uint32_t *order, uint64_t *sum, bool *valid) {
  const uint32_t i = order[blockIdx.x * blockDim.x + threadIdx.x];
  valid[i] = add_to_fixed_point_sum(sum, values[i]);
}

/* Returns the word after all values have been added in the order. */
static uint64_t sum_in_order(const float *values, const uint32_t *order, bool *valid) {
  uint64_t sum = 0;
  add<<<BLOCKS, BLOCK_THREADS>>>(values, order, &sum, valid);
  assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
  assert_int_equal(sum & ((1u << ADDEND_COUNT_BITS) - 1), ADDENDS);
  return sum;
}

static void set_order(uint32_t order[ADDENDS], bool shuffles) {
  for (uint32_t i = 0; i < ADDENDS; i++) order[i] = i;
  for (uint32_t i = ADDENDS - 1; shuffles && i > 0; i--) {
    const uint32_t j = (uint32_t)rand() % (i + 1), other = order[j];
    order[j] = order[i];
    order[i] = other;
  }
}

/* Sums of values of up to `magnitude`, which may cancel. */
static void check_sums(float magnitude) {
  float values[ADDENDS];
  uint32_t order[ADDENDS];
  bool valid[ADDENDS];
  long double exact = 0;
  for (float &value : values) exact += value = magnitude * (2.0f * (float)rand() / (float)RAND_MAX - 1);
  set_order(order, false);
  const uint64_t sum = sum_in_order(values, order, valid);
  for (bool v : valid) assert_true(v);
  const long double at_most = ADDENDS * 0x1p-39L + fabsl(exact) * 0x1p-24L; /* roundings of the addends, then of the result */
  if (!(fabsl(fixed_point_sum(sum) - exact) <= at_most))
    fail_msg("the sum is %.9g, exactly %.9Lg", (double)fixed_point_sum(sum), exact);
  for (int i = 0; i < 10; i++) {
    set_order(order, true);
    assert_true(sum_in_order(values, order, valid) == sum);
  }
}

static void sums_are_exact_in_any_order(void **) {
  for (float magnitude = 1e-11f; magnitude < FIXED_POINT_MAX_ADDEND; magnitude *= 7) check_sums(magnitude);
}

/* All addends are the largest valid ones, of one sign: the sum does not overflow. */
static void largest_addends_do_not_overflow(void **) {
  float values[ADDENDS];
  uint32_t order[ADDENDS];
  bool valid[ADDENDS];
  set_order(order, false);
  for (float sign = -1; sign <= 1; sign += 2) {
    for (float &value : values) value = sign * nextafterf(FIXED_POINT_MAX_ADDEND, 0);
    const uint64_t sum = sum_in_order(values, order, valid);
    for (bool v : valid) assert_true(v);
    assert_true(fixed_point_sum(sum) == ADDENDS * values[0]);
  }
}

static void invalid_addends_are_reported(void **) {
  const float invalid[] = {FIXED_POINT_MAX_ADDEND, -FIXED_POINT_MAX_ADDEND, 1e30f, INFINITY, -INFINITY, NAN};
  uint32_t order[ADDENDS];
  set_order(order, false);
  for (float bad : invalid) {
    float values[ADDENDS] = {};
    bool valid[ADDENDS];
    values[77] = bad;
    sum_in_order(values, order, valid);
    for (int i = 0; i < ADDENDS; i++) assert_int_equal(valid[i], i != 77);
  }
}

int main() {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_exact_in_any_order),
                                     cmocka_unit_test(largest_addends_do_not_overflow),
                                     cmocka_unit_test(invalid_addends_are_reported)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
