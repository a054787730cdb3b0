/* What a profile collects of code, made ready: the metrics by name, and for the counters among them a plan. A few are kept, so
 * that the next job with the same profile and such code starts at once; plans are also kept in $ROOFLINED_CACHE_DIR. */
#ifndef RL_CUPTI_COLLECTION_H
#define RL_CUPTI_COLLECTION_H

#include "worker/cupti/plan.h"
#include "worker/cupti/wanted.h"

enum { RL_COLLECTIONS = 4 };

typedef struct rl_collection {
  rl_profile profile; /* whose sections and metrics these are */
  rl_absences absent;
  rl_wanted wanted;
  const char **counters; /* names, of the plan */
  rl_counter_plan *plan; /* its metrics are the first wanted.counters of wanted.items; NULL: an empty place */
  uint64_t used;
} rl_collection;

typedef struct rl_collections {
  rl_collection items[RL_COLLECTIONS];
  uint64_t uses;
} rl_collections;

/* Valid until as many others were asked for. */
int rl_collection_find(rl_collections *collections, int device_index, const rl_profile *profile, rl_absences absent,
                       const rl_collection **found, rl_error *err);
void rl_collections_close(rl_collections *collections);

#endif
