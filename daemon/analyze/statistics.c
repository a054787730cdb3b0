/* Median and median absolute deviation of a sample, and Student's t distribution. */
#include "analyze/statistics.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median_of_sorted(const double *values, size_t count) {
  return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

rl_sample_summary rl_summarize_sample(double *values, size_t count) {
  rl_sample_summary summary = {.minimum = NAN, .median = NAN, .maximum = NAN, .spread_ratio = NAN};
  size_t finite_count = 0;
  for (size_t i = 0; i < count; i++)
    if (isfinite(values[i])) values[finite_count++] = values[i];
  if (finite_count == 0) return summary;
  qsort(values, finite_count, sizeof *values, ascending);
  summary.count = finite_count;
  summary.minimum = values[0];
  summary.maximum = values[finite_count - 1];
  summary.median = median_of_sorted(values, finite_count);
  if (summary.median == 0) return summary;
  for (size_t i = 0; i < finite_count; i++) values[i] = fabs(values[i] - summary.median);
  qsort(values, finite_count, sizeof *values, ascending);
  /* 1.4826 median absolute deviations of normal values are their standard deviation. */
  summary.spread_ratio = 1.4826 * median_of_sorted(values, finite_count) / fabs(summary.median);
  return summary;
}

double rl_student_two_sided_p(double t, size_t degrees_of_freedom) {
  double angle = atan(t / sqrt((double)degrees_of_freedom)), cosine = cos(angle), sum = 0;
  bool odd = degrees_of_freedom % 2 != 0;
  double term = odd ? cosine : 1;
  for (size_t i = odd ? 3 : 2; i <= degrees_of_freedom; i += 2) {
    sum += term;
    term *= cosine * cosine * (double)(i - 1) / (double)i;
  }
  double probability_within = odd ? M_2_PI * (angle + sin(angle) * sum) : sin(angle) * sum;
  return fmax(0, 1 - probability_within);
}

double rl_student_critical_value(double p, size_t degrees_of_freedom) {
  double low = 0, high = 1;
  while (rl_student_two_sided_p(high, degrees_of_freedom) > p && high < 1e12) high *= 2;
  for (int i = 0; i < 100; i++) {
    double t = (low + high) / 2;
    *(rl_student_two_sided_p(t, degrees_of_freedom) > p ? &low : &high) = t;
  }
  return high;
}
