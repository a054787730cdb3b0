/* Finds the causes of a metric's difference in the profiles of a suite run and of its baseline. suite_judgement.c calls this
 * module in the suite runner's thread. */
#ifndef RL_SUITE_SUITE_CAUSES_H
#define RL_SUITE_SUITE_CAUSES_H

#include "store/store.h"
#include "suite/suite_values.h"

typedef struct rl_suite_profile {        /* identifies the profile of one job and variant; the caller owns the texts */
  int64_t run;                           /* id of the suite run */
  const char *role, *job_name, *variant; /* role: "profile" or "baseline_profile" */
  double median;                         /* median of the metric over the blocks */
  const char *other_processes;           /* other processes on the device while the blocks were measured; "": none, or unknown */
} rl_suite_profile;

/* Sets *json to a JSON array of the causes of the difference of `metric`, such as "epoch_ms_median". The caller frees the text.
 * If the metric is a time, the differences of the causes add up to the difference of its medians. If it only depends on times, as
 * a rate does, they add up to the difference of the times of the traced iterations. The array is empty if a profile does not
 * exist or the metric does not depend on times. */
int rl_suite_find_causes(rl_store *store, const char *metric, const rl_suite_profile *baseline, const rl_suite_profile *current,
                         char **json, rl_error *err);
/* Returns a JSON array with one cause of the class "device", which has no difference and gives the reason why blocks were dropped
 * and the other processes that used the device. The caller frees the text. Returns NULL if memory is exhausted. */
char *rl_suite_print_dropped_blocks(const rl_suite_series *blocks);

#endif
