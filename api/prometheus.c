/* GET /metrics: prints the daemon's metrics in Prometheus' text format. docs/prometheus.md describes each metric. */
#include <stdio.h>
#include <string.h>

#include "api/body_cache.h"
#include "api/connections.h"
#include "api/event_streams.h"
#include "api/handlers.h"
#include "api/http_statistics.h"
#include "api/reply.h"
#include "api/routes.h"
#include "api/server_internal.h"
#include "base/clock.h"
#include "base/commit.h"
#include "queue/statistics.h"
#include "request/spec.h"
#include "store/webhooks.h"

enum { LABELS_SIZE = 256 };

/* Prints the HELP and TYPE lines, which precede the samples of a metric. */
static void print_family(FILE *out, const char *name, const char *type, const char *help) {
  fprintf(out, "# HELP rooflined_%s %s\n# TYPE rooflined_%s %s\n", name, help, name, type);
}

/* Appends NAME="VALUE" to labels, with escapes in the value. */
static void add_label(char *labels, const char *name, const char *value) {
  size_t used = strlen(labels);
  used += (size_t)snprintf(labels + used, LABELS_SIZE - used, "%s%s=\"", used > 0 ? "," : "", name);
  for (; *value != '\0' && used + 4 < LABELS_SIZE; value++) {
    if (strchr("\"\\\n", *value) != NULL) labels[used++] = '\\';
    labels[used++] = *value == '\n' ? 'n' : *value;
  }
  snprintf(labels + used, LABELS_SIZE - used, "\"");
}

/* Prints a sample. labels: "" if it has no labels. */
static void print_sample(FILE *out, const char *name, const char *labels, uint64_t value) {
  fprintf(out, "rooflined_%s%s%s%s %llu\n", name, labels[0] != '\0' ? "{" : "", labels, labels[0] != '\0' ? "}" : "",
          (unsigned long long)value);
}

static void print_sample_with_label(FILE *out, const char *name, const char *label, const char *value, uint64_t count) {
  char labels[LABELS_SIZE] = "";
  add_label(labels, label, value);
  print_sample(out, name, labels, count);
}

static void print_gauge(FILE *out, const char *name, const char *help, int64_t value) {
  print_family(out, name, "gauge", help);
  print_sample(out, name, "", (uint64_t)value);
}

/* Reads each bucket once, so that the printed count is the sum of the printed buckets. */
static void print_histogram(FILE *out, const char *name, const char *labels, const double *bounds_s,
                            const rl_histogram *histogram) {
  const char *comma = labels[0] != '\0' ? "," : "", *open = labels[0] != '\0' ? "{" : "", *close = labels[0] != '\0' ? "}" : "";
  uint64_t count = 0;
  for (int i = 0; i <= RL_HISTOGRAM_BUCKETS; i++) {
    char bound[32] = "+Inf";
    if (i < RL_HISTOGRAM_BUCKETS) snprintf(bound, sizeof bound, "%g", bounds_s[i]);
    count += atomic_load(&histogram->counts[i]);
    fprintf(out, "rooflined_%s_bucket{%s%sle=\"%s\"} %llu\n", name, labels, comma, bound, (unsigned long long)count);
  }
  fprintf(out, "rooflined_%s_sum%s%s%s %.9f\n", name, open, labels, close, (double)atomic_load(&histogram->sum_ns) / 1e9);
  fprintf(out, "rooflined_%s_count%s%s%s %llu\n", name, open, labels, close, (unsigned long long)count);
}

static void print_unfinished_jobs(FILE *out, const rl_job_counts *counts, int64_t limit) {
  print_family(out, "jobs", "gauge", "Jobs that are queued or running.");
  print_sample_with_label(out, "jobs", "state", "queued", (uint64_t)counts->queued);
  print_sample_with_label(out, "jobs", "state", "running", (uint64_t)counts->running);
  print_gauge(out, "queue_limit", "Maximum number of queued jobs.", limit);
}

static void print_finished_jobs(FILE *out, const rl_job_statistics *statistics) {
  print_family(out, "jobs_finished_total", "counter", "Jobs that reached a final state, by kind and state.");
  for (int kind = 0; rl_job_kinds[kind].name != NULL; kind++)
    for (int state = 0; state < RL_JOB_STATE_COUNT; state++) {
      char labels[LABELS_SIZE] = "";
      if (!rl_job_is_final((rl_job_state)state)) continue;
      add_label(labels, "kind", rl_job_kinds[kind].name);
      add_label(labels, "state", rl_job_state_names[state]);
      print_sample(out, "jobs_finished_total", labels, atomic_load(&statistics->finished[kind][state]));
    }
}

static void print_job_times(FILE *out, const char *name, const char *help, const rl_histogram *by_kind) {
  print_family(out, name, "histogram", help);
  for (int kind = 0; rl_job_kinds[kind].name != NULL; kind++) {
    char labels[LABELS_SIZE] = "";
    add_label(labels, "kind", rl_job_kinds[kind].name);
    print_histogram(out, name, labels, rl_job_duration_bounds_s, &by_kind[kind]);
  }
}

static void print_jobs(FILE *out, const rl_job_statistics *statistics) {
  print_family(out, "jobs_submitted_total", "counter", "Accepted jobs, by kind.");
  for (int kind = 0; rl_job_kinds[kind].name != NULL; kind++)
    print_sample_with_label(out, "jobs_submitted_total", "kind", rl_job_kinds[kind].name,
                            atomic_load(&statistics->submitted[kind]));
  print_finished_jobs(out, statistics);
  print_job_times(out, "job_wait_seconds", "Time from a job's acceptance to its start.", statistics->wait);
  print_job_times(out, "job_run_seconds", "Time from a job's start to its end.", statistics->run);
}

static void print_device_states(FILE *out, const rl_device_state *devices, int count) {
  static const char *const states[] = {"idle", "busy", "starting", "unusable"};
  print_family(out, "device_state", "gauge", "1 for the current state of a device, 0 for the others.");
  for (int i = 0; i < count; i++)
    for (size_t k = 0; k < sizeof states / sizeof *states; k++) {
      char labels[LABELS_SIZE] = "";
      add_label(labels, "device", devices[i].id);
      add_label(labels, "state", states[k]);
      print_sample(out, "device_state", labels, strcmp(devices[i].state, states[k]) == 0);
    }
}

static int print_devices(FILE *out, rl_supervisor *supervisor, rl_error *err) {
  static const struct {
    const char *name, *help;
    size_t offset;
  } counters[] = {
      {"worker_restarts_total", "Worker processes restarted after they died.", offsetof(rl_device_state, restarts)},
      {"worker_frames_total", "Messages received from workers.", offsetof(rl_device_state, frames)},
      {"worker_received_bytes_total", "Bytes of these messages, headers included.", offsetof(rl_device_state, bytes)}};
  rl_device_state *devices = calloc(RL_DEVICES_MAX, sizeof *devices);
  if (devices == NULL) return rl_fail(err, RL_ERRNO, 0, "out of memory for devices");
  int count = rl_supervisor_devices(supervisor, devices, RL_DEVICES_MAX);
  print_device_states(out, devices, count);
  for (size_t k = 0; k < sizeof counters / sizeof *counters; k++) {
    print_family(out, counters[k].name, "counter", counters[k].help);
    for (int i = 0; i < count; i++)
      print_sample_with_label(out, counters[k].name, "device", devices[i].id,
                              (uint64_t) * (const int64_t *)((const char *)&devices[i] + counters[k].offset));
  }
  free(devices);
  return 0;
}

static void print_webhook(FILE *out, const rl_store *store) {
  const rl_webhook_counts counts = rl_store_webhook_counts(store);
  print_gauge(out, "webhook_events_pending", "Events that the webhook has yet to deliver.", counts.pending);
  print_family(out, "webhook_events_total", "counter", "Events of the webhook that were delivered or given up, by result.");
  print_sample_with_label(out, "webhook_events_total", "result", "delivered", (uint64_t)counts.delivered);
  print_sample_with_label(out, "webhook_events_total", "result", "given_up", (uint64_t)counts.given_up);
  print_family(out, "webhook_failed_attempts_total", "counter", "Failed attempts to deliver an event of the webhook.");
  print_sample(out, "webhook_failed_attempts_total", "", (uint64_t)counts.failed_attempts);
}

static int print_store(FILE *out, rl_store *store, rl_error *err) {
  static const char *const row_types[RL_RETENTION_ROW_KIND_COUNT] = {"activity", "events", "suite_runs", "jobs"};
  int64_t database, log;
  if (rl_store_file_sizes(store, &database, &log, err) < 0) return -1;
  print_family(out, "database_bytes", "gauge", "Size of the database file and of its write-ahead log.");
  print_sample_with_label(out, "database_bytes", "file", "database", (uint64_t)database);
  print_sample_with_label(out, "database_bytes", "file", "log", (uint64_t)log);
  print_family(out, "retention_removed_rows_total", "counter", "Rows that retention removed, by type.");
  for (int i = 0; i < RL_RETENTION_ROW_KIND_COUNT; i++)
    print_sample_with_label(out, "retention_removed_rows_total", "what", row_types[i], (uint64_t)rl_store_removed_rows(store, i));
  return 0;
}

static void print_requests(FILE *out, const rl_http_statistics *statistics) {
  print_family(out, "http_requests_total", "counter", "Replies, by route and status.");
  for (int route = -1; route < 0 || rl_routes[route].method != NULL; route++)
    for (int status = 0; status == 0 || rl_http_statuses[status - 1] != 0; status++) {
      uint64_t count = rl_http_statistics_reply_count(statistics, route, status);
      char labels[LABELS_SIZE] = "", code[16] = "other";
      if (count == 0) continue;
      if (rl_http_statuses[status] != 0) snprintf(code, sizeof code, "%d", rl_http_statuses[status]);
      add_label(labels, "route", route < 0 ? "none" : rl_routes[route].operation);
      add_label(labels, "status", code);
      print_sample(out, "http_requests_total", labels, count);
    }
}

static void print_cache(FILE *out, rl_server *server) {
  print_gauge(out, "body_cache_bytes", "Bytes of replies that are kept in memory or being sent from it.",
              (int64_t)rl_body_cache_bytes(server->body_cache));
  print_family(out, "body_cache_lookups_total", "counter", "Requests whose reply may be kept in memory, by result.");
  print_sample_with_label(out, "body_cache_lookups_total", "result", "hit", atomic_load(&server->cache_hits));
  print_sample_with_label(out, "body_cache_lookups_total", "result", "miss", atomic_load(&server->cache_misses));
}

static void print_http(FILE *out, rl_server *server) {
  print_gauge(out, "http_connections", "Open connections.", rl_connections_count(server->connections));
  print_gauge(out, "http_requests_active", "Requests in progress, event streams included.",
              rl_http_statistics_active_requests(server->statistics));
  print_gauge(out, "event_listeners", "Open event streams.", rl_event_streams_count(server->event_streams));
  print_gauge(out, "sessions", "Login sessions of the web page.",
              rl_login_sessions_count(server->login_sessions, rl_monotonic_ns()));
  print_cache(out, server);
  print_requests(out, server->statistics);
  print_family(out, "http_request_duration_seconds", "histogram", "Time from a request's headers to the end of its reply.");
  print_histogram(out, "http_request_duration_seconds", "", rl_http_duration_bounds_s,
                  rl_http_statistics_durations(server->statistics));
}

static int print_metrics(FILE *out, rl_server *server, rl_error *err) {
  char labels[LABELS_SIZE] = "";
  rl_job_counts counts;
  if (rl_queue_count_jobs(server->queue, &counts, err) < 0) return -1;
  print_family(out, "build_info", "gauge", "Version and commit of the daemon; always 1.");
  add_label(labels, "version", RL_VERSION);
  add_label(labels, "commit", RL_COMMIT);
  print_sample(out, "build_info", labels, 1);
  print_unfinished_jobs(out, &counts, server->config->queue_limit);
  print_jobs(out, rl_queue_statistics(server->queue));
  if (print_devices(out, server->supervisor, err) < 0 || print_store(out, server->store, err) < 0) return -1;
  print_webhook(out, server->store);
  print_http(out, server);
  return 0;
}

int rl_handle_get_prometheus_metrics(rl_http_request *request, rl_error *err) {
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  if (out == NULL) return rl_fail_errno(err, "no memory stream");
  int rc = print_metrics(out, request->server, err);
  if (fclose(out) != 0 || rc < 0) {
    free(text);
    return rc < 0 ? rc : rl_fail(err, RL_ERRNO, 0, "out of memory for metrics");
  }
  return rl_reply_text(request, 200, text, "text/plain; version=0.0.4; charset=utf-8", err);
}
