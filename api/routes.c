/* The table of all routes. A path is matched against each pattern in order. */
#include "api/routes.h"

#include <stdio.h>
#include <string.h>

#include "api/handlers.h"
#include "api/http_syntax.h"

enum { LOGIN_BODY_BYTES = 4096, BASELINE_BODY_BYTES = 4096, LABELS_BODY_BYTES = 4096 };

const rl_route rl_routes[] = {
    {"POST", "/jobs", "submitJob", "Submit a job", rl_handle_submit_job, .body_limit = RL_BODY_CONFIGURED,
     .pool = RL_POOL_SUBMIT},
    {"POST", "/imports", "importTrace", "Import a trace that another profiler recorded, as a job", rl_handle_import_trace,
     .body_limit = RL_BODY_UPLOAD, .query = rl_import_trace_query, .pool = RL_POOL_UPLOAD},
    {"GET", "/jobs", "listJobs", "List jobs, newest first", rl_handle_list_jobs, .query = rl_list_jobs_query,
     .cached_by = RL_CACHED_BY_LISTS, .pool = RL_POOL_READ},
    {"GET", "/jobs/{id}", "getJob", "Get a job", rl_handle_get_job, .cached_by = RL_CACHED_BY_JOB, .pool = RL_POOL_READ},
    {"PATCH", "/jobs/{id}", "labelJob", "Change a job's name and tags", rl_handle_label_job, .body_limit = LABELS_BODY_BYTES,
     .pool = RL_POOL_CONTROL},
    {"DELETE", "/jobs/{id}", "cancelJob", "Cancel a queued or running job", rl_handle_cancel_job, .pool = RL_POOL_CONTROL},
    {"GET", "/jobs/{id}/source", "getSource", "Get the kernel that a source job posted", rl_handle_get_job_source,
     .cached_by = RL_CACHED_BY_JOB, .pool = RL_POOL_READ},
    {"GET", "/jobs/{id}/events", "streamEvents", "Stream a job's events as server-sent events", rl_handle_stream_job_events,
     .pool = RL_POOL_CONTROL},
    {"GET", "/jobs/{id}/results", "getResults", "Get everything that a job's runs measured", rl_handle_get_job_results,
     .cached_by = RL_CACHED_BY_JOB, .pool = RL_POOL_READ},
    {"GET", "/jobs/{id}/kernels", "listKernels", "List a job's kernels with their metrics", rl_handle_list_job_kernels,
     .query = rl_list_job_kernels_query, .cached_by = RL_CACHED_BY_JOB, .pool = RL_POOL_READ,
     .is_heavy = rl_job_kernels_are_heavy},
    {"GET", "/jobs/{id}/timeline", "getTimeline", "Get a job's activity in a time window", rl_handle_get_job_timeline,
     .query = rl_get_job_timeline_query, .cached_by = RL_CACHED_BY_JOB, .pool = RL_POOL_READ,
     .is_heavy = rl_job_timeline_is_heavy},
    {"GET", "/jobs/{id}/export", "exportJob", "Get a run's trace, report or measurements as a file for another tool",
     rl_handle_export_job, .query = rl_export_job_query, .pool = RL_POOL_HEAVY},
    {"GET", "/jobs/{id}/comparison", "getComparison", "Compare a job's fp32 run with its other runs",
     rl_handle_get_job_comparison, .cached_by = RL_CACHED_BY_JOB, .pool = RL_POOL_READ},
    {"GET", "/history", "getHistory", "Get one metric over all runs", rl_handle_get_metric_history,
     .query = rl_get_metric_history_query, .cached_by = RL_CACHED_BY_LISTS, .pool = RL_POOL_READ,
     .is_heavy = rl_metric_history_is_heavy},
    {"GET", "/runs/{id}/report", "getReport", "Get the report of a run's kernels: sections, findings and instructions",
     rl_handle_get_run_report, .query = rl_get_run_report_query, .cached_by = RL_CACHED_BY_RUN, .pool = RL_POOL_READ,
     .is_heavy = rl_run_report_is_heavy},
    {"GET", "/runs/{id}/timeline/findings", "getTimelineFindings",
     "Get the classes of a run's time, the causes of idle time, and findings", rl_handle_get_timeline_findings,
     .cached_by = RL_CACHED_BY_RUN, .pool = RL_POOL_HEAVY},
    {"GET", "/runs/{id}/timeline/lanes", "getTimelineLanes",
     "Get a run's timeline as lanes, with events merged to the width of a drawing", rl_handle_get_timeline_lanes,
     .query = rl_get_timeline_lanes_query, .cached_by = RL_CACHED_BY_RUN, .pool = RL_POOL_HEAVY},
    {"GET", "/runs/{id}/timeline/statistics", "getTimelineStatistics",
     "Get the busy time of each lane and the events of each name in a time window", rl_handle_get_timeline_statistics,
     .query = rl_get_timeline_statistics_query, .cached_by = RL_CACHED_BY_RUN, .pool = RL_POOL_HEAVY},
    {"GET", "/runs/{id}/timeline/search", "searchTimeline", "Find the events of a run's timeline by their names",
     rl_handle_search_timeline, .query = rl_search_timeline_query, .cached_by = RL_CACHED_BY_RUN, .pool = RL_POOL_HEAVY},
    {"GET", "/compare", "compareRuns", "Compare the measurements and reports of two runs", rl_handle_compare_runs,
     .query = rl_compare_runs_query, .cached_by = RL_CACHED_BY_RUNS, .pool = RL_POOL_READ,
     .is_heavy = rl_runs_comparison_is_heavy},
    {"GET", "/compare/timeline", "compareTimelines", "Compare the time classes, operations and idle times of two runs",
     rl_handle_compare_timelines, .query = rl_compare_timelines_query, .cached_by = RL_CACHED_BY_RUNS, .pool = RL_POOL_HEAVY},
    {"GET", "/suites", "listSuites", "List the regression suites", rl_handle_list_suites,
     .cached_by = RL_CACHED_BY_SUITES_AND_LISTS, .pool = RL_POOL_READ},
    {"GET", "/suites/{name}", "getSuite", "Get a regression suite with its definition", rl_handle_get_suite,
     .cached_by = RL_CACHED_BY_SUITES_AND_LISTS, .pool = RL_POOL_READ},
    {"POST", "/suites/{name}/runs", "startSuiteRun", "Run a regression suite", rl_handle_start_suite_run,
     .body_limit = RL_BODY_CONFIGURED, .pool = RL_POOL_SUBMIT},
    {"GET", "/suites/{name}/runs", "listSuiteRuns", "List the runs of a suite, newest first", rl_handle_list_suite_runs,
     .query = rl_list_suite_runs_query, .cached_by = RL_CACHED_BY_SUITES, .pool = RL_POOL_READ},
    {"POST", "/suites/{name}/baselines", "addBaseline", "Make the results of a suite run a named baseline",
     rl_handle_add_baseline, .body_limit = BASELINE_BODY_BYTES, .pool = RL_POOL_CONTROL},
    {"GET", "/suites/{name}/baselines", "listBaselines", "List the named baselines of a suite", rl_handle_list_baselines,
     .cached_by = RL_CACHED_BY_SUITES, .pool = RL_POOL_READ},
    {"GET", "/suites/{name}/history", "getSuiteHistory", "Get one metric over the runs of a suite", rl_handle_get_suite_history,
     .query = rl_get_suite_history_query, .cached_by = RL_CACHED_BY_SUITES, .pool = RL_POOL_READ},
    {"GET", "/suite-runs/{id}", "getSuiteRun", "Get a suite run with its jobs, values and verdicts", rl_handle_get_suite_run,
     .pool = RL_POOL_READ},
    {"GET", "/suite-runs/{id}/events", "streamSuiteRunEvents", "Stream a suite run's events as server-sent events",
     rl_handle_stream_suite_run_events, .pool = RL_POOL_CONTROL},
    {"DELETE", "/suite-runs/{id}", "cancelSuiteRun", "Cancel a suite run", rl_handle_cancel_suite_run, .pool = RL_POOL_CONTROL},
    {"GET", "/workloads", "listWorkloads", "List the kernels that can be measured and the parameters that each accepts",
     rl_handle_list_workloads},
    {"GET", "/sections", "listSections", "List the report's sections and the metrics of their rows",
     rl_handle_list_report_sections},
    {"GET", "/ceilings", "listCeilings", "List the measured peak bandwidths and arithmetic rates of devices",
     rl_handle_list_ceilings, .query = rl_list_ceilings_query, .cached_by = RL_CACHED_BY_AGED_CEILINGS, .pool = RL_POOL_READ},
    {"GET", "/devices", "listDevices", "List the devices and their states", rl_handle_list_devices, .pool = RL_POOL_READ},
    {"GET", "/healthz", "getHealth", "Check that the daemon answers", rl_handle_get_health, .is_public = true},
    {"GET", "/readyz", "getReadiness", "Check that the daemon can run jobs", rl_handle_get_readiness, .is_public = true,
     .pool = RL_POOL_CONTROL},
    {"GET", "/metrics", "getMetrics", "Get Prometheus metrics", rl_handle_get_prometheus_metrics, .pool = RL_POOL_CONTROL},
    {"GET", "/openapi.json", "getOpenapi", "Get this API description", rl_handle_get_openapi, .cached_by = RL_CACHED_BY_PROGRAM,
     .pool = RL_POOL_READ},
    {"POST", "/login", "logIn", "Exchange a token for a session cookie", rl_handle_log_in, .body_limit = LOGIN_BODY_BYTES,
     .is_public = true, .pool = RL_POOL_CONTROL},
    {"POST", "/logout", "logOut", "End the session", rl_handle_log_out, .is_public = true},
    {"GET", "/{file}", "getFile", "Get a file of the web page", rl_handle_get_web_file, .is_public = true, .ignores_query = true},
    {0},
};

/* Copies a path segment that stands for {name}. Returns false if the segment can't be the name of a suite. */
static bool read_name(const char *segment, size_t length, char name[RL_PATH_NAME_SIZE]) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
  if (length == 0 || length >= RL_PATH_NAME_SIZE || strspn(segment, letters) < length || strchr("_-", segment[0]) != NULL)
    return false;
  memcpy(name, segment, length);
  name[length] = '\0';
  return true;
}

static bool read_id(const char *segment, size_t length, int64_t *id) {
  char text[20];
  if (length == 0 || length >= sizeof text) return false;
  memcpy(text, segment, length);
  text[length] = '\0';
  return rl_decimal_parse(text, id);
}

/* Returns true when the path matches the pattern, in which {id} stands for a decimal number and {name} for a name. */
static bool path_matches(const char *pattern, const char *path, rl_path_values *values) {
  const char *placeholder = strchr(pattern, '{');
  if (placeholder == NULL) return strcmp(pattern, path) == 0;
  size_t prefix = (size_t)(placeholder - pattern);
  if (strncmp(pattern, path, prefix) != 0) return false;
  const char *segment = path + prefix, *rest = strchr(placeholder, '}') + 1;
  size_t length = strcspn(segment, "/");
  if (strcmp(segment + length, rest) != 0) return false;
  return placeholder[1] == 'n' ? read_name(segment, length, values->name) : read_id(segment, length, &values->id);
}

void rl_allow_header_append(char *allow, size_t allow_size, const char *method) {
  size_t used = strlen(allow);
  snprintf(allow + used, allow_size - used, "%s%s", used > 0 ? ", " : "", method);
}

const rl_route *rl_route_find(const char *method, const char *path, rl_path_values *values, char *allow, size_t allow_size) {
  bool path_found = false;
  allow[0] = '\0';
  if (strcmp(method, "HEAD") == 0) method = "GET";
  for (const rl_route *route = rl_routes; route->method != NULL; route++) {
    if (strcmp(route->path, "/{file}") == 0) return !path_found && strcmp(method, "GET") == 0 ? route : NULL;
    if (!path_matches(route->path, path, values)) continue;
    path_found = true;
    if (strcmp(route->method, method) == 0) return route;
    rl_allow_header_append(allow, allow_size, route->method);
    if (strcmp(route->method, "GET") == 0) rl_allow_header_append(allow, allow_size, "HEAD");
  }
  return NULL;
}
