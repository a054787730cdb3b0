/* Makes the results of a suite run a named baseline. */
#ifndef RL_SUITE_SUITE_PROMOTION_H
#define RL_SUITE_SUITE_PROMOTION_H

#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

/* Makes the run the baseline `name` of the suite. Thread-safe. Fails with RL_HTTP 404 at /run if the suite has no such run;
 * with RL_SUITE_NOT_ELIGIBLE at /run if the run did not complete or is quarantined, or a metric has too few blocks, more
 * dropped values than others, or an outlying block; RL_SUITE_BASELINE_EXISTS at /name. */
int rl_suite_promote_run(rl_store *store, const char *suite, const char *name, int64_t run_id, rl_error *err);

#endif
