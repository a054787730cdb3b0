/* Looks for the causes of a verdict in the profiles of a suite run and of its baseline. Private to the suite runner. */
#ifndef RL_SUITE_SUITE_CAUSES_H
#define RL_SUITE_SUITE_CAUSES_H

#include "store/store.h"

/* Sets *json to a JSON array of causes, which the caller frees: why the run of a job's variant takes another time in suite run
 * `run` than in `baseline_run`. [] if one of them has no profile. */
int rl_suite_find_causes(rl_store *store, int64_t baseline_run, int64_t run, const char *job_name, const char *variant,
                         char **json, rl_error *err);

#endif
