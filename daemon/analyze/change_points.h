/* Finds the runs at which a metric's history changed its level: E-divisive (Matteson and James 2014), as MongoDB (Daly et al.
 * 2020) and Apache Otava use it for benchmarks. The function is pure: its random permutations have a fixed seed. */
#ifndef RL_ANALYZE_CHANGE_POINTS_H
#define RL_ANALYZE_CHANGE_POINTS_H

#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  RL_CHANGE_POINTS_MAX_VALUES = 200,  /* maximum number of values; of a longer history, only the newest are searched */
  RL_CHANGE_POINTS_MIN_RUNS = 3,      /* minimum number of runs at a level, so that one outlying value is not a level */
  RL_CHANGE_POINTS_PERMUTATIONS = 999 /* number of permutations in the significance test */
};
#define RL_CHANGE_POINTS_MAX_P 0.01 /* largest p-value of a change point */

typedef struct rl_change_point {
  size_t index;         /* index of the first value of the new level */
  double before, after; /* medians of the level that ends here and of the level that begins */
  double p_value;       /* share of permutations whose best split has an energy statistic at least as large */
} rl_change_point;

/* Writes the first `capacity` change points, in ascending order, and sets *found to the number of all change points. Skips
 * values that are not finite. Fails with RL_ERRNO if memory is exhausted. */
int rl_change_points_find(const double *values, size_t count, rl_change_point *points, size_t capacity, size_t *found,
                          rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
