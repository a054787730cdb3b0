/* Statistics of small samples. All functions are pure. */
#ifndef RL_ANALYZE_STATISTICS_H
#define RL_ANALYZE_STATISTICS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_sample_summary {
  size_t count; /* number of finite values */
  double minimum, median, maximum;
  double spread_ratio; /* 1.4826 × median absolute deviation / median; for normal values: standard deviation / median */
} rl_sample_summary;   /* all values are NAN if count is 0; spread_ratio also if the median is 0 */

/* Ignores NAN and infinite values. Reorders values. */
rl_sample_summary rl_summarize_sample(double *values, size_t count);

/* Returns P(|T| > t) of Student's distribution (Abramowitz and Stegun 26.7.3 and 26.7.4), t >= 0. */
double rl_student_two_sided_p(double t, size_t degrees_of_freedom);
/* Returns the t for which rl_student_two_sided_p returns p. 0 < p < 1. */
double rl_student_critical_value(double p, size_t degrees_of_freedom);

#ifdef __cplusplus
}
#endif

#endif
