/* Numbers by name: what a kernel's report is computed from. Counters under CUPTI's names, launch facts (launch__*), device
 * attributes (device__attribute_*), samples (smsp__pcsamp_*), what the instructions tell (sass__*, derived__*), and numbers of
 * the run: model__bytes, model__operations (the workload's least cost of the launch), timing__NAME and activity__NAME (what those
 * passes measured) and ceiling__NAME (measured on this device).
 * Nothing is owned here: names and reasons live as long as what they were read from. */
#ifndef RL_MODEL_METRICS_H
#define RL_MODEL_METRICS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_metric_value {
  const char *name;
  double value;
  const char *reason; /* why value is NAN, or why a number was not counted; NULL */
} rl_metric_value;

typedef struct rl_metric_values {
  const rl_metric_value *items; /* by name, as strcmp orders */
  size_t count;
} rl_metric_values;

void rl_metric_values_sort(rl_metric_value *items, size_t count);
/* NULL when there is none of that name. */
const rl_metric_value *rl_metric_find(const rl_metric_values *values, const char *name);
/* NAN when it is absent or unavailable. */
double rl_metric_get(const rl_metric_values *values, const char *name);

#ifdef __cplusplus
}
#endif

#endif
