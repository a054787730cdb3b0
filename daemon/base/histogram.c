/* Implements histogram.h with atomic operations, without a lock. */
#include "base/histogram.h"

void rl_histogram_observe(rl_histogram *histogram, const double bounds_s[RL_HISTOGRAM_BUCKETS], int64_t duration_ns) {
  int bucket = 0;
  if (duration_ns < 0) duration_ns = 0;
  while (bucket < RL_HISTOGRAM_BUCKETS && (double)duration_ns > bounds_s[bucket] * 1e9) bucket++;
  atomic_fetch_add(&histogram->counts[bucket], 1);
  atomic_fetch_add(&histogram->sum_ns, (uint64_t)duration_ns);
}
