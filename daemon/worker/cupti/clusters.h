/* How many blocks a cluster of a kernel could have at most, launch by launch: records of launches tell it of those with clusters
 * alone. */
#ifndef RL_CUPTI_CLUSTERS_H
#define RL_CUPTI_CLUSTERS_H

#include <stddef.h>

#include "base/error.h"

typedef struct rl_clusters {
  int *largest; /* by launch, in order of issue; 0: the driver does not tell */
  size_t count, capacity;
} rl_clusters;

/* Ask for each kernel that is launched from here until rl_clusters_unwatch. Clear it in the end, also after a failure. */
int rl_clusters_watch(rl_clusters *clusters, rl_error *err);
void rl_clusters_unwatch(void);
void rl_clusters_clear(rl_clusters *clusters);

#endif
