/* Counters of the whole device, read at a fixed interval while a kernel runs. Open, no other way to look at a kernel works. */
#ifndef RL_CUPTI_PM_SAMPLING_H
#define RL_CUPTI_PM_SAMPLING_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "worker/cupti/plan.h"

enum { RL_PM_METRICS_MOST = 16 };
static const size_t rl_pm_buffer_bytes = 32 << 20; /* of the hardware: with fewer than 16 MiB CUPTI says that it overflows */

typedef struct rl_pm_sample {
  uint64_t start_ns, end_ns;         /* of the device's clock */
  double values[RL_PM_METRICS_MOST]; /* as the group's metrics; NAN when undefined */
} rl_pm_sample;

typedef struct rl_pm rl_pm;

/* Of the metrics of a group of rl_sample_plan_open, which must outlive it. The rl_cupti_refused errors say that the device can't
 * do it. */
int rl_pm_open(int device_index, const rl_group *group, uint64_t interval_ns, rl_pm **pm, rl_error *err);
void rl_pm_close(rl_pm *pm); /* NULL is allowed */
/* Begin, one thing on the device, an idle device, end. The samples are in order and valid until the next begin; in the first one
 * is also what was before begin. */
int rl_pm_begin(rl_pm *pm, rl_error *err);
int rl_pm_end(rl_pm *pm, const rl_pm_sample **samples, size_t *count, rl_error *err);

#endif
