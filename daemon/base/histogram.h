/* A histogram of durations for GET /metrics. Thread-safe. While a thread counts a duration, a reader in another thread may see
 * the bucket with this duration and the sum without it. */
#ifndef RL_BASE_HISTOGRAM_H
#define RL_BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

enum { RL_HISTOGRAM_BUCKETS = 10 };

typedef struct rl_histogram {
  _Atomic uint64_t counts[RL_HISTOGRAM_BUCKETS + 1]; /* the last element counts durations above the last bound */
  _Atomic uint64_t sum_ns;
} rl_histogram; /* a zeroed rl_histogram is empty */

/* Counts a duration. bounds_s: inclusive upper bounds of the buckets, in ascending order. A negative duration (the wall clock was
 * set back) counts as 0. */
void rl_histogram_observe(rl_histogram *histogram, const double bounds_s[RL_HISTOGRAM_BUCKETS], int64_t duration_ns);

#endif
