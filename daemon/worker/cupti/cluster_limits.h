/* Records the size of the largest cluster that each kernel launch could use. Activity records have this value only for launches
 * that use clusters. */
#ifndef RL_CUPTI_CLUSTER_LIMITS_H
#define RL_CUPTI_CLUSTER_LIMITS_H

#include <stddef.h>

#include "base/error.h"

typedef struct rl_cluster_limits {
  int *max_blocks; /* blocks of the largest possible cluster, by launch in order of issue; 0: unknown */
  size_t count, capacity;
} rl_cluster_limits;

/* From now until rl_cluster_limits_stop, appends the limit of each kernel launch. rl_cluster_limits_clear frees the limits, also
 * after a failure. */
int rl_cluster_limits_start(rl_cluster_limits *limits, rl_error *err);
void rl_cluster_limits_stop(void);
void rl_cluster_limits_clear(rl_cluster_limits *limits);

#endif
