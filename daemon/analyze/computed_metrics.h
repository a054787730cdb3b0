/* Metrics of Nsight Compute's raw page that no pass collects, because they follow from collected metrics: the metrics of report
 * rows with an expression, further rollups of a counter (all rollups are 0 if the counter counted nothing), and further names of
 * a number. If the section RawPage was collected, the names of this section that have no value are listed too. All functions are
 * pure. */
#ifndef RL_ANALYZE_COMPUTED_METRICS_H
#define RL_ANALYZE_COMPUTED_METRICS_H

#include <stdbool.h>
#include <stddef.h>

#include "model/metrics.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RL_COMPUTED_METRIC_NAME_SIZE = 160, RL_COMPUTED_METRIC_UNIT_SIZE = 48 };

typedef struct rl_computed_metric {
  const char *expression;                    /* over collected metrics; NULL: the metric is another rollup of `source` */
  char source[RL_COMPUTED_METRIC_NAME_SIZE]; /* collected metric */
  bool is_rate;                              /* source over the duration */
  char unit[RL_COMPUTED_METRIC_UNIT_SIZE];
} rl_computed_metric;

/* Calls add(context, name) once for each metric that can be computed from the `count` collected metrics and was not collected.
 * Stops when add returns a value other than 0, and returns that value; returns 0 otherwise. collected: sorted (strcmp). */
int rl_computed_metrics_list(const char *const *collected, size_t count, int (*add)(void *context, const char *name),
                             void *context);
/* Finds the computed metric with this name. Returns false, and leaves *metric unchanged, if there is none. */
bool rl_computed_metric_find(const char *name, rl_computed_metric *metric);
/* Returns the value of the metric; NAN if an input is unknown. */
double rl_computed_metric_value(const rl_computed_metric *metric, const rl_metric_values *values);

#ifdef __cplusplus
}
#endif
#endif
