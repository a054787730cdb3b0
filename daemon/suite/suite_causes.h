/* Looks for the causes of a verdict in the profiles of a suite run and of its baseline. Private to the suite runner. */
#ifndef RL_SUITE_SUITE_CAUSES_H
#define RL_SUITE_SUITE_CAUSES_H

#include "store/store.h"

typedef struct rl_suite_profile {        /* of one variant; borrowed texts */
  int64_t run;                           /* suite run */
  const char *role, *job_name, *variant; /* role: "profile" or "baseline_profile" */
} rl_suite_profile;

/* Sets *json to a JSON array of causes, which the caller frees: why the time of a variant differs between both profiles. [] if
 * one of them does not exist. */
int rl_suite_find_causes(rl_store *store, const rl_suite_profile *baseline, const rl_suite_profile *current, char **json,
                         rl_error *err);

#endif
