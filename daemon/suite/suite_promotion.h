/* Makes the results of a suite run a named baseline. The handler of POST /suites/{name}/baselines calls this module. */
#ifndef RL_SUITE_SUITE_PROMOTION_H
#define RL_SUITE_SUITE_PROMOTION_H

#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

/* Makes the run the baseline `name` of the suite. Thread-safe. Fails with RL_HTTP 404 at /run if the suite has no such run. Fails
 * with RL_SUITE_NOT_ELIGIBLE at /run if the run has not completed or is quarantined, or if a metric has too few values, more
 * dropped values than used values, a block during which other processes used the device, or an outlier. Fails with
 * RL_SUITE_BASELINE_EXISTS at /name if the suite has a baseline of this name. */
int rl_suite_promote_run(rl_store *store, const char *suite, const char *name, int64_t run_id, rl_error *err);

#endif
