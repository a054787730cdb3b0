/* Finds counters of L2 that need not be collected because they are sums or differences of other counters. Also finds values that
 * cannot be right because their parts were counted in different passes. */
#ifndef RL_CODE_DERIVED_COUNTERS_H
#define RL_CODE_DERIVED_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>

#include "model/records.h"
#include "worker/code/instruction_classes.h"

enum { RL_MAX_TERMS = 4 };

/* A counter is the sum of the first added_count terms minus the other terms. */
typedef struct rl_counter_terms {
  char names[RL_MAX_TERMS][RL_METRIC_NAME_SIZE];
  size_t count, added_count;
  const char *reason; /* why the counter is not collected */
} rl_counter_terms;

/* Sets the terms of a counter of code that lacks the absent classes. Terms have no terms themselves. Returns false if the counter
 * must be collected. */
bool rl_counter_terms_find(const char *counter, rl_instruction_classes absent, rl_counter_terms *terms);

/* Returns the sum of the first added_count values minus the other values, in the unit of the counter. Sets *reason to NULL, or
 * returns NAN and sets *reason: a value is NAN, or the difference is negative. The values may be counted in different passes, so
 * a difference down to -1 % of the added values is taken for 0. */
double rl_counter_terms_sum(const double *values, size_t count, size_t added_count, const char **reason);
/* Returns why the value of a collected metric cannot be right: a hit rate above 101 %. Returns NULL for every other value. */
const char *rl_counter_contradiction(const char *metric, double value);

#endif
