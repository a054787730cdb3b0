/* Computes the metrics launch__*, the theoretical occupancy and the sums over occupancy curves, under Nsight Compute's names.
 * These metrics need no counters, only the launch and the device. */
#ifndef RL_CUPTI_LAUNCH_METRICS_H
#define RL_CUPTI_LAUNCH_METRICS_H

#include "worker/cupti/occupancy.h"
#include "worker/cupti/trace.h"

typedef struct rl_launch_metric_inputs { /* what the metrics of a launch are computed from */
  const rl_device_limits *device;
  const rl_activity_row *row;
  const rl_launch_attributes *attributes;
  int barriers;       /* as for rl_block_resources_of */
  bool has_residency; /* the member `residency` is valid */
  rl_residency residency;
  bool shared_config_fits;                 /* result of rl_shared_config_fits: the reported carveout can be right */
  double stack_bytes, persisting_l2_bytes; /* limits of the context; NAN when unknown */
} rl_launch_metric_inputs;

/* Gathers the inputs of a launch's metrics. The pointers must outlive the result. barriers: as for rl_block_resources_of. */
rl_launch_metric_inputs rl_launch_metric_inputs_of(const rl_device_limits *device, const rl_activity_row *row,
                                                   const rl_launch_attributes *attributes, int barriers);
/* Returns the metric's value, or NAN with *reason, a static string. */
double rl_launch_metric(const rl_launch_metric_inputs *launch, const char *metric, const char **reason);

#endif
