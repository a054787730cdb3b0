/* Levels of detail at which a timeline can be drawn without reading every activity row. Level n divides time into intervals of
 * 1,024 ns times 4 to the power of n; there are RL_ACTIVITY_LEVELS levels. */
#ifndef RL_MODEL_ACTIVITY_LEVELS_H
#define RL_MODEL_ACTIVITY_LEVELS_H

#include <stdint.h>

enum { RL_ACTIVITY_LEVELS = 20, RL_NO_LEVEL = -1 };

static inline int64_t rl_activity_level_ns(int level) { return INT64_C(1024) << 2 * level; }

/* Returns the lowest n for which intervals of level n are longer than a duration. The result can be as high as 27, although there
 * are no levels from RL_ACTIVITY_LEVELS on. */
static inline int rl_activity_level_above(int64_t duration_ns) {
  int level = 0;
  for (int64_t rest = duration_ns > 0 ? duration_ns >> 10 : 0; rest > 0; rest >>= 2) level++;
  return level;
}

/* Returns the highest level whose intervals last at most as long as the duration; RL_NO_LEVEL when even level 0 is too long. */
static inline int rl_activity_level_within(int64_t duration_ns) {
  int level = RL_NO_LEVEL;
  while (level + 1 < RL_ACTIVITY_LEVELS && rl_activity_level_ns(level + 1) <= duration_ns) level++;
  return level;
}

#endif
