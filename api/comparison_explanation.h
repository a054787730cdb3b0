/* Adds to a comparison of two training runs why their times and memory differ. */
#ifndef RL_API_COMPARISON_EXPLANATION_H
#define RL_API_COMPARISON_EXPLANATION_H

#include <cjson/cJSON.h>

#include "base/error.h"
#include "store/store.h"

/* Adds "explanation", a list of sentences (rl_training_explain); null for runs that train nothing, with the reason in
 * "unavailable". comparison: a row of RL_QUERY_COMPARISON. The caller has closed the cursor that returned it. */
int rl_comparison_add_explanation(rl_store *store, cJSON *comparison, rl_error *err);

#endif
