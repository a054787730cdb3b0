/* Collects CUPTI's SASS metrics (smsp__sass_*): exact counts per instruction, which code that CUPTI inserts into the kernels
 * increments. Not thread-safe. Functions that return int return -1 with RL_CUPTI on failure. */
#ifndef RL_CUPTI_SASS_METRICS_H
#define RL_CUPTI_SASS_METRICS_H

#include <stdbool.h>

#include "worker/cupti/instruction_count.h"

/* Call once: CUPTI accepts one configuration per process. Requires the subscriber's CUPTI_CBID_RESOURCE_MODULE_PROFILED
 * callback. */
int rl_sass_metrics_open(int device_index, const char *chip, rl_error *err);
/* Returns true when the metric, given by Nsight Compute's name, is a SASS metric of the chip. Call after open. */
bool rl_sass_metrics_has_metric(const char *name);
/* Call start, run kernels, wait until the device is idle, and call stop; this can be repeated. Stop passes the values to the
 * sink. */
int rl_sass_metrics_start(CUcontext context, rl_error *err);
int rl_sass_metrics_stop(CUcontext context, const rl_instruction_sink *sink, rl_error *err);

#endif
