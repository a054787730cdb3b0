/* Implements http_statistics.h with atomic counters for each route and status. */
#include "api/http_statistics.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { MAX_ROUTES = 48 };

const int rl_http_statuses[RL_HTTP_STATUSES_MAX] = {200, 202, 204, 304, 400, 401, 403, 404, 405,
                                                    409, 413, 415, 421, 422, 429, 500, 503};
const double rl_http_duration_bounds_s[RL_HISTOGRAM_BUCKETS] = {0.001, 0.0025, 0.005, 0.02, 0.1, 0.5, 2, 10, 60, 600};

struct rl_http_statistics {
  _Atomic int64_t active;
  _Atomic uint64_t replies[MAX_ROUTES + 1][RL_HTTP_STATUSES_MAX]; /* row 0: no route */
  rl_histogram durations;
};

rl_http_statistics *rl_http_statistics_new(void) { return calloc(1, sizeof(rl_http_statistics)); }
void rl_http_statistics_free(rl_http_statistics *statistics) { free(statistics); }
void rl_http_statistics_begin(rl_http_statistics *statistics) { atomic_fetch_add(&statistics->active, 1); }
int64_t rl_http_statistics_active_requests(const rl_http_statistics *statistics) { return atomic_load(&statistics->active); }
const rl_histogram *rl_http_statistics_durations(const rl_http_statistics *statistics) { return &statistics->durations; }

uint64_t rl_http_statistics_reply_count(const rl_http_statistics *statistics, int route, int status_index) {
  return atomic_load(&statistics->replies[route + 1][status_index]);
}

void rl_http_statistics_end(rl_http_statistics *statistics, int route, int status, int64_t duration_ns) {
  int status_index = 0;
  atomic_fetch_sub(&statistics->active, 1);
  if (status == 0 || route >= MAX_ROUTES) return;
  while (rl_http_statuses[status_index] != status && rl_http_statuses[status_index] != 0) status_index++;
  atomic_fetch_add(&statistics->replies[route + 1][status_index], 1);
  rl_histogram_observe(&statistics->durations, rl_http_duration_bounds_s, duration_ns);
}
