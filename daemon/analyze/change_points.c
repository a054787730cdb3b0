/* Splits a history recursively: the split with the largest energy statistic is a change point if few random permutations of the
 * values have a split with a statistic that large. In that case both parts are split again. Takes O(count^2) time for each
 * permutation. */
#include "analyze/change_points.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/rank_test.h"
#include "base/cleanup.h"
#include "hash.h"

/* The finite values of one history. */
typedef struct series {
  double values[RL_CHANGE_POINTS_MAX_VALUES];
  double scratch[RL_CHANGE_POINTS_MAX_VALUES];    /* a permutation, or the copy of a level that rl_compute_quartiles sorts */
  double left_sums[RL_CHANGE_POINTS_MAX_VALUES];  /* sums of the distances to all earlier values */
  double right_sums[RL_CHANGE_POINTS_MAX_VALUES]; /* sums of the distances to all later values */
  size_t indexes[RL_CHANGE_POINTS_MAX_VALUES];    /* positions of the values in the caller's array */
  size_t count;
  double p_values[RL_CHANGE_POINTS_MAX_VALUES]; /* p-value of a change point at this value; NAN: no change point */
} series;
RL_DEFINE_CLEANUP(free_series, series *, free, NULL)

typedef struct split {
  size_t left_count; /* number of values before the split; 0: too few values to split */
  double statistic;
} split;

/* Returns the split with the largest energy statistic mn / (m + n) (2 E|X - Y| - E|X - X'| - E|Y - Y'|): X are the m values
 * before the split, Y the n values after it. */
static split find_best_split(series *s, const double *values, size_t count) {
  double within_left = 0, within_right = 0;
  for (size_t i = 0; i < count; i++) {
    s->left_sums[i] = s->right_sums[i] = 0;
    for (size_t k = 0; k < i; k++) s->left_sums[i] += fabs(values[i] - values[k]);
    for (size_t k = i + 1; k < count; k++) s->right_sums[i] += fabs(values[i] - values[k]);
    within_right += s->right_sums[i];
  }
  double total = within_right;
  split best = {0, 0};
  for (size_t m = 1; m + RL_CHANGE_POINTS_MIN_RUNS <= count; m++) {
    within_left += s->left_sums[m - 1], within_right -= s->right_sums[m - 1];
    if (m < RL_CHANGE_POINTS_MIN_RUNS) continue;
    double left = (double)m, right = (double)(count - m), between = total - within_left - within_right;
    double energy =
        2 * between / (left * right) - 2 * within_left / (left * (left - 1)) - 2 * within_right / (right * (right - 1));
    double statistic = left * right / (left + right) * energy;
    if (best.left_count == 0 || statistic > best.statistic) best = (split){m, statistic};
  }
  return best;
}

static void shuffle(double *values, size_t count, uint64_t *state) {
  for (size_t i = count; i > 1; i--) {
    *state = rl_hash64(*state);
    size_t k = (size_t)(*state % i);
    double value = values[i - 1];
    values[i - 1] = values[k], values[k] = value;
  }
}

/* Returns the p-value of a split: the share of permutations, the original order included, whose best split has a statistic at
 * least as large. Stops, and returns 1, when the share exceeds RL_CHANGE_POINTS_MAX_P. */
static double test_by_permutation(series *s, const double *values, size_t count, double statistic) {
  uint64_t state = 16;
  int large_count = 1;
  memcpy(s->scratch, values, count * sizeof *values);
  double tolerance = 1e-9 * fabs(statistic);
  for (int i = 0; i < RL_CHANGE_POINTS_PERMUTATIONS; i++) {
    shuffle(s->scratch, count, &state);
    large_count += find_best_split(s, s->scratch, count).statistic >= statistic - tolerance;
    if (large_count > RL_CHANGE_POINTS_MAX_P * (RL_CHANGE_POINTS_PERMUTATIONS + 1)) return 1;
  }
  return (double)large_count / (RL_CHANGE_POINTS_PERMUTATIONS + 1);
}

/* Finds the change point of [first, end), then the change points of both parts. The recursion is at most end - first deep. */
static void split_recursively(series *s, size_t first, size_t end) {
  if (end - first < 2 * RL_CHANGE_POINTS_MIN_RUNS) return;
  split best = find_best_split(s, s->values + first, end - first);
  if (!(best.statistic > 0)) return;
  double p = test_by_permutation(s, s->values + first, end - first, best.statistic);
  if (p > RL_CHANGE_POINTS_MAX_P) return;
  s->p_values[first + best.left_count] = p;
  split_recursively(s, first, first + best.left_count);
  split_recursively(s, first + best.left_count, end);
}

/* Returns the index after the last value of the level that begins at `first`. */
static size_t find_level_end(const series *s, size_t first) {
  size_t end = first + 1;
  while (end < s->count && isnan(s->p_values[end])) end++;
  return end;
}

static double find_median(series *s, size_t first, size_t end) {
  memcpy(s->scratch, s->values + first, (end - first) * sizeof *s->values);
  return rl_compute_quartiles(s->scratch, end - first).median;
}

int rl_change_points_find(const double *values, size_t count, rl_change_point *points, size_t capacity, size_t *found,
                          rl_error *err) {
  RL_CLEANUP(free_series) series *s = calloc(1, sizeof *s);
  if (s == NULL) {
    errno = ENOMEM;
    return rl_fail_errno(err, "change points");
  }
  size_t finite_seen = 0, finite = 0, total = 0;
  for (size_t i = 0; i < count; i++) finite += isfinite(values[i]) != 0;
  size_t ignored_count = finite > RL_CHANGE_POINTS_MAX_VALUES ? finite - RL_CHANGE_POINTS_MAX_VALUES : 0;
  for (size_t i = 0; i < count; i++) {
    if (!isfinite(values[i]) || finite_seen++ < ignored_count) continue;
    s->values[s->count] = values[i], s->indexes[s->count] = i, s->p_values[s->count++] = NAN;
  }
  split_recursively(s, 0, s->count);
  for (size_t previous = 0, begin = s->count > 0 ? find_level_end(s, 0) : 0; begin < s->count; total++) {
    size_t end = find_level_end(s, begin);
    if (total < capacity)
      points[total] =
          (rl_change_point){s->indexes[begin], find_median(s, previous, begin), find_median(s, begin, end), s->p_values[begin]};
    previous = begin, begin = end;
  }
  *found = total;
  return 0;
}
