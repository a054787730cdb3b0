/* GET /metrics: what the daemon counts, in Prometheus' text format. docs/prometheus.md says what each name is. */
#include <stdio.h>
#include <string.h>

#include "api/internal.h"
#include "base/clock.h"
#include "base/commit.h"
#include "queue/statistics.h"
#include "request/spec.h"

enum { LABELS_SIZE = 256 };

/* --- the format -------------------------------------------------------------------------------------------------------- */

/* A family is told of once, ahead of its samples. */
static void family(FILE *out, const char *name, const char *type, const char *help) {
  fprintf(out, "# HELP rooflined_%s %s\n# TYPE rooflined_%s %s\n", name, help, name, type);
}

/* Append NAME="VALUE" to labels: what the format does not take in a value is escaped. */
static void label(char *labels, const char *name, const char *value) {
  size_t used = strlen(labels);
  used += (size_t)snprintf(labels + used, LABELS_SIZE - used, "%s%s=\"", used > 0 ? "," : "", name);
  for (; *value != '\0' && used + 4 < LABELS_SIZE; value++) {
    if (strchr("\"\\\n", *value) != NULL) labels[used++] = '\\';
    labels[used++] = *value == '\n' ? 'n' : *value;
  }
  snprintf(labels + used, LABELS_SIZE - used, "\"");
}

/* labels: "" for none. */
static void sample(FILE *out, const char *name, const char *labels, uint64_t value) {
  fprintf(out, "rooflined_%s%s%s%s %llu\n", name, labels[0] != '\0' ? "{" : "", labels, labels[0] != '\0' ? "}" : "",
          (unsigned long long)value);
}

static void sample_of(FILE *out, const char *name, const char *labelled, const char *value, uint64_t count) {
  char labels[LABELS_SIZE] = "";
  label(labels, labelled, value);
  sample(out, name, labels, count);
}

static void gauge(FILE *out, const char *name, const char *help, int64_t value) {
  family(out, name, "gauge", help);
  sample(out, name, "", (uint64_t)value);
}

/* The buckets are read once: their sum is the count that is printed. */
static void histogram(FILE *out, const char *name, const char *labels, const double *bounds_s, const rl_histogram *counted) {
  const char *comma = labels[0] != '\0' ? "," : "", *open = labels[0] != '\0' ? "{" : "", *close = labels[0] != '\0' ? "}" : "";
  uint64_t count = 0;
  for (int i = 0; i <= RL_HISTOGRAM_BUCKETS; i++) {
    char bound[32] = "+Inf";
    if (i < RL_HISTOGRAM_BUCKETS) snprintf(bound, sizeof bound, "%g", bounds_s[i]);
    count += atomic_load(&counted->counts[i]);
    fprintf(out, "rooflined_%s_bucket{%s%sle=\"%s\"} %llu\n", name, labels, comma, bound, (unsigned long long)count);
  }
  fprintf(out, "rooflined_%s_sum%s%s%s %.9f\n", name, open, labels, close, (double)atomic_load(&counted->sum_ns) / 1e9);
  fprintf(out, "rooflined_%s_count%s%s%s %llu\n", name, open, labels, close, (unsigned long long)count);
}

/* --- jobs -------------------------------------------------------------------------------------------------------------- */

static void print_waiting(FILE *out, const rl_job_counts *counts, int64_t limit) {
  family(out, "jobs", "gauge", "Jobs that are not finished, by state; the queued ones are the queue's depth.");
  sample_of(out, "jobs", "state", "queued", (uint64_t)counts->queued);
  sample_of(out, "jobs", "state", "running", (uint64_t)counts->running);
  gauge(out, "queue_limit", "Jobs that the queue takes.", limit);
}

static void print_finished(FILE *out, const rl_job_statistics *tally) {
  family(out, "jobs_finished_total", "counter", "Jobs that reached a final state, by kind and that state.");
  for (int kind = 0; rl_job_kinds[kind].name != NULL; kind++)
    for (int state = 0; state < RL_JOB_STATES; state++) {
      char labels[LABELS_SIZE] = "";
      if (!rl_job_is_final((rl_job_state)state)) continue;
      label(labels, "kind", rl_job_kinds[kind].name);
      label(labels, "state", rl_job_state_names[state]);
      sample(out, "jobs_finished_total", labels, atomic_load(&tally->finished[kind][state]));
    }
}

static void print_times(FILE *out, const char *name, const char *help, const rl_histogram *of_kinds) {
  family(out, name, "histogram", help);
  for (int kind = 0; rl_job_kinds[kind].name != NULL; kind++) {
    char labels[LABELS_SIZE] = "";
    label(labels, "kind", rl_job_kinds[kind].name);
    histogram(out, name, labels, rl_job_duration_bounds_s, &of_kinds[kind]);
  }
}

static void print_jobs(FILE *out, const rl_job_statistics *tally) {
  family(out, "jobs_submitted_total", "counter", "Jobs that were accepted, by kind.");
  for (int kind = 0; rl_job_kinds[kind].name != NULL; kind++)
    sample_of(out, "jobs_submitted_total", "kind", rl_job_kinds[kind].name, atomic_load(&tally->submitted[kind]));
  print_finished(out, tally);
  print_times(out, "job_wait_seconds", "Time that jobs waited from their acceptance to their start.", tally->wait);
  print_times(out, "job_run_seconds", "Time that jobs took from their start to their end.", tally->run);
}

/* --- devices and their workers ----------------------------------------------------------------------------------------- */

static void print_states(FILE *out, const rl_device_state *devices, int count) {
  static const char *const states[] = {"idle", "busy", "starting", "unusable"};
  family(out, "device_state", "gauge", "1 for the state that a device is in.");
  for (int i = 0; i < count; i++)
    for (size_t k = 0; k < sizeof states / sizeof *states; k++) {
      char labels[LABELS_SIZE] = "";
      label(labels, "device", devices[i].id);
      label(labels, "state", states[k]);
      sample(out, "device_state", labels, strcmp(devices[i].state, states[k]) == 0);
    }
}

static int print_devices(FILE *out, rl_supervisor *supervisor, rl_error *err) {
  static const struct {
    const char *name, *help;
    size_t member;
  } counters[] = {
      {"worker_restarts_total", "Worker processes started again after they died.", offsetof(rl_device_state, restarts)},
      {"worker_frames_total", "Frames that came from workers.", offsetof(rl_device_state, frames)},
      {"worker_received_bytes_total", "Bytes of these frames.", offsetof(rl_device_state, bytes)}};
  rl_device_state *devices = calloc(RL_DEVICES_MAX, sizeof *devices);
  if (devices == NULL) return rl_fail(err, RL_SYS, 0, "out of memory for devices");
  int count = rl_supervisor_devices(supervisor, devices, RL_DEVICES_MAX);
  print_states(out, devices, count);
  for (size_t k = 0; k < sizeof counters / sizeof *counters; k++) {
    family(out, counters[k].name, "counter", counters[k].help);
    for (int i = 0; i < count; i++)
      sample_of(out, counters[k].name, "device", devices[i].id,
                (uint64_t) * (const int64_t *)((const char *)&devices[i] + counters[k].member));
  }
  free(devices);
  return 0;
}

/* --- the store --------------------------------------------------------------------------------------------------------- */

static int print_store(FILE *out, rl_store *store, rl_error *err) {
  static const char *const retained[RL_REMOVED_KINDS] = {"activity", "events", "jobs"};
  int64_t database, log;
  if (rl_store_bytes(store, &database, &log, err) < 0) return -1;
  family(out, "database_bytes", "gauge", "Size of the database's files; log is the write-ahead log.");
  sample_of(out, "database_bytes", "file", "database", (uint64_t)database);
  sample_of(out, "database_bytes", "file", "log", (uint64_t)log);
  family(out, "retention_removed_rows_total", "counter", "Rows that retention removed, by what they were.");
  for (int what = 0; what < RL_REMOVED_KINDS; what++)
    sample_of(out, "retention_removed_rows_total", "what", retained[what], (uint64_t)rl_store_removed_rows(store, what));
  return 0;
}

/* --- HTTP -------------------------------------------------------------------------------------------------------------- */

static void print_requests(FILE *out, const rl_metrics *metrics) {
  family(out, "http_requests_total", "counter", "Requests answered, by route and status.");
  for (int route = -1; route < 0 || rl_routes[route].method != NULL; route++)
    for (int status = 0; status == 0 || rl_metrics_statuses[status - 1] != 0; status++) {
      uint64_t count = rl_metrics_requests(metrics, route, status);
      char labels[LABELS_SIZE] = "", code[16] = "other";
      if (count == 0) continue;
      if (rl_metrics_statuses[status] != 0) snprintf(code, sizeof code, "%d", rl_metrics_statuses[status]);
      label(labels, "route", route < 0 ? "none" : rl_routes[route].operation);
      label(labels, "status", code);
      sample(out, "http_requests_total", labels, count);
    }
}

static void print_http(FILE *out, rl_server *server) {
  gauge(out, "http_connections", "Open connections.", rl_connections_open(server->connections));
  gauge(out, "http_requests_active", "Requests being answered, event streams among them.", rl_metrics_active(server->metrics));
  gauge(out, "event_listeners", "Open event streams.", rl_events_listeners(server->events));
  gauge(out, "sessions", "Sessions of the page that are logged in.", rl_sessions_count(server->sessions, rl_monotonic_ns()));
  print_requests(out, server->metrics);
  family(out, "http_request_duration_seconds", "histogram", "Time from a request's headers to the end of its answer.");
  histogram(out, "http_request_duration_seconds", "", rl_metrics_bounds_s, rl_metrics_durations(server->metrics));
}

static int print(FILE *out, rl_server *server, rl_error *err) {
  char labels[LABELS_SIZE] = "";
  rl_job_counts counts;
  if (rl_queue_count(server->jobs, &counts, err) < 0) return -1;
  family(out, "build_info", "gauge", "The program's version and commit.");
  label(labels, "version", RL_VERSION);
  label(labels, "commit", RL_COMMIT);
  sample(out, "build_info", labels, 1);
  print_waiting(out, &counts, server->config->queue_limit);
  print_jobs(out, rl_queue_statistics(server->jobs));
  if (print_devices(out, server->supervisor, err) < 0 || print_store(out, server->store, err) < 0) return -1;
  print_http(out, server);
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
