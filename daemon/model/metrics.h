/* The metrics of a kernel, from which its report is computed. The caller owns the texts. Names are CUPTI's or begin with
 *
 *   launch__, device__attribute_    properties of the launch and of the device
 *   smsp__pcsamp_                   PC samples
 *   sass__, derived__               counts of executed instructions
 *   model__bytes, model__operations the minimum work of the workload
 *   model__operations_ceiling_per_s the highest measured rate that can execute these operations
 *   timing__, activity__            measurements of the run in the timing and activity passes
 *   timeline__                      the analyses of a run's trace, such as its time classes (analyze/time_classes.h)
 *   ceiling__                       measured ceilings of the device */
#ifndef RL_MODEL_METRICS_H
#define RL_MODEL_METRICS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_metric_value {
  const char *name;
  double value;
  const char *reason; /* reason why value is NAN, or how a value was determined without counting; NULL: none */
} rl_metric_value;

/* The reason of a metric that is undefined for a kernel. */
#define RL_METRIC_UNDEFINED "undefined: 0/0, the kernel did nothing that this metric measures"

typedef struct rl_metric_values {
  const rl_metric_value *items; /* sorted by name (strcmp) */
  size_t count;
} rl_metric_values;

void rl_metric_values_sort(rl_metric_value *items, size_t count);
/* Returns the metric with this name, or NULL. */
const rl_metric_value *rl_metric_find(const rl_metric_values *values, const char *name);
/* Returns the metric's value; NAN if it is absent or unavailable. */
double rl_metric_values_get(const rl_metric_values *values, const char *name);

#ifdef __cplusplus
}
#endif

#endif
