/* Counters of the HTTP side, and the Prometheus text exposition. Thread-safe. */
#ifndef RL_API_METRICS_H
#define RL_API_METRICS_H

#include <stdint.h>

typedef struct rl_metrics rl_metrics;

rl_metrics *rl_metrics_new(void); /* NULL when memory is out */
void rl_metrics_free(rl_metrics *metrics);
/* A request has come; it is over. route: index into rl_routes, -1 when none matched; status 0: nothing was answered. */
void rl_metrics_begin(rl_metrics *metrics);
void rl_metrics_end(rl_metrics *metrics, int route, int status, int64_t duration_ns);
int64_t rl_metrics_active(const rl_metrics *metrics);

#endif
