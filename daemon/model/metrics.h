/* Metrics of a kernel by name, from which its report is computed: counters under CUPTI's names, launch facts (launch__*), device
 * attributes (device__attribute_*), PC samples (smsp__pcsamp_*), counts by instruction (sass__*, derived__*), and numbers of the
 * run: model__bytes and model__operations (the workload's minimum), timing__NAME and activity__NAME (measured by those passes)
 * and ceiling__NAME (measured on this device). Names and reasons belong to the caller. */
#ifndef RL_MODEL_METRICS_H
#define RL_MODEL_METRICS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_metric_value {
  const char *name;
  double value;
  const char *reason; /* why value is NAN, or why a value is known without being counted; NULL: none */
} rl_metric_value;

typedef struct rl_metric_values {
  const rl_metric_value *items; /* sorted by name (strcmp) */
  size_t count;
} rl_metric_values;

void rl_metric_values_sort(rl_metric_value *items, size_t count);
/* Returns NULL when there is no metric with that name. */
const rl_metric_value *rl_metric_find(const rl_metric_values *values, const char *name);
/* Returns NAN when the metric is absent or unavailable. */
double rl_metric_get(const rl_metric_values *values, const char *name);

#ifdef __cplusplus
}
#endif

#endif
