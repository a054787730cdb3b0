/* Looks for the causes of a verdict in the profiles of a suite run and of its baseline. Private to the suite runner. */
#ifndef RL_SUITE_SUITE_CAUSES_H
#define RL_SUITE_SUITE_CAUSES_H

#include "store/store.h"
#include "suite/suite_values.h"

typedef struct rl_suite_profile {        /* identifies the profile of one variant; borrowed texts */
  int64_t run;                           /* suite run */
  const char *role, *job_name, *variant; /* role: "profile" or "baseline_profile" */
  double median;                         /* median of the metric over the blocks */
  const char *other_processes;           /* other processes on the device while the blocks were measured; "": none, or unknown */
} rl_suite_profile;

/* Sets *json to a JSON array of the causes of a metric's difference, such as "epoch_ms_median" of a variant. The caller frees it.
 * If the metric is a time, the causes add up to the difference of the medians; if it depends on times, to the difference of the
 * traced iterations. [] if a profile does not exist or the metric depends on no time. */
int rl_suite_find_causes(rl_store *store, const char *metric, const rl_suite_profile *baseline, const rl_suite_profile *current,
                         char **json, rl_error *err);
/* Returns a JSON array of one cause of class device without a difference: why blocks were dropped, and the other processes on the
 * device. The caller frees it. NULL: out of memory. */
char *rl_suite_print_dropped_blocks(const rl_suite_series *blocks);

#endif
