/* Counters of the HTTP side. Thread-safe. */
#ifndef RL_API_METRICS_H
#define RL_API_METRICS_H

#include <stdint.h>

#include "base/histogram.h"

enum { RL_STATUSES_MOST = 24 };

typedef struct rl_metrics rl_metrics;

rl_metrics *rl_metrics_new(void); /* NULL when memory is out */
void rl_metrics_free(rl_metrics *metrics);
/* A request has come; it is over. route: index into rl_routes, -1 when none matched; status 0: nothing was answered. */
void rl_metrics_begin(rl_metrics *metrics);
void rl_metrics_end(rl_metrics *metrics, int route, int status, int64_t duration_ns);

int64_t rl_metrics_active(const rl_metrics *metrics);
/* How often a route (-1: none) answered with the status of this place in rl_metrics_statuses. */
uint64_t rl_metrics_requests(const rl_metrics *metrics, int route, int status);
const rl_histogram *rl_metrics_durations(const rl_metrics *metrics);

/* That the daemon answers with; the first 0 counts the rest and is the last. */
extern const int rl_metrics_statuses[RL_STATUSES_MOST];
extern const double rl_metrics_bounds_s[RL_HISTOGRAM_BUCKETS];

#endif
