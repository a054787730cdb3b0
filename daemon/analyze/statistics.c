#include "analyze/statistics.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median_of_sorted(const double *values, size_t count) {
  return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

rl_summary rl_summarize(double *values, size_t count) {
  rl_summary summary = {.minimum = NAN, .median = NAN, .maximum = NAN, .spread_ratio = NAN};
  size_t n = 0;
  for (size_t i = 0; i < count; i++)
    if (isfinite(values[i])) values[n++] = values[i];
  if (n == 0) return summary;
  qsort(values, n, sizeof *values, ascending);
  summary.count = n;
  summary.minimum = values[0];
  summary.maximum = values[n - 1];
  summary.median = median_of_sorted(values, n);
  if (summary.median == 0) return summary;
  for (size_t i = 0; i < n; i++) values[i] = fabs(values[i] - summary.median);
  qsort(values, n, sizeof *values, ascending);
  summary.spread_ratio = 1.4826 * median_of_sorted(values, n) / fabs(summary.median);
  return summary;
}
