/* Compares functions.cuh with the C library in long double: the errors of exponentials in units in the last place (ulps), their
 * underflow to zero, the clamping of powers, and powers of two. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <type_traits>

extern "C" {
#include <cmocka.h>
}

#include "kernel/functions.cuh"

enum { RUNS = 4000 };

/* DIGITS is the number of bits of the significand. MIN_EXPONENT: results of scaled_exp below 2^MIN_EXPONENT are zero.
 * MIN_POWER_OF_TWO: results of power_of_two below 2^MIN_POWER_OF_TWO are zero. MAX_ULPS: largest error, in ulps, of a quotient of
 * exponentials whose value is near 1. */
template <class M> struct limits;
template <> struct limits<float> {
  enum { DIGITS = FLT_MANT_DIG, MIN_EXPONENT = -126, MIN_POWER_OF_TWO = -126, MAX_ULPS = 4 };
};
template <> struct limits<double> {
  enum { DIGITS = DBL_MANT_DIG, MIN_EXPONENT = -1020, MIN_POWER_OF_TWO = -1022, MAX_ULPS = 8 };
};

/* Returns a number that is uniform in [-magnitude, magnitude]. */
static double random_number(double magnitude) { return magnitude * (2.0 * rand() / RAND_MAX - 1); }

/* Sets *power to nearest_power(x), and checks that it differs from x log2 e by at most 1/2 plus the rounding error of this
 * product. Returns 1 plus that rounding error: check_quotient requires that |log2(scaled_exp(x))| is not larger. */
template <class M> static M check_nearest_power(M x, int32_t *power) {
  const long double exact = (long double)x * M_LOG2El, rounding = fabsl(exact) * exp2l(1 - limits<M>::DIGITS);
  *power = nearest_power(x);
  if (!(fabsl(*power - exact) <= 0.5L + rounding)) fail_msg("nearest_power(%.17g) is %d", (double)x, *power);
  return (M)(1 + rounding);
}

/* Checks exp(x) / exp(largest), which softmax computes from scaled_exp. The argument x log2 e is rounded, so errors grow with |x
 * - largest|. */
template <class M> static void check_quotient(M largest, M x) {
  int32_t power;
  const M max_log2_error = check_nearest_power(largest, &power);
  const scaled_exp<M> exponential(power);
  const M scaled_largest = exponential(largest), y = exponential(x);
  const long double exact = expl((long double)x - largest), binades = -((long double)x - largest) * M_LOG2El + max_log2_error;
  if (!(fabsl(log2l(scaled_largest)) <= max_log2_error))
    fail_msg("scaled_exp(%.17g) is %g, too far from 1", (double)largest, (double)scaled_largest);
  if (-binades < limits<M>::MIN_EXPONENT + 1) return; /* y may be zero */
  const long double ulps = fabsl((long double)y / scaled_largest / exact - 1) * exp2l(limits<M>::DIGITS);
  const long double max_ulps = limits<M>::MAX_ULPS + binades * (std::is_same_v<M, float> ? 1.5L : 0.25L);
  if (!(ulps <= max_ulps))
    fail_msg("exp(%.17g - %.17g): an error of %Lg ulps, more than %Lg", (double)x, (double)largest, ulps, max_ulps);
}

template <class M> static void quotients_of_exponentials_are_accurate(void **) {
  const double magnitudes[] = {0, 1, 90, 1e3, 1e5, 3e7, 7e8};
  for (double magnitude : magnitudes)
    for (int run = 0; run < RUNS; run++) {
      const M largest = (M)random_number(magnitude),
              x = (M)(largest - fabs(random_number(run % 2 ? 2 : -limits<M>::MIN_EXPONENT)));
      check_quotient<M>(largest, largest);
      check_quotient<M>(largest, x);
    }
}

/* Checks results just above and just below the smallest nonzero result, and far below it. */
template <class M> static void exponentials_underflow_to_zero(void **) {
  const int32_t powers[] = {MIN_POWER, -100, 0, 100, -MIN_POWER};
  for (int32_t power : powers) {
    const scaled_exp<M> exponential(power);
    assert_true(exponential((M)-INFINITY) == 0 && exponential(std::is_same_v<M, float> ? (M)-FLT_MAX : (M)-DBL_MAX) == 0);
    assert_true(exponential((M)-1e12) == 0 && exponential((M)-1e17) == 0);
  }
  for (int32_t power = -100; power <= 100; power += 50) {
    const scaled_exp<M> exponential(power);
    assert_true(exponential((M)((limits<M>::MIN_EXPONENT - 0.75 + power) * M_LN2)) == 0);
    assert_true(exponential((M)((limits<M>::MIN_EXPONENT + 0.25 + power) * M_LN2)) > 0);
  }
}

template <class M> static void powers_are_clamped(void **) {
  assert_int_equal(nearest_power((M)-INFINITY), MIN_POWER);
  assert_int_equal(nearest_power((M)INFINITY), -MIN_POWER);
  assert_int_equal(nearest_power((M)-8e8), MIN_POWER);
  assert_int_equal(nearest_power((M)8e8), -MIN_POWER);
  assert_int_equal(nearest_power((M)0), 0);
}

template <class M> static void powers_of_two_are_exact_or_zero(void **) {
  for (int32_t power = 0; power >= limits<M>::MIN_POWER_OF_TWO; power--) assert_true(power_of_two<M>(power) == exp2l(power));
  for (int32_t power = limits<M>::MIN_POWER_OF_TWO - 1; power >= -5000; power--) assert_true(power_of_two<M>(power) == 0);
  assert_true(power_of_two<M>(MIN_POWER) == 0 && power_of_two<M>(2 * MIN_POWER) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(quotients_of_exponentials_are_accurate<float>),
                                     cmocka_unit_test(quotients_of_exponentials_are_accurate<double>),
                                     cmocka_unit_test(exponentials_underflow_to_zero<float>),
                                     cmocka_unit_test(exponentials_underflow_to_zero<double>),
                                     cmocka_unit_test(powers_are_clamped<float>),
                                     cmocka_unit_test(powers_are_clamped<double>),
                                     cmocka_unit_test(powers_of_two_are_exact_or_zero<float>),
                                     cmocka_unit_test(powers_of_two_are_exact_or_zero<double>)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
