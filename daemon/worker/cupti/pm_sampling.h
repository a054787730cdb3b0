/* PM sampling: CUPTI reads counters of the whole device at a fixed interval while a kernel runs. While an rl_pm_sampling is open,
 * the range profiler and PC sampling do not work. */
#ifndef RL_CUPTI_PM_SAMPLING_H
#define RL_CUPTI_PM_SAMPLING_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "worker/cupti/counter_plan.h"

enum { RL_PM_SAMPLING_MAX_METRICS = 16 };
static const size_t rl_pm_sampling_buffer_bytes = 32 << 20; /* hardware buffer; below 16 MiB CUPTI reports an overflow */

typedef struct rl_pm_sample {
  uint64_t start_ns, end_ns;                 /* device clock */
  double values[RL_PM_SAMPLING_MAX_METRICS]; /* values in the order of the group's metrics; NAN when undefined */
} rl_pm_sample;

typedef struct rl_pm_sampling rl_pm_sampling;

/* Configures PM sampling of a group's metrics. The group, from rl_counter_plan_open_for_sampling, must outlive *sampling. On a
 * device without PM sampling, fails with an error for which rl_cupti_error_means_unavailable returns true. */
int rl_pm_sampling_open(int device_index, const rl_counter_group *group, uint64_t interval_ns, rl_pm_sampling **sampling,
                        rl_error *err);
void rl_pm_sampling_close(rl_pm_sampling *sampling); /* NULL is allowed */
/* Call start, run one kernel, wait until the device is idle, and call stop. The samples are in order of time and valid until the
 * next start. The first sample also covers time before start. */
int rl_pm_sampling_start(rl_pm_sampling *sampling, rl_error *err);
int rl_pm_sampling_stop(rl_pm_sampling *sampling, const rl_pm_sample **samples, size_t *count, rl_error *err);

#endif
