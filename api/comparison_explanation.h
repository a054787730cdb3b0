/* Explains in the JSON of a comparison of two training runs why their times and memory use differ. The handlers of /compare
 * and /jobs/{id}/comparison call this module in a pool's thread. */
#ifndef RL_API_COMPARISON_EXPLANATION_H
#define RL_API_COMPARISON_EXPLANATION_H

#include <cjson/cJSON.h>

#include "base/error.h"
#include "store/store.h"

/* Adds "explanation", a list of sentences (rl_training_explain), to a row of RL_QUERY_COMPARISON. If the runs are not training
 * runs, "explanation" is null and "unavailable" has the reason. The caller must have closed the cursor that returned the row. */
int rl_comparison_add_explanation(rl_store *store, cJSON *comparison, rl_error *err);

#endif
