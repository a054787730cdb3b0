/* One step under the range profiler, as often as its metrics need: a range per kernel launch, replay driven by us. What it takes
 * to enable the profiler and to start it for the first time, 150 ms (H200), is spent once where the next step is counted the
 * same way: the reservation of the hardware is kept until it is ended. Meanwhile nobody else can count or sample. */
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

typedef struct rl_reservation rl_reservation;

/* values[range * group->count + metric] for exactly `ranges` launches, in the order in which they were issued; of those that are
 * chosen. *kept: NULL, or what an earlier replay left, which is used where it fits and ended where not; the caller ends what is
 * left there. */
int rl_replay_group(rl_reservation **kept, const rl_group *group, const rl_replay *replay, const bool *chosen, size_t ranges,
                    double *values, rl_error *err);
void rl_reservation_end(rl_reservation **kept);

#endif
