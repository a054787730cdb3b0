/* How often something took how long, counted in buckets. Thread-safe; a reader may see an observation in its bucket before it is
 * in the sum. */
#ifndef RL_BASE_HISTOGRAM_H
#define RL_BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

enum { RL_HISTOGRAM_BUCKETS = 10 };

typedef struct rl_histogram {
  _Atomic uint64_t counts[RL_HISTOGRAM_BUCKETS + 1]; /* the last: beyond every bound */
  _Atomic uint64_t sum_ns;
} rl_histogram; /* zeroed: empty */

/* bounds_s: the buckets' upper bounds, rising. A time below zero, as a clock that was set back makes it, counts as none. */
void rl_histogram_observe(rl_histogram *histogram, const double bounds_s[RL_HISTOGRAM_BUCKETS], int64_t took_ns);

#endif
