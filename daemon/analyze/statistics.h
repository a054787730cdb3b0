/* Robust statistics of small sets of measurements. Pure functions; the arrays that are given are put in order. */
#ifndef RL_ANALYZE_STATISTICS_H
#define RL_ANALYZE_STATISTICS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_summary {
  size_t count; /* of the values that are numbers */
  double minimum, median, maximum;
  double spread_ratio; /* median absolute deviation over the median, scaled (1.4826) to a normal's standard deviation */
} rl_summary;          /* every number is NAN when count is 0; the spread too when the median is 0 */

/* NAN and infinite values are left out. Reorders values. */
rl_summary rl_summarize(double *values, size_t count);

#ifdef __cplusplus
}
#endif

#endif
