/* Recognizes samples with two modes, such as the times of processes that run at one of two clocks. All functions are pure. */
#ifndef RL_ANALYZE_MODES_H
#define RL_ANALYZE_MODES_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { RL_MODES_MIN_VALUES = 6 };

typedef struct rl_modes {
  bool bimodal;
  double low, high;             /* medians of the two modes; NAN: not bimodal */
  double boundary;              /* the middle of the gap between the modes */
  size_t low_count, high_count; /* number of values in each mode */
} rl_modes;

/* Splits the sorted values so that the sum of squared deviations within the two parts is minimal (2-means). The values are
 * bimodal if each part has at least two values and a tenth of all values, and if the gap between the parts exceeds their pooled
 * standard deviation times 3 + 24 / (count - 2). At most about 1 % of unimodal samples have such a gap (tests/unit/test_modes.c).
 * Fewer than RL_MODES_MIN_VALUES values are never bimodal. The values must be finite; the function sorts them. */
rl_modes rl_modes_find(double *values, size_t count);

#ifdef __cplusplus
}
#endif
#endif
