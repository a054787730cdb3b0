/* The rates of a trace's copies by direction and kinds of memory, and the time that copies of pageable memory would take at the
 * rate of pinned memory. All functions are pure. */
#ifndef RL_ANALYZE_COPY_RATES_H
#define RL_ANALYZE_COPY_RATES_H

#include <stddef.h>
#include <stdint.h>

#include "model/metrics.h"
#include "model/records.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Minimum size of copies whose rates are compared. Latency, not bandwidth, determines the rate of smaller copies. */
enum { RL_LARGE_COPY_BYTES = 1 << 20 };

typedef struct rl_copy_group { /* the copies of a direction between two kinds of memory */
  char name[32];               /* "memcpy HtoD" */
  rl_memory_kind source, destination;
  int64_t count, bytes, time_ns; /* sums; time_ns: of the durations */
  int64_t large_bytes, large_ns; /* sums over the copies of RL_LARGE_COPY_BYTES or more */
  int64_t unsized_count;         /* copies whose size is unknown, which `bytes` and the sums of large copies lack */
} rl_copy_group;

/* The metrics that the rules of the timeline read. */
enum { RL_COPY_METRIC_COUNT = 6 };
/* Writes the metrics, sorted by name, and returns their number. Names and reasons are static. */
size_t rl_copy_metrics(const rl_copy_group *groups, size_t count, int64_t window_ns,
                       rl_metric_value metrics[RL_COPY_METRIC_COUNT]);

#ifdef __cplusplus
}
#endif
#endif
