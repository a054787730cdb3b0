/* The hardware metrics of the counters pass. A metric that a chip does not have is recorded with its reason. */
#ifndef RL_CUPTI_METRICS_H
#define RL_CUPTI_METRICS_H

#include <stddef.h>

typedef struct rl_metric {
  const char *name; /* CUPTI's and ncu's */
  const char *unit;
  const char *why;
} rl_metric;

extern const rl_metric rl_metrics[];
extern const size_t rl_metric_count;

#endif
