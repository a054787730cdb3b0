/* functions.cuh against the C library in long double: errors in units in the last place, and what is zero, one or infinite. */
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

template <class M> struct limits; /* least: power of two that is not yet zero */
template <> struct limits<float> {
  enum { EPSILON = FLT_MANT_DIG, LEAST = -126, LEAST_UNIT = -126, FEW = 4 };
};
template <> struct limits<double> {
  enum { EPSILON = DBL_MANT_DIG, LEAST = -1020, LEAST_UNIT = -1022, FEW = 8 };
};

static double random_of(double most) { return most * (2.0 * rand() / RAND_MAX - 1); }

/* How far from the power of two next to them exponentials of numbers of some magnitude may be: as far as products are rounded. */
template <class M> static M next_to(M x, int32_t *power) {
  const long double exact = (long double)x * M_LOG2El, rounded = fabsl(exact) * exp2l(1 - limits<M>::EPSILON);
  *power = nearest_power(x);
  if (!(fabsl(*power - exact) <= 0.5L + rounded)) fail_msg("%.17g is next to 2^%d", (double)x, *power);
  return (M)(1 + rounded);
}

/* exp(x) / exp(most) is what softmax makes of them. An exponent is rounded, and so is log2 e, by which it is multiplied. */
template <class M> static void check_quotient(M most, M x) {
  int32_t power;
  const M apart = next_to(most, &power);
  const scaled_exp<M> exponential(power);
  const M unit = exponential(most), y = exponential(x);
  const long double exact = expl((long double)x - most), steps = -((long double)x - most) * M_LOG2El + apart;
  if (!(fabsl(log2l(unit)) <= apart)) fail_msg("exp(%.17g) is %g units", (double)most, (double)unit);
  if (-steps < limits<M>::LEAST + 1) return; /* y may be zero */
  const long double ulps = fabsl((long double)y / unit / exact - 1) * exp2l(limits<M>::EPSILON);
  const long double few = limits<M>::FEW + steps * (std::is_same_v<M, float> ? 1.5L : 0.25L);
  if (!(ulps <= few)) fail_msg("exp(%.17g - %.17g): %Lg units in the last place of %Lg", (double)x, (double)most, ulps, few);
}

template <class M> static void exponentials_are_right(void **) {
  const double magnitudes[] = {0, 1, 90, 1e3, 1e5, 3e7, 7e8};
  for (double magnitude : magnitudes)
    for (int run = 0; run < RUNS; run++) {
      const M most = (M)random_of(magnitude), x = (M)(most - fabs(random_of(run % 2 ? 2 : -limits<M>::LEAST)));
      check_quotient<M>(most, most);
      check_quotient<M>(most, x);
    }
}

/* At both ends of what they are zero below. */
template <class M> static void exponentials_end_in_zero(void **) {
  const int32_t powers[] = {MIN_POWER, -100, 0, 100, -MIN_POWER};
  for (int32_t power : powers) {
    const scaled_exp<M> exponential(power);
    assert_true(exponential((M)-INFINITY) == 0 && exponential(std::is_same_v<M, float> ? (M)-FLT_MAX : (M)-DBL_MAX) == 0);
    assert_true(exponential((M)-1e12) == 0 && exponential((M)-1e17) == 0);
  }
  for (int32_t power = -100; power <= 100; power += 50) {
    const scaled_exp<M> exponential(power);
    assert_true(exponential((M)((limits<M>::LEAST - 0.75 + power) * M_LN2)) == 0);
    assert_true(exponential((M)((limits<M>::LEAST + 0.25 + power) * M_LN2)) > 0);
  }
}

template <class M> static void powers_are_bounded(void **) {
  assert_int_equal(nearest_power((M)-INFINITY), MIN_POWER);
  assert_int_equal(nearest_power((M)INFINITY), -MIN_POWER);
  assert_int_equal(nearest_power((M)-8e8), MIN_POWER);
  assert_int_equal(nearest_power((M)8e8), -MIN_POWER);
  assert_int_equal(nearest_power((M)0), 0);
}

template <class M> static void units_are_powers_of_two(void **) {
  for (int32_t power = 0; power >= limits<M>::LEAST_UNIT; power--) assert_true(power_of_two<M>(power) == exp2l(power));
  for (int32_t power = limits<M>::LEAST_UNIT - 1; power >= -5000; power--) assert_true(power_of_two<M>(power) == 0);
  assert_true(power_of_two<M>(MIN_POWER) == 0 && power_of_two<M>(2 * MIN_POWER) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(exponentials_are_right<float>),   cmocka_unit_test(exponentials_are_right<double>),
      cmocka_unit_test(exponentials_end_in_zero<float>), cmocka_unit_test(exponentials_end_in_zero<double>),
      cmocka_unit_test(powers_are_bounded<float>),       cmocka_unit_test(powers_are_bounded<double>),
      cmocka_unit_test(units_are_powers_of_two<float>),  cmocka_unit_test(units_are_powers_of_two<double>)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
