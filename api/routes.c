#include "api/routes.h"

#include <stdio.h>
#include <string.h>

#include "api/handlers.h"
#include "api/http_syntax.h"

enum { LOGIN_BODY_BYTES = 4096 };

const rl_route rl_routes[] = {
    {"POST", "/jobs", "submitJob", "Submit a job", rl_handle_submit_job, .body_limit = RL_BODY_CONFIGURED},
    {"GET", "/jobs", "listJobs", "List jobs, newest first", rl_handle_list_jobs, .query = rl_list_jobs_query},
    {"GET", "/jobs/{id}", "getJob", "Get a job", rl_handle_get_job},
    {"DELETE", "/jobs/{id}", "cancelJob", "Cancel a queued or running job", rl_handle_cancel_job},
    {"GET", "/jobs/{id}/source", "getSource", "Get the kernel that a source job posted", rl_handle_get_source},
    {"GET", "/jobs/{id}/events", "streamEvents", "Stream a job's events as server-sent events", rl_handle_stream_events},
    {"GET", "/jobs/{id}/results", "getResults", "Get everything that a job's runs measured", rl_handle_get_results},
    {"GET", "/jobs/{id}/kernels", "listKernels", "List a job's kernels with their metrics", rl_handle_list_kernels,
     .query = rl_list_kernels_query},
    {"GET", "/jobs/{id}/timeline", "getTimeline", "Get a job's activity in a time window", rl_handle_get_timeline,
     .query = rl_get_timeline_query},
    {"GET", "/jobs/{id}/comparison", "getComparison", "Compare a job's fp32 run with its other runs", rl_handle_get_comparison},
    {"GET", "/history", "getHistory", "Get one metric over all runs", rl_handle_get_history, .query = rl_get_history_query},
    {"GET", "/runs/{id}/report", "getReport", "Get the report of a run's kernels: sections, findings and instructions",
     rl_handle_get_report, .query = rl_get_report_query},
    {"GET", "/compare", "compareRuns", "Compare the measurements and reports of two runs", rl_handle_compare_runs,
     .query = rl_compare_runs_query},
    {"GET", "/workloads", "listWorkloads", "List the kernels that can be measured and the parameters that each accepts",
     rl_handle_list_workloads},
    {"GET", "/sections", "listSections", "List the report's sections and the metrics of their rows", rl_handle_list_sections},
    {"GET", "/ceilings", "listCeilings", "List the measured peak bandwidths and arithmetic rates of devices",
     rl_handle_list_ceilings, .query = rl_list_ceilings_query},
    {"GET", "/devices", "listDevices", "List the devices and their states", rl_handle_list_devices},
    {"GET", "/healthz", "getHealth", "Check that the daemon answers", rl_handle_get_health, .is_public = true},
    {"GET", "/readyz", "getReadiness", "Check that the daemon can run jobs", rl_handle_get_readiness, .is_public = true},
    {"GET", "/metrics", "getMetrics", "Get Prometheus metrics", rl_handle_get_metrics},
    {"GET", "/openapi.json", "getOpenapi", "Get this API description", rl_handle_get_openapi},
    {"POST", "/login", "logIn", "Exchange a token for a session cookie", rl_handle_log_in, .body_limit = LOGIN_BODY_BYTES,
     .is_public = true},
    {"POST", "/logout", "logOut", "End the session", rl_handle_log_out, .is_public = true},
    {"GET", "/{file}", "getFile", "Get a file of the web page", rl_handle_get_file, .is_public = true, .ignores_query = true},
    {0},
};

/* Returns true when path matches the pattern, whose {id} stands for one decimal segment. */
static bool path_matches(const char *pattern, const char *path, int64_t *id) {
  const char *placeholder = strstr(pattern, "{id}");
  if (placeholder == NULL) return strcmp(pattern, path) == 0;
  size_t prefix = (size_t)(placeholder - pattern);
  if (strncmp(pattern, path, prefix) != 0) return false;
  const char *segment = path + prefix;
  size_t digits = strcspn(segment, "/");
  char text[20];
  if (digits == 0 || digits >= sizeof text || strcmp(segment + digits, placeholder + strlen("{id}")) != 0) return false;
  memcpy(text, segment, digits);
  text[digits] = '\0';
  return rl_decimal_parse(text, id);
}

void rl_route_allow_method(char *allow, size_t allow_size, const char *method) {
  size_t used = strlen(allow);
  snprintf(allow + used, allow_size - used, "%s%s", used > 0 ? ", " : "", method);
}

const rl_route *rl_route_find(const char *method, const char *path, int64_t *id, char *allow, size_t allow_size) {
  bool path_found = false;
  allow[0] = '\0';
  if (strcmp(method, "HEAD") == 0) method = "GET";
  for (const rl_route *route = rl_routes; route->method != NULL; route++) {
    if (strcmp(route->path, "/{file}") == 0) return !path_found && strcmp(method, "GET") == 0 ? route : NULL;
    if (!path_matches(route->path, path, id)) continue;
    path_found = true;
    if (strcmp(route->method, method) == 0) return route;
    rl_route_allow_method(allow, allow_size, route->method);
    if (strcmp(route->method, "GET") == 0) rl_route_allow_method(allow, allow_size, "HEAD");
  }
  return NULL;
}
