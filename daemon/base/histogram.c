#include "base/histogram.h"

void rl_histogram_observe(rl_histogram *histogram, const double bounds_s[RL_HISTOGRAM_BUCKETS], int64_t took_ns) {
  int bucket = 0;
  if (took_ns < 0) took_ns = 0;
  while (bucket < RL_HISTOGRAM_BUCKETS && (double)took_ns > bounds_s[bucket] * 1e9) bucket++;
  atomic_fetch_add(&histogram->counts[bucket], 1);
  atomic_fetch_add(&histogram->sum_ns, (uint64_t)took_ns);
}
