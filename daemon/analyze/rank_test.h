/* Nonparametric statistics of two small samples. All functions are pure. Sources: Mann and Whitney (1947); Lehmann,
 * "Nonparametrics" (1975), sections 1.4 (ties) and 2.5 (intervals); Benjamini and Hochberg (1995). tests/data/rank_test.csv has
 * SciPy's values. */
#ifndef RL_ANALYZE_RANK_TEST_H
#define RL_ANALYZE_RANK_TEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Maximum product of the two sample sizes for which the p-value is exact, such as 40 × 40 or 35 × 45. */
enum { RL_RANK_TEST_EXACT_PAIRS = 1600 };

typedef struct rl_rank_test {
  double u;       /* pairs (a, b) with a > b, and half of the pairs with a = b */
  double p_value; /* two-sided: twice the smaller tail, at most 1; NAN: a sample is empty */
  bool exact;     /* false: normal approximation with corrections for ties and continuity */
} rl_rank_test;

/* Tests whether one of two samples tends to be greater (Mann-Whitney U, the Wilcoxon rank-sum test). Equal values get the mean
 * of their ranks. The p-value is exact up to RL_RANK_TEST_EXACT_PAIRS pairs, also with ties: it counts all divisions of these
 * ranks into two samples; under the null hypothesis all are equally probable. Values are finite. Fails with RL_ERRNO if memory
 * is exhausted. */
int rl_rank_test_compare(const double *a, size_t a_count, const double *b, size_t b_count, rl_rank_test *test, rl_error *err);

/* Returns the smallest p-value of samples without ties: 2 / C(a_count + b_count, a_count), at most 1. */
double rl_rank_test_smallest_p(size_t a_count, size_t b_count);

typedef struct rl_ratio_interval {
  double ratio;     /* Hodges-Lehmann: the median of all quotients b / a */
  double low, high; /* [0, INFINITY]: the samples are too small for this confidence */
} rl_ratio_interval;

/* Estimates the ratio b / a of two samples of positive values, and its confidence interval: all ratios r for which a two-sided
 * rank test at level `alpha` can't tell r * a from b. Compares logarithms, because a slow-down multiplies a time. Therefore the
 * interval of a / b has the reciprocal bounds. The interval is closed, so with ties its confidence is at least 1 - alpha. Fails
 * with RL_INPUT if a value is not positive, or a sample is empty; fails with RL_ERRNO if memory is exhausted. */
int rl_rank_test_estimate_ratio(const double *a, size_t a_count, const double *b, size_t b_count, double alpha,
                                rl_ratio_interval *interval, rl_error *err);

/* Writes Benjamini and Hochberg's adjusted p-values, in the order of p_values: adjusted <= q selects with a false discovery
 * rate of at most q. A NAN is ignored and stays NAN. Fails with RL_ERRNO if memory is exhausted. */
int rl_adjust_p_values(const double *p_values, size_t count, double *adjusted, rl_error *err);

typedef struct rl_quartiles {
  double q1, median, q3; /* NAN: no values. Interpolated linearly between order statistics, as R's type 7 and NumPy's default */
} rl_quartiles;
/* Reorders values, which are finite. */
rl_quartiles rl_compute_quartiles(double *values, size_t count);
/* Returns Tukey's outer fence, Q3 + 3 IQR. Larger values are extreme outliers. */
double rl_compute_outer_fence(rl_quartiles quartiles);

#ifdef __cplusplus
}
#endif
#endif
