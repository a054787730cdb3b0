/* One step under the range profiler, as often as its metrics need: a range per kernel launch, replay driven by us. */
#ifndef RL_CUPTI_REPLAY_H
#define RL_CUPTI_REPLAY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "worker/cupti/plan.h"
#include "worker/cupti/spent.h"

typedef struct rl_replay {
  /* Put the inputs back and leave the device idle; then run the step's launches and leave it idle again. */
  int (*restore)(void *context, rl_error *err);
  int (*run)(void *context, rl_error *err);
  /* After each pass; -1 ends the replay. */
  int (*advanced)(void *context, rl_error *err);
  void *context;
  rl_spent *spent;
} rl_replay;

/* values[range * group->count + metric] for exactly `ranges` launches, in the order in which they were issued; of those that are
 * chosen. */
int rl_replay_group(const rl_group *group, const rl_replay *replay, const bool *chosen, size_t ranges, double *values,
                    rl_error *err);

#endif
