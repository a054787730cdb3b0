/* Metrics that follow from a launch and the device without counters, under ncu's names: launch__* and theoretical occupancy. */
#ifndef RL_CUPTI_LAUNCH_METRICS_H
#define RL_CUPTI_LAUNCH_METRICS_H

#include "worker/cupti/occupancy.h"
#include "worker/cupti/trace.h"

typedef struct rl_launch_metrics {
  const rl_device_limits *device;
  const rl_activity_row *row;
  const rl_launch_attributes *attributes;
  bool has_residency; /* residency is known */
  rl_residency residency;
  bool shared_config_fits;                 /* the carveout that CUPTI reports can be that of the launch (rl_shared_config_fits) */
  double stack_bytes, persisting_l2_bytes; /* limits of the context; NAN when unknown */
} rl_launch_metrics;

/* Gathers the inputs of a launch's metrics. The pointers must outlive the result. barriers: as for rl_block_resources_of. */
rl_launch_metrics rl_launch_metrics_of(const rl_device_limits *device, const rl_activity_row *row,
                                       const rl_launch_attributes *attributes, int barriers);
/* Returns the metric's value, or NAN with *reason, a static string. */
double rl_launch_metric(const rl_launch_metrics *launch, const char *metric, const char **reason);

#endif
