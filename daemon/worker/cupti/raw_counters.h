/* Looks up the raw counters from which a metric is computed, with libnvperf_host, the library below CUPTI. It needs no GPU. */
#ifndef RL_CUPTI_RAW_COUNTERS_H
#define RL_CUPTI_RAW_COUNTERS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { RL_MAX_RAW_COUNTERS = 256 }; /* of a metric */

typedef struct rl_metric_evaluator rl_metric_evaluator;

/* Returns NULL if there is no memory or libnvperf_host fails, for instance because it does not know the chip. */
rl_metric_evaluator *rl_metric_evaluator_open(const char *chip);
void rl_metric_evaluator_close(rl_metric_evaluator *evaluator); /* NULL is allowed */

/* Sets the names of the metric's raw counters, also of optional ones; they live until the evaluator is closed. Returns 0, or the
 * status of libnvperf_host, which is not 0; then the count is 0. */
int rl_raw_counters_of(const rl_metric_evaluator *evaluator, const char *metric, const char *names[RL_MAX_RAW_COUNTERS],
                       size_t *count);

#ifdef __cplusplus
}
#endif
#endif
