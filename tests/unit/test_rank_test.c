/* Tests the statistics of two samples against SciPy's values and printed tables, and properties that hold for random samples. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/rank_test.h"
#include "random_numbers.h"

enum { MAX_VALUES = 64 };

static void assert_close(double value, double expected) {
  if (isinf(expected) && value == expected) return;
  if (!(fabs(value - expected) <= 1e-9 * fabs(expected))) fail_msg("%.12g is not %.12g", value, expected);
}

static rl_rank_test compare_samples(const double *a, size_t a_count, const double *b, size_t b_count) {
  rl_rank_test test;
  assert_int_equal(rl_rank_test_compare(a, a_count, b, b_count, &test, NULL), 0);
  return test;
}

static rl_ratio_interval estimate_ratio(const double *a, size_t a_count, const double *b, size_t b_count, double alpha) {
  rl_ratio_interval interval;
  assert_int_equal(rl_rank_test_estimate_ratio(a, a_count, b, b_count, alpha, &interval, NULL), 0);
  return interval;
}

/* --- SciPy ------------------------------------------------------------------------------------------------------------- */

static size_t read_numbers(const char *text, double *numbers) {
  size_t count = 0;
  for (char *end; *text != '\0' && count < MAX_VALUES; text = end) {
    numbers[count] = strtod(text, &end);
    if (end == text) break;
    count++;
  }
  return count;
}

static void scipy_has_the_same_values(void **state) {
  (void)state;
  static char line[8192];
  FILE *file = fopen(RL_SOURCE "/tests/data/rank_test.csv", "r");
  assert_non_null(file);
  assert_non_null(fgets(line, sizeof line, file));
  int distinct = 0, tied = 0;
  while (fgets(line, sizeof line, file)) {
    char *cursor = line, *field[10] = {NULL};
    double a[MAX_VALUES], b[MAX_VALUES], number[10] = {0};
    size_t fields = 0;
    for (char *next; fields < 10 && (next = strsep(&cursor, ",\n")) != NULL;) field[fields++] = next;
    size_t n = read_numbers(field[1], a), m = read_numbers(field[2], b);
    for (size_t i = 3; i < fields; i++) number[i] = strtod(field[i], NULL);
    rl_rank_test test = compare_samples(a, n, b, m);
    assert_true(test.exact);
    assert_close(test.u, number[3]), assert_close(test.p_value, number[4]);
    assert_close(compare_samples(b, m, a, n).p_value, number[4]);
    rl_ratio_interval wide = estimate_ratio(a, n, b, m, 0.05), wider = estimate_ratio(a, n, b, m, 0.01);
    assert_close(wide.ratio, number[5]);
    *(strcmp(field[0], "ties") == 0 ? &tied : &distinct) += 1;
    if (fields < 10) continue;
    assert_close(wide.low, number[6]), assert_close(wide.high, number[7]);
    assert_close(wider.low, number[8]), assert_close(wider.high, number[9]);
  }
  fclose(file);
  assert_true(distinct >= 40 && tied >= 40);
}

/* --- printed tables ---------------------------------------------------------------------------------------------------- */

/* Makes a sample of `count` values whose Mann-Whitney U against the sample 1, 2, ..., other_size is u. */
static void make_sample(size_t count, size_t other_size, size_t u, double *values) {
  for (size_t i = 0; i < count; i++) {
    size_t exceeded = u < other_size ? u : other_size;
    values[i] = (double)exceeded + 0.5 + 1e-3 * (double)i;
    u -= exceeded;
  }
}

/* The largest U that is significant in a two-sided test, in the tables of textbooks. */
static void critical_values_are_those_of_printed_tables(void **state) {
  (void)state;
  static const struct {
    size_t n, m, u_5, u_1;
  } rows[] = {{5, 5, 2, 0},  {6, 6, 5, 2},    {7, 7, 8, 4},    {8, 8, 13, 7},    {9, 9, 17, 11},   {10, 10, 23, 16},
              {5, 10, 8, 4}, {7, 12, 18, 12}, {8, 20, 41, 30}, {12, 12, 37, 27}, {15, 15, 64, 51}, {20, 20, 127, 105}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double a[MAX_VALUES], b[MAX_VALUES];
    for (size_t k = 0; k < rows[i].m; k++) b[k] = (double)(k + 1);
    for (size_t u = 0; u <= rows[i].n * rows[i].m / 2; u++) {
      make_sample(rows[i].n, rows[i].m, u, a);
      rl_rank_test test = compare_samples(a, rows[i].n, b, rows[i].m);
      assert_true(test.u == (double)u);
      if ((test.p_value <= 0.05) != (u <= rows[i].u_5) || (test.p_value <= 0.01) != (u <= rows[i].u_1))
        fail_msg("U = %zu of samples of %zu and %zu values: p = %g is on the wrong side of 0.05 or 0.01", u, rows[i].n, rows[i].m,
                 test.p_value);
    }
  }
}

/* Adjusts the fifteen p-values of Benjamini and Hochberg (1995), section 3.3. Their procedure rejects four at 0.05. */
static void adjusted_p_values_reject_as_published(void **state) {
  (void)state;
  static const double p[] = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
                             0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000};
  static const int order[] = {9, 3, 14, 0, 7, 1, 12, 5, 2, 11, 4, 13, 6, 10, 8};
  enum { TESTS = sizeof p / sizeof *p };
  double shuffled[TESTS + 1], adjusted[TESTS + 1];
  for (int i = 0; i < TESTS; i++) shuffled[i] = p[order[i]];
  shuffled[TESTS] = NAN;
  assert_int_equal(rl_adjust_p_values(shuffled, TESTS + 1, adjusted, NULL), 0);
  assert_true(isnan(adjusted[TESTS]));
  for (int i = 0; i < TESTS; i++) {
    assert_int_equal(adjusted[i] <= 0.05, order[i] < 4);
    if (order[i] == 0) assert_close(adjusted[i], 0.0015);
    if (order[i] == 3) assert_close(adjusted[i], 0.0095 * 15 / 4);
    if (order[i] == 5)
      assert_close(adjusted[i], 0.0298 * 15 / 7); /* the next p-value gives a smaller adjusted value, which replaces this one */
    if (order[i] == 14) assert_close(adjusted[i], 1);
  }
}

/* --- properties -------------------------------------------------------------------------------------------------------- */

static void the_smallest_p_value_is_that_of_separated_samples(void **state) {
  (void)state;
  assert_close(rl_rank_test_smallest_p(7, 7), 2.0 / 3432);
  assert_close(rl_rank_test_smallest_p(8, 8), 2.0 / 12870);
  assert_close(rl_rank_test_smallest_p(1, 1), 1);
  for (size_t n = 1; n < 12; n++) {
    double low[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, high[] = {12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22};
    for (size_t m = 1; m < 10; m++)
      if (n + m > 2) assert_close(compare_samples(low, m, high, n).p_value, rl_rank_test_smallest_p(n, m));
  }
}

/* P(p <= alpha) is at most alpha with many ties, with none, and where the p-value is approximate. */
static void p_values_of_equal_distributions_are_valid(void **state) {
  (void)state;
  choose_test_seed();
  enum { TRIALS = 20000 };
  static const struct {
    size_t n, m;
    double distinct_values_per_side; /* of 0; few: many ties */
  } cases[] = {{7, 7, 4}, {7, 7, 1e9}, {6, 13, 3}, {4, 60, 1e9}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    int below[2] = {0};
    for (int trial = 0; trial < TRIALS; trial++) {
      double values[MAX_VALUES];
      for (size_t i = 0; i < cases[c].n + cases[c].m; i++) values[i] = floor(cases[c].distinct_values_per_side * random_value());
      double p = compare_samples(values, cases[c].n, values + cases[c].n, cases[c].m).p_value;
      below[0] += p <= 0.05, below[1] += p <= 0.01;
    }
    assert_below("p <= 0.05", below[0], TRIALS * 0.05 + 5 * sqrt(TRIALS * 0.05));
    assert_below("p <= 0.01", below[1], TRIALS * 0.01 + 5 * sqrt(TRIALS * 0.01));
  }
}

/* The test accepts a factor just inside the interval, and rejects a factor just outside. */
static void an_interval_holds_the_factors_that_the_test_accepts(void **state) {
  (void)state;
  choose_test_seed();
  for (int trial = 0; trial < 200; trial++) {
    enum { N = 7, M = 9 };
    double a[N], b[M], scaled[N];
    for (int i = 0; i < N; i++) a[i] = exp(0.1 * random_value());
    for (int i = 0; i < M; i++) b[i] = 1.1 * exp(0.1 * random_value());
    rl_ratio_interval interval = estimate_ratio(a, N, b, M, 0.01), inverse = estimate_ratio(b, M, a, N, 0.01);
    assert_close(inverse.low, 1 / interval.high), assert_close(inverse.high, 1 / interval.low);
    assert_true(interval.low <= interval.ratio && interval.ratio <= interval.high);
    static const double factors[] = {-1e-9, 1e-9};
    for (int side = 0; side < 4; side++) {
      double factor = (side < 2 ? interval.low : interval.high) * (1 + factors[side % 2]);
      for (int i = 0; i < N; i++) scaled[i] = factor * a[i];
      assert_int_equal(compare_samples(scaled, N, b, M).p_value > 0.01, factor > interval.low && factor < interval.high);
    }
  }
}

static int compare_values(const void *a, const void *b) {
  return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static double median_of_both(const double *a, const double *b, size_t count) {
  double all[128];
  memcpy(all, a, count * sizeof *a);
  memcpy(all + count, b, count * sizeof *b);
  qsort(all, 2 * count, sizeof *all, compare_values);
  return (all[count - 1] + all[count]) / 2;
}

/* A 41st value makes the test approximate. In the middle of all values it changes the p-value least. */
static void the_approximation_is_close_to_the_exact_value(void **state) {
  (void)state;
  choose_test_seed();
  double a[64], b[64];
  for (int trial = 0; trial < 50; trial++) {
    for (int i = 0; i < 40; i++) a[i] = random_value(), b[i] = random_value() + 0.3;
    b[40] = median_of_both(a, b, 40);
    rl_rank_test exact = compare_samples(a, 40, b, 40), approximate = compare_samples(a, 40, b, 41);
    assert_true(exact.exact && !approximate.exact);
    if (exact.p_value > 1e-4) assert_true(fabs(log(approximate.p_value / exact.p_value)) < 0.5);
  }
  for (int i = 0; i < 64; i++) a[i] = b[i] = 5;
  assert_close(compare_samples(a, 64, b, 64).p_value, 1);
}

static void empty_samples_are_unknown_and_values_that_are_not_positive_refused(void **state) {
  (void)state;
  double one = 1, zero = 0;
  rl_ratio_interval interval = {7, 7, 7};
  rl_error err;
  assert_true(isnan(compare_samples(&one, 1, NULL, 0).p_value) && isnan(compare_samples(NULL, 0, NULL, 0).p_value));
  assert_int_equal(rl_rank_test_estimate_ratio(&one, 1, &zero, 1, 0.05, &interval, &err), -1);
  assert_int_equal(err.domain, RL_INPUT);
  assert_int_equal(rl_rank_test_estimate_ratio(&one, 1, NULL, 0, 0.05, &interval, &err), -1);
  assert_true(interval.ratio == 7);
}

static void quartiles_are_those_of_numpy(void **state) {
  (void)state;
  double values[] = {7, 1, 4, 2}, one[] = {3};
  rl_quartiles quartiles = rl_compute_quartiles(values, 4); /* numpy.percentile([1, 2, 4, 7], [25, 50, 75]) */
  assert_close(quartiles.q1, 1.75), assert_close(quartiles.median, 3), assert_close(quartiles.q3, 4.75);
  assert_close(rl_compute_outer_fence(quartiles), 4.75 + 3 * 3);
  assert_close(rl_compute_quartiles(one, 1).q3, 3);
  assert_true(isnan(rl_compute_quartiles(NULL, 0).median));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(scipy_has_the_same_values),
                                     cmocka_unit_test(critical_values_are_those_of_printed_tables),
                                     cmocka_unit_test(adjusted_p_values_reject_as_published),
                                     cmocka_unit_test(the_smallest_p_value_is_that_of_separated_samples),
                                     cmocka_unit_test(p_values_of_equal_distributions_are_valid),
                                     cmocka_unit_test(an_interval_holds_the_factors_that_the_test_accepts),
                                     cmocka_unit_test(the_approximation_is_close_to_the_exact_value),
                                     cmocka_unit_test(empty_samples_are_unknown_and_values_that_are_not_positive_refused),
                                     cmocka_unit_test(quartiles_are_those_of_numpy)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
