/* Collects counters with CUPTI's profiler: one range per kernel launch (auto range), several passes over a step (user replay).
 * Opening its session takes 70 ms (H200). So the session stays open after a collection, and the next collection with the same
 * configuration and number of ranges reuses it. While it is open, other processes can't collect counters, and this process can't
 * use PC sampling or PM sampling. */
#ifndef RL_CUPTI_RANGE_PROFILER_H
#define RL_CUPTI_RANGE_PROFILER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "worker/cupti/counter_plan.h"
#include "worker/cupti/stage_timer.h"

typedef struct rl_user_replay {                       /* callbacks; each pass calls them in this order */
  int (*restore)(void *context, rl_error *err);       /* restores the step's inputs; leaves the device idle */
  int (*run)(void *context, rl_error *err);           /* runs the step's launches; leaves the device idle */
  int (*on_pass_ended)(void *context, rl_error *err); /* called after each pass; a result of -1 ends the replay */
  void *context;
  rl_stage_timer *timer;
} rl_user_replay;

typedef struct rl_range_profiler rl_range_profiler;

/* Collects a group's counters for the `range_count` launches of the step, and decodes them. *kept_profiler: NULL, or the profiler
 * of an earlier collection, which is reused if its configuration matches, and else replaced. It is NULL after a failure. The
 * caller closes *kept_profiler. */
int rl_range_profiler_collect(rl_range_profiler **kept_profiler, const rl_counter_group *group, const rl_user_replay *replay,
                              size_t range_count, rl_error *err);
/* Returns the counter data image of the last collection, with the ranges in order of issue. It is valid until the next call. */
const uint8_t *rl_range_profiler_image(const rl_range_profiler *profiler, size_t *size);
/* Closes the session; the next collection opens another. NULL is allowed. */
void rl_range_profiler_release(rl_range_profiler *profiler);
/* Closes the session and frees the profiler. Sets *kept_profiler to NULL, which it may be already. */
void rl_range_profiler_close(rl_range_profiler **kept_profiler);

#endif
