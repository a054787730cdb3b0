/* Levels of detail at which a timeline can be drawn without reading every activity row. Level n divides time into intervals of
 * 1,024 ns × 4^n; there are RL_ACTIVITY_LEVELS levels. For each interval and lane, the table activity_intervals has the number
 * and the total duration of the rows that start in the interval and are shorter than it. Batches of few or sparse rows have no
 * intervals (store/activity_intervals.h). */
#ifndef RL_MODEL_ACTIVITY_LEVELS_H
#define RL_MODEL_ACTIVITY_LEVELS_H

#include <stdint.h>

enum { RL_ACTIVITY_LEVELS = 20, RL_NO_LEVEL = -1 };

/* Returns the length of an interval of the level. */
static inline int64_t rl_activity_level_ns(int level) { return INT64_C(1024) << 2 * level; }

/* Returns the lowest n for which 1,024 ns × 4^n is longer than the duration of a row: the row is shorter than the intervals of
 * level n and of higher levels. The result is at most 27, so it can exceed the highest level. */
static inline int rl_activity_lowest_level_above(int64_t duration_ns) {
  int level = 0;
  for (int64_t rest = duration_ns > 0 ? duration_ns >> 10 : 0; rest > 0; rest >>= 2) level++;
  return level;
}

/* Returns the highest level whose intervals are not longer than the duration; RL_NO_LEVEL when even the intervals of level 0 are
 * longer. */
static inline int rl_activity_highest_level_up_to(int64_t duration_ns) {
  int level = RL_NO_LEVEL;
  while (level + 1 < RL_ACTIVITY_LEVELS && rl_activity_level_ns(level + 1) <= duration_ns) level++;
  return level;
}

#endif
