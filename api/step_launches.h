/* Reads the kernels of a run's trace by launch, and finds the launches that are independent of each other. */
#ifndef RL_API_STEP_LAUNCHES_H
#define RL_API_STEP_LAUNCHES_H

#include <cjson/cJSON.h>

#include "analyze/independent_launches.h"
#include "store/store.h"

typedef struct rl_step_launches {
  rl_traced_kernel *kernels; /* found points to their names */
  size_t count, capacity;
  rl_independent_launches found;
  const rl_workload *workload; /* NULL: the trace was imported */
} rl_step_launches;

/* incomplete_reason: which records the trace lacks; NULL: none. The caller clears *launches, even after a failure. Fails like
 * rl_store_query. */
int rl_step_launches_read(rl_store *store, int64_t run_id, const char *incomplete_reason, rl_step_launches *launches,
                          rl_error *err);
void rl_step_launches_clear(rl_step_launches *launches);
/* Makes the member "independent_launches" of a timeline. */
cJSON *rl_step_launches_json(const rl_step_launches *launches);

#endif
