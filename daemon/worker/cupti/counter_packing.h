/* Assigns the raw counters of a configuration to passes, with libnvperf_host, the library below CUPTI. CUPTI puts each counter
 * into the first pass with room. The packing needs fewer passes and fewer groups of L2 counters, so that the passes start and
 * stop in less time; but it takes seconds, so that only the build makes packed plans. */
#ifndef RL_CUPTI_COUNTER_PACKING_H
#define RL_CUPTI_COUNTER_PACKING_H

#include "worker/cupti/counter_plan.h"
#include "worker/cupti/metric_selection.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Replaces each configuration of the selection's plan by a packed one with the same counters, if that has fewer passes, or as
 * many and a smaller image. The terms of a skipped metric of the selection get into one pass. Returns -1 if libnvperf_host fails.
 */
int rl_counter_packing_apply(const char *chip, const rl_metric_selection *selection, rl_counter_plan *plan, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
