/* Robust statistics of small samples. Pure functions that sort their input. */
#ifndef RL_ANALYZE_STATISTICS_H
#define RL_ANALYZE_STATISTICS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_summary {
  size_t count; /* of finite values */
  double minimum, median, maximum;
  double spread_ratio; /* 1.4826 × median absolute deviation / median: a normal distribution's standard deviation */
} rl_summary;          /* all NAN when count is 0; spread_ratio also when the median is 0 */

/* Ignores NAN and infinite values. Reorders values. */
rl_summary rl_summarize(double *values, size_t count);

#ifdef __cplusplus
}
#endif

#endif
