#include "api/metrics.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "api/internal.h"
#include "base/commit.h"

enum { ROUTES_MOST = 48, BUCKETS = 8 };

/* Statuses that the daemon answers with; the last counts the rest. */
static const int statuses[] = {200, 202, 204, 304, 400, 401, 403, 404, 405, 409, 413, 415, 421, 422, 429, 500, 503, 507, 0};
enum { STATUSES = sizeof statuses / sizeof *statuses };
static const double bucket_s[BUCKETS] = {0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60};

struct rl_metrics {
  _Atomic int64_t active;
  _Atomic uint64_t requests[ROUTES_MOST + 1][STATUSES]; /* row 0: no route */
  _Atomic uint64_t durations[BUCKETS + 1];              /* the last: beyond every bound */
  _Atomic uint64_t duration_ns;
};

rl_metrics *rl_metrics_new(void) { return calloc(1, sizeof(rl_metrics)); }
void rl_metrics_free(rl_metrics *metrics) { free(metrics); }
void rl_metrics_begin(rl_metrics *metrics) { atomic_fetch_add(&metrics->active, 1); }
int64_t rl_metrics_active(const rl_metrics *metrics) { return atomic_load(&metrics->active); }

void rl_metrics_end(rl_metrics *metrics, int route, int status, int64_t duration_ns) {
  int column = 0, bucket = 0;
  atomic_fetch_sub(&metrics->active, 1);
  if (status == 0 || route >= ROUTES_MOST) return;
  while (statuses[column] != status && statuses[column] != 0) column++;
  atomic_fetch_add(&metrics->requests[route + 1][column], 1);
  while (bucket < BUCKETS && (double)duration_ns > bucket_s[bucket] * 1e9) bucket++;
  atomic_fetch_add(&metrics->durations[bucket], 1);
  atomic_fetch_add(&metrics->duration_ns, (uint64_t)duration_ns);
}

/* --- the text exposition --- */

static void head(FILE *out, const char *name, const char *type, const char *help) {
  fprintf(out, "# HELP rooflined_%s %s\n# TYPE rooflined_%s %s\n", name, help, name, type);
}

static void gauge(FILE *out, const char *name, const char *help, int64_t value) {
  head(out, name, "gauge", help);
  fprintf(out, "rooflined_%s %lld\n", name, (long long)value);
}

static void print_requests(FILE *out, rl_metrics *metrics) {
  head(out, "http_requests_total", "counter", "Requests answered, by route and status.");
  for (int row = 0; row <= ROUTES_MOST && (row == 0 || rl_routes[row - 1].method != NULL); row++)
    for (int column = 0; column < STATUSES; column++) {
      uint64_t count = atomic_load(&metrics->requests[row][column]);
      if (count == 0) continue;
      char status[16] = "other";
      if (statuses[column] != 0) snprintf(status, sizeof status, "%d", statuses[column]);
      fprintf(out, "rooflined_http_requests_total{route=\"%s\",status=\"%s\"} %llu\n",
              row == 0 ? "none" : rl_routes[row - 1].operation, status, (unsigned long long)count);
    }
}

static void print_durations(FILE *out, rl_metrics *metrics) {
  uint64_t sum = 0;
  head(out, "http_request_duration_seconds", "histogram", "Time from a request's headers to the end of its answer.");
  for (int i = 0; i < BUCKETS; i++) {
    sum += atomic_load(&metrics->durations[i]);
    fprintf(out, "rooflined_http_request_duration_seconds_bucket{le=\"%g\"} %llu\n", bucket_s[i], (unsigned long long)sum);
  }
  sum += atomic_load(&metrics->durations[BUCKETS]);
  fprintf(out, "rooflined_http_request_duration_seconds_bucket{le=\"+Inf\"} %llu\n", (unsigned long long)sum);
  fprintf(out, "rooflined_http_request_duration_seconds_sum %.9f\n", (double)atomic_load(&metrics->duration_ns) / 1e9);
  fprintf(out, "rooflined_http_request_duration_seconds_count %llu\n", (unsigned long long)sum);
}

static int print_devices(FILE *out, rl_fleet *fleet, rl_error *err) {
  static const char *const states[] = {"idle", "busy", "starting", "unusable"};
  enum { MOST = 64 };
  rl_device_state *devices = calloc(MOST, sizeof *devices);
  if (devices == NULL) return rl_fail(err, RL_SYS, 0, "out of memory for devices");
  int count = rl_fleet_devices(fleet, devices, MOST);
  if (count > MOST) count = MOST;
  head(out, "device_state", "gauge", "1 for the state that a device is in.");
  for (int i = 0; i < count; i++)
    for (size_t k = 0; k < sizeof states / sizeof *states; k++)
      fprintf(out, "rooflined_device_state{device=\"%s\",state=\"%s\"} %d\n", devices[i].id, states[k],
              strcmp(devices[i].state, states[k]) == 0);
  head(out, "worker_restarts_total", "counter", "Worker processes started again after they died.");
  for (int i = 0; i < count; i++)
    fprintf(out, "rooflined_worker_restarts_total{device=\"%s\"} %lld\n", devices[i].id, (long long)devices[i].restarts);
  free(devices);
  return 0;
}

static int print(FILE *out, rl_server *server, rl_error *err) {
  rl_jobs_counts counts;
  int64_t bytes;
  if (rl_jobs_count(server->jobs, &counts, err) < 0 || rl_store_bytes(server->store, &bytes, err) < 0) return -1;
  head(out, "build_info", "gauge", "The program's version and commit.");
  fprintf(out, "rooflined_build_info{version=\"%s\",commit=\"%s\"} 1\n", RL_VERSION, RL_COMMIT);
  head(out, "jobs", "gauge", "Jobs that are not finished, by state.");
  fprintf(out, "rooflined_jobs{state=\"queued\"} %lld\nrooflined_jobs{state=\"running\"} %lld\n", (long long)counts.queued,
          (long long)counts.running);
  gauge(out, "queue_limit", "Jobs that the queue takes.", server->config->queue_limit);
  gauge(out, "database_bytes", "Size of the database and its write-ahead log.", bytes);
  if (print_devices(out, server->fleet, err) < 0) return -1;
  gauge(out, "http_connections", "Open connections.", rl_connections_open(server->connections));
  gauge(out, "http_requests_active", "Requests being answered, event streams among them.",
        rl_metrics_active(server->metrics));
  gauge(out, "event_listeners", "Open event streams.", rl_events_listeners(server->events));
  print_requests(out, server->metrics);
  print_durations(out, server->metrics);
  return 0;
}

int rl_handle_metrics(rl_call *call, rl_error *err) {
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  if (out == NULL) return rl_fail_errno(err, "no memory stream");
  int rc = print(out, call->server, err);
  if (fclose(out) != 0 || rc < 0) {
    free(text);
    return rc < 0 ? rc : rl_fail(err, RL_SYS, 0, "out of memory for metrics");
  }
  return rl_reply_text(call, 200, text, "text/plain; version=0.0.4; charset=utf-8", err);
}
