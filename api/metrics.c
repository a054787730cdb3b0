#include "api/metrics.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { ROUTES_MOST = 48 };

const int rl_metrics_statuses[RL_STATUSES_MOST] = {200, 202, 204, 304, 400, 401, 403, 404, 405,
                                                   409, 413, 415, 421, 422, 429, 500, 503, 507};
const double rl_metrics_bounds_s[RL_HISTOGRAM_BUCKETS] = {0.001, 0.0025, 0.005, 0.02, 0.1, 0.5, 2, 10, 60, 600};

struct rl_metrics {
  _Atomic int64_t active;
  _Atomic uint64_t requests[ROUTES_MOST + 1][RL_STATUSES_MOST]; /* row 0: no route */
  rl_histogram durations;
};

rl_metrics *rl_metrics_new(void) { return calloc(1, sizeof(rl_metrics)); }
void rl_metrics_free(rl_metrics *metrics) { free(metrics); }
void rl_metrics_begin(rl_metrics *metrics) { atomic_fetch_add(&metrics->active, 1); }
int64_t rl_metrics_active(const rl_metrics *metrics) { return atomic_load(&metrics->active); }
const rl_histogram *rl_metrics_durations(const rl_metrics *metrics) { return &metrics->durations; }

uint64_t rl_metrics_requests(const rl_metrics *metrics, int route, int status) {
  return atomic_load(&metrics->requests[route + 1][status]);
}

void rl_metrics_end(rl_metrics *metrics, int route, int status, int64_t duration_ns) {
  int column = 0;
  atomic_fetch_sub(&metrics->active, 1);
  if (status == 0 || route >= ROUTES_MOST) return;
  while (rl_metrics_statuses[column] != status && rl_metrics_statuses[column] != 0) column++;
  atomic_fetch_add(&metrics->requests[route + 1][column], 1);
  rl_histogram_observe(&metrics->durations, rl_metrics_bounds_s, duration_ns);
}
