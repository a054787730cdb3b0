/* Metrics of Nsight Compute's raw page that no pass collects, because they follow from collected ones: the metrics of report rows
 * with an expression, other rollups of a counter, and other names of one number. Pure functions. */
#ifndef RL_ANALYZE_COMPUTED_METRICS_H
#define RL_ANALYZE_COMPUTED_METRICS_H

#include <stddef.h>

#include "model/metrics.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RL_COMPUTED_METRIC_NAME_SIZE = 160 };

/* Calls add(context, name) for each metric that can be computed from the `count` collected ones and is not among them, once each,
 * until add returns a value other than 0. collected: sorted (strcmp). Returns that value, else 0. */
int rl_computed_metrics_list(const char *const *collected, size_t count, int (*add)(void *context, const char *name),
                             void *context);
/* Returns the value of such a metric; NAN: an input is unknown, or the name is not of such a metric. */
double rl_computed_metric_value(const char *name, const rl_metric_values *values);
/* Returns the unit of such a metric: NULL: the name is not of such a metric. The text of a rate is in `unit`. */
const char *rl_computed_metric_unit(const char *name, char unit[RL_COMPUTED_METRIC_NAME_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
