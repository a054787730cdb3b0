/* Sorts the values and finds the split into two parts with the smallest sum of squared deviations. The parts are two modes if the
 * gap between them is large against their deviation. */
#include "analyze/modes.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median_of_sorted(const double *sorted, size_t count) { return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2; }

static double sum_squares(const double *values, size_t count) {
  double mean = 0, sum = 0;
  for (size_t i = 0; i < count; i++) mean += values[i] / (double)count;
  for (size_t i = 0; i < count; i++) sum += (values[i] - mean) * (values[i] - mean);
  return sum;
}

rl_modes rl_modes_find(double *values, size_t count) {
  rl_modes modes = {.low = NAN, .high = NAN, .boundary = NAN};
  if (count < RL_MODES_MIN_VALUES) return modes;
  qsort(values, count, sizeof *values, ascending);
  size_t min_part_count = count < 20 ? 2 : (count + 9) / 10, split = 0;
  double least_squares = INFINITY;
  for (size_t i = min_part_count; i + min_part_count <= count; i++) {
    double squares = sum_squares(values, i) + sum_squares(values + i, count - i);
    if (squares < least_squares) least_squares = squares, split = i;
  }
  double gap = values[split] - values[split - 1], deviation = sqrt(least_squares / (double)(count - 2));
  modes.bimodal = gap > (3 + 24 / (double)(count - 2)) * deviation && gap > 0;
  if (!modes.bimodal) return modes;
  modes.low = median_of_sorted(values, split), modes.high = median_of_sorted(values + split, count - split);
  modes.boundary = (values[split - 1] + values[split]) / 2;
  modes.low_count = split, modes.high_count = count - split;
  return modes;
}
