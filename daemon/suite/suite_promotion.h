/* Makes the results of a suite run a named baseline. */
#ifndef RL_SUITE_SUITE_PROMOTION_H
#define RL_SUITE_SUITE_PROMOTION_H

#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

/* Makes the run the baseline `name` of the suite, unless later runs could not be judged by it. Thread-safe. RL_HTTP 404 at /run:
 * the suite has no such run; RL_SUITE_NOT_ELIGIBLE at /run: it did not complete or is quarantined, or a metric has too few
 * blocks, mostly distrusted ones, or an outlying one; RL_SUITE_BASELINE_EXISTS at /name. */
int rl_suite_promote(rl_store *store, const char *suite, const char *name, int64_t run_id, rl_error *err);

#endif
