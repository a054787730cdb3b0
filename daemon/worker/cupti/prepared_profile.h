/* A prepared profile has the metrics that profile options select, and a plan for the counters among them. Four prepared profiles
 * are cached in memory, for later jobs with the same options and kernels of the same instruction classes. */
#ifndef RL_CUPTI_PREPARED_PROFILE_H
#define RL_CUPTI_PREPARED_PROFILE_H

#include "worker/cupti/counter_plan.h"
#include "worker/cupti/metric_selection.h"

enum { RL_MAX_PREPARED_PROFILES = 4 };

typedef struct rl_prepared_profile {
  rl_profile_options profile_options;
  rl_instruction_classes absent_classes;
  bool excludes_collected;
  rl_metric_selection selection;
  /* Names of the plan's metrics: the first selection.counter_count items of the selection. If excludes_collected is true, the
   * counters that were collected already are missing. */
  const char **counter_names;
  rl_counter_plan *plan; /* NULL: an unused entry */
  uint64_t last_use;
} rl_prepared_profile;

typedef struct rl_prepared_profiles { /* a cache; a new entry replaces the least recently used one */
  rl_prepared_profile items[RL_MAX_PREPARED_PROFILES];
  uint64_t use_count;
} rl_prepared_profiles;

/* Finds or prepares the profile of these options. collected: NULL, or the profile of the same options for code that lacks all
 * classes that rl_all_instruction_classes() returns, whose counters were collected already; the new plan then excludes these
 * counters. *found stays valid during the next RL_MAX_PREPARED_PROFILES - 1 calls. */
int rl_prepared_profile_find(rl_prepared_profiles *cache, int device_index, const rl_profile_options *profile_options,
                             rl_instruction_classes absent_classes, const rl_prepared_profile *collected,
                             const rl_prepared_profile **found, rl_error *err);
/* Returns the index of a counter in counter_names; plan->metric_count if it is not there. */
size_t rl_prepared_profile_index(const rl_prepared_profile *prepared, const char *counter);
void rl_prepared_profiles_close(rl_prepared_profiles *cache);

#endif
