/* Counts HTTP requests and their durations for GET /metrics. Thread-safe. */
#ifndef RL_API_HTTP_STATISTICS_H
#define RL_API_HTTP_STATISTICS_H

#include <stdint.h>

#include "base/histogram.h"

typedef struct rl_http_statistics rl_http_statistics;

rl_http_statistics *rl_http_statistics_new(void); /* NULL if memory is exhausted */
void rl_http_statistics_free(rl_http_statistics *statistics);
/* Count the beginning and the end of a request. route: index into rl_routes; -1: no route matched. status: the reply's HTTP
 * status; 0: the connection was closed without a reply. */
void rl_http_statistics_begin(rl_http_statistics *statistics);
void rl_http_statistics_end(rl_http_statistics *statistics, int route, int status, int64_t duration_ns);

int64_t rl_http_statistics_active_requests(const rl_http_statistics *statistics);
/* Returns the number of replies of a route with the status rl_http_statuses[status_index]. route -1: requests without a route. */
uint64_t rl_http_statistics_reply_count(const rl_http_statistics *statistics, int route, int status_index);
const rl_histogram *rl_http_statistics_durations(const rl_http_statistics *statistics);

/* The HTTP statuses that the daemon uses, followed by zeros. Replies with any other status are counted at the index of the first
 * zero. */
enum { RL_HTTP_STATUSES_MAX = 24 };
extern const int rl_http_statuses[RL_HTTP_STATUSES_MAX];
extern const double rl_http_duration_bounds_s[RL_HISTOGRAM_BUCKETS];

#endif
