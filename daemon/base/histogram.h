/* A histogram of durations. Thread-safe; a reader may see an observation in its bucket before it is in the sum. */
#ifndef RL_BASE_HISTOGRAM_H
#define RL_BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

enum { RL_HISTOGRAM_BUCKETS = 10 };

typedef struct rl_histogram {
  _Atomic uint64_t counts[RL_HISTOGRAM_BUCKETS + 1]; /* the last one: above all bounds */
  _Atomic uint64_t sum_ns;
} rl_histogram; /* zeroed: empty */

/* Counts a duration. bounds_s: the rising upper bounds of the buckets. A negative duration, after the clock was set back, counts
 * as 0. */
void rl_histogram_observe(rl_histogram *histogram, const double bounds_s[RL_HISTOGRAM_BUCKETS], int64_t duration_ns);

#endif
