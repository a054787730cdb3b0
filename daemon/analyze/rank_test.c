/* Without ties, the numbers of samples with each U are the coefficients of a Gaussian binomial. With ties, ranks are doubled, so
 * that their means are integers, and the rank sums are counted by dynamic programming. Larger samples use the normal
 * approximation. */
#include "analyze/rank_test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

RL_DEFINE_CLEANUP(free_numbers, double *, free, NULL)

typedef struct ranked {
  double value;
  size_t origin; /* the sample of the value, 0: a, 1: b; or the index of a p-value */
} ranked;
RL_DEFINE_CLEANUP(free_ranked, ranked *, free, NULL)
RL_DEFINE_CLEANUP(free_ranks, size_t *, free, NULL)

static int compare_numbers(double x, double y) { return (x > y) - (x < y); }
static int compare_values(const void *a, const void *b) { return compare_numbers(*(const double *)a, *(const double *)b); }
static int compare_ranked(const void *a, const void *b) {
  return compare_numbers(((const ranked *)a)->value, ((const ranked *)b)->value);
}

static int fail_memory(rl_error *err) {
  errno = ENOMEM;
  return rl_fail_errno(err, "statistics of two samples");
}

/* --- the distributions of U and of rank sums --------------------------------------------------------------------------- */

/* The distribution of U or of rank sums under the null hypothesis: all samples of the ranks are equally probable. */
typedef struct sum_counts {
  double *counts; /* counts[sum]: the number of samples with this U or rank sum */
  size_t size;    /* number of entries of counts */
  double total;   /* number of all samples */
} sum_counts;
static void free_counts(sum_counts *sums) { free(sums->counts); }

/* Counts, for each sum, the subsets of `chosen` ranks that have it. Adds the ranks one by one: the subsets of k ranks with a new
 * rank are the subsets of k - 1 ranks without it, with a sum that is larger by the rank. ranks: ascending. */
static int count_sums(const size_t *ranks, size_t rank_count, size_t chosen, sum_counts *sums, rl_error *err) {
  size_t size = 1;
  for (size_t i = rank_count - chosen; i < rank_count; i++) size += ranks[i];
  RL_CLEANUP(free_numbers) double *table = calloc((chosen + 1) * size, sizeof *table); /* [subset size][sum] */
  sums->counts = malloc(size * sizeof *sums->counts);
  if (table == NULL || sums->counts == NULL) return fail_memory(err);
  table[0] = 1;
  for (size_t i = 0; i < rank_count; i++) {
    size_t max_size = i < chosen ? i + 1 : chosen, max_sum = 0; /* max_sum: of the k largest ranks up to i */
    for (size_t k = 0; k < max_size; k++) max_sum += ranks[i - k];
    for (size_t k = max_size; k > 0; max_sum -= ranks[i + 1 - k], k--) {
      const double *without = table + (k - 1) * size;
      for (size_t sum = ranks[i]; sum <= max_sum && sum < size; sum++) table[k * size + sum] += without[sum - ranks[i]];
    }
  }
  sums->size = size;
  sums->total = 0;
  for (size_t sum = 0; sum < size; sum++) sums->total += sums->counts[sum] = table[chosen * size + sum];
  return 0;
}

/* Counts the samples with each U, without ties: their generating function is the product of (1 - q^(b_count + i)) / (1 - q^i) for
 * i = 1 to a_count (Andrews, "The theory of partitions" (1976), section 3.2). After each i, the coefficients count the samples of
 * i values. The coefficients are symmetric, so only the lower half is computed. */
static int count_u(size_t a_count, size_t b_count, sum_counts *sums, rl_error *err) {
  size_t size = a_count * b_count + 1, half = (size + 1) / 2;
  double *counts = sums->counts = calloc(size, sizeof *counts);
  if (counts == NULL) return fail_memory(err);
  counts[0] = 1;
  for (size_t i = 1; i <= a_count; i++) {
    for (size_t u = half; u-- > b_count + i;) counts[u] -= counts[u - b_count - i];
    for (size_t u = i; u < half; u++) counts[u] += counts[u - i];
  }
  sums->size = size;
  sums->total = 0;
  for (size_t u = 0; u < size; u++) {
    if (u >= half) counts[u] = counts[size - 1 - u];
    sums->total += counts[u];
  }
  return 0;
}

/* Returns the probability that a sum is in [first, end). */
static double sum_tail(const sum_counts *sums, size_t first, size_t end) {
  double samples = 0;
  for (size_t sum = first; sum < end; sum++) samples += sums->counts[sum];
  return samples / sums->total;
}

/* Returns P(Z > z) of the standard normal distribution. */
static double normal_tail(double z) { return 0.5 * erfc(z / sqrt(2)); }

/* --- tests ------------------------------------------------------------------------------------------------------------- */

/* Writes twice the ranks of sorted values, in their order. Returns the sum of t³ - t over the groups of t equal values. */
static double assign_ranks(const ranked *sorted, size_t count, size_t *ranks) {
  double tie_correction = 0;
  for (size_t first = 0, end; first < count; first = end) {
    for (end = first + 1; end < count && sorted[end].value == sorted[first].value;) end++;
    for (size_t i = first; i < end; i++) ranks[i] = first + 1 + end;
    double equal = (double)(end - first);
    tie_correction += equal * equal * equal - equal;
  }
  return tie_correction;
}

/* Computes the two-sided p-value by the normal approximation. tie_correction: sum of t³ - t (assign_ranks). */
static double approximate_p(double u, double a_count, double b_count, double tie_correction) {
  double count = a_count + b_count;
  double variance = a_count * b_count / 12 * (count + 1 - tie_correction / (count * (count - 1)));
  if (variance <= 0) return 1;
  return fmin(1, 2 * normal_tail(fmax(0, fabs(u - a_count * b_count / 2) - 0.5) / sqrt(variance)));
}

static double two_sided_p(const sum_counts *sums, size_t observed) {
  return fmin(1, 2 * fmin(sum_tail(sums, 0, observed + 1), sum_tail(sums, observed, sums->size)));
}

/* Computes the two-sided p-value of samples without ties. */
static int compute_p_without_ties(size_t a_count, size_t b_count, size_t u, double *p, rl_error *err) {
  RL_CLEANUP(free_counts) sum_counts sums = {0};
  if (count_u(a_count, b_count, &sums, err) < 0) return -1;
  *p = two_sided_p(&sums, u);
  return 0;
}

/* Computes the two-sided p-value of a sample of `chosen` values with the rank sum `observed`. Callers pass the smaller of the two
 * samples, because its table is smaller; the p-value is the same. */
static int compute_p_with_ties(const size_t *ranks, size_t rank_count, size_t chosen, size_t observed, double *p, rl_error *err) {
  RL_CLEANUP(free_counts) sum_counts sums = {0};
  if (count_sums(ranks, rank_count, chosen, &sums, err) < 0) return -1;
  *p = two_sided_p(&sums, observed);
  return 0;
}

int rl_rank_test_compare(const double *a, size_t a_count, const double *b, size_t b_count, rl_rank_test *test, rl_error *err) {
  size_t count = a_count + b_count, sums[2] = {0};
  rl_rank_test found = {.u = 0, .p_value = NAN, .exact = true};
  if (a_count > 0 && b_count > 0) {
    RL_CLEANUP(free_ranked) ranked *sorted = malloc(count * sizeof *sorted);
    RL_CLEANUP(free_ranks) size_t *ranks = malloc(count * sizeof *ranks);
    if (sorted == NULL || ranks == NULL) return fail_memory(err);
    for (size_t i = 0; i < count; i++) sorted[i] = i < a_count ? (ranked){a[i], 0} : (ranked){b[i - a_count], 1};
    qsort(sorted, count, sizeof *sorted, compare_ranked);
    double tie_correction = assign_ranks(sorted, count, ranks);
    for (size_t i = 0; i < count; i++) sums[sorted[i].origin] += ranks[i];
    found.u = ((double)sums[0] - (double)a_count * (double)(a_count + 1)) / 2;
    found.exact = a_count * b_count <= RL_RANK_TEST_EXACT_PAIRS;
    bool a_is_smaller = a_count <= b_count;
    int rc = 0;
    if (!found.exact) found.p_value = approximate_p(found.u, (double)a_count, (double)b_count, tie_correction);
    else if (tie_correction == 0) rc = compute_p_without_ties(a_count, b_count, (size_t)found.u, &found.p_value, err);
    else rc = compute_p_with_ties(ranks, count, a_is_smaller ? a_count : b_count, sums[!a_is_smaller], &found.p_value, err);
    if (rc < 0) return -1;
  }
  *test = found;
  return 0;
}

double rl_rank_test_smallest_p(size_t a_count, size_t b_count) {
  double p = 2;
  for (size_t i = 1; i <= a_count; i++) p *= (double)i / (double)(b_count + i);
  return fmin(1, p);
}

/* --- the ratio of two samples ------------------------------------------------------------------------------------------ */

/* Sets *rank to the largest k with 2 P(U <= k - 1) <= alpha: the interval reaches from the k-th smallest to the k-th largest
 * quotient. 0: the samples are too small for alpha. */
static int find_critical_rank(size_t a_count, size_t b_count, double alpha, size_t *rank, rl_error *err) {
  size_t count = a_count + b_count, pairs = a_count * b_count, k = 0;
  if (pairs > RL_RANK_TEST_EXACT_PAIRS) {
    double mean = (double)pairs / 2, deviation = sqrt((double)pairs * (double)(count + 1) / 12);
    while (2 * normal_tail((mean - (double)k - 0.5) / deviation) <= alpha) k++;
    return *rank = k, 0;
  }
  RL_CLEANUP(free_counts) sum_counts sums = {0};
  if (count_u(a_count, b_count, &sums, err) < 0) return -1;
  for (double samples = 0; 2 * (samples += sums.counts[k]) / sums.total <= alpha;) k++;
  *rank = k;
  return 0;
}

static double median_of_sorted(const double *sorted, size_t count) { return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2; }

int rl_rank_test_estimate_ratio(const double *a, size_t a_count, const double *b, size_t b_count, double alpha,
                                rl_ratio_interval *interval, rl_error *err) {
  size_t pairs = a_count * b_count, k = 0;
  if (pairs == 0) return rl_fail(err, RL_INPUT, 0, "a sample is empty: a ratio needs values of both");
  for (size_t i = 0; i < a_count + b_count; i++) {
    double value = i < a_count ? a[i] : b[i - a_count];
    if (!(value > 0 && isfinite(value))) return rl_fail(err, RL_INPUT, 0, "%g: a ratio needs positive values", value);
  }
  RL_CLEANUP(free_numbers) double *logs = malloc(pairs * sizeof *logs), *a_logs = malloc(a_count * sizeof *a_logs);
  if (logs == NULL || a_logs == NULL) return fail_memory(err);
  for (size_t i = 0; i < a_count; i++) a_logs[i] = log(a[i]);
  for (size_t j = 0; j < b_count; j++) {
    double b_log = log(b[j]);
    for (size_t i = 0; i < a_count; i++) logs[j * a_count + i] = b_log - a_logs[i];
  }
  qsort(logs, pairs, sizeof *logs, compare_values);
  if (find_critical_rank(a_count, b_count, alpha, &k, err) < 0) return -1;
  *interval = (rl_ratio_interval){exp(median_of_sorted(logs, pairs)), 0, INFINITY};
  if (k > 0) interval->low = exp(logs[k - 1]), interval->high = exp(logs[pairs - k]);
  return 0;
}

/* --- several tests ----------------------------------------------------------------------------------------------------- */

int rl_adjust_p_values(const double *p_values, size_t count, double *adjusted, rl_error *err) {
  RL_CLEANUP(free_ranked) ranked *sorted = malloc((count + 1) * sizeof *sorted);
  if (sorted == NULL) return fail_memory(err);
  size_t tests = 0;
  for (size_t i = 0; i < count; i++)
    if (!isnan(p_values[i])) sorted[tests++] = (ranked){p_values[i], i};
  qsort(sorted, tests, sizeof *sorted, compare_ranked);
  for (size_t i = 0; i < count; i++) adjusted[i] = NAN;
  double running_minimum = 1;
  for (size_t i = tests; i-- > 0;) {
    running_minimum = fmin(running_minimum, sorted[i].value * (double)tests / (double)(i + 1));
    adjusted[sorted[i].origin] = running_minimum;
  }
  return 0;
}

/* --- quartiles --------------------------------------------------------------------------------------------------------- */

static double quantile(const double *sorted, size_t count, double probability) {
  double position = probability * (double)(count - 1), below = floor(position);
  size_t i = (size_t)below;
  return i + 1 < count ? sorted[i] + (position - below) * (sorted[i + 1] - sorted[i]) : sorted[i];
}

rl_quartiles rl_compute_quartiles(double *values, size_t count) {
  if (count == 0) return (rl_quartiles){NAN, NAN, NAN};
  qsort(values, count, sizeof *values, compare_values);
  return (rl_quartiles){quantile(values, count, 0.25), quantile(values, count, 0.5), quantile(values, count, 0.75)};
}

double rl_compute_outer_fence(rl_quartiles quartiles) { return quartiles.q3 + 3 * (quartiles.q3 - quartiles.q1); }
