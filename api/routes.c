/* The route table and what it drives: dispatch, 404, 405 with Allow, HEAD and OPTIONS, who may ask, how large a body is. */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "api/guard.h"
#include "api/internal.h"

enum { LOGIN_BODY = 4096 };

const rl_route rl_routes[] = {
    {"POST", "/jobs", "submitJob", "Accept a job", rl_handle_jobs_submit, .body_limit = RL_BODY_CONFIGURED},
    {"GET", "/jobs", "listJobs", "Jobs, newest first", rl_handle_jobs_list, .query = rl_queue_query},
    {"GET", "/jobs/{id}", "getJob", "One job", rl_handle_job},
    {"DELETE", "/jobs/{id}", "cancelJob", "Cancel a queued or running job", rl_handle_job_cancel},
    {"GET", "/jobs/{id}/source", "getSource", "The kernel that a job posted", rl_handle_job_source},
    {"GET", "/jobs/{id}/events", "streamEvents", "Server-sent events of a job", rl_handle_job_events},
    {"GET", "/jobs/{id}/results", "getResults", "Everything the job's runs measured", rl_handle_results},
    {"GET", "/jobs/{id}/kernels", "listKernels", "Kernels with their metrics", rl_handle_kernels, .query = rl_kernels_query},
    {"GET", "/jobs/{id}/timeline", "getTimeline", "Activity in a window of time", rl_handle_timeline, .query = rl_timeline_query},
    {"GET", "/jobs/{id}/comparison", "getComparison", "FP32 against the job's other runs", rl_handle_comparison},
    {"GET", "/history", "getHistory", "One metric over all runs", rl_handle_history, .query = rl_history_query},
    {"GET", "/runs/{id}/report", "getReport", "Sections, findings and instructions of a run's kernels", rl_handle_report,
     .query = rl_report_query},
    {"GET", "/compare", "compareRuns", "Two runs side by side: numbers and reports", rl_handle_compare,
     .query = rl_compare_query},
    {"GET", "/workloads", "listWorkloads", "The kernels that can be measured, and what each can be asked for",
     rl_handle_workloads},
    {"GET", "/sections", "listSections", "The report's sections and the metrics of their rows", rl_handle_sections},
    {"GET", "/ceilings", "listCeilings", "What devices can do at best", rl_handle_ceilings, .query = rl_ceilings_query},
    {"GET", "/devices", "listDevices", "Devices and what they do", rl_handle_devices},
    {"GET", "/healthz", "getHealth", "The daemon answers", rl_handle_healthz, .open = true},
    {"GET", "/readyz", "getReadiness", "The daemon can do jobs", rl_handle_readyz, .open = true},
    {"GET", "/metrics", "getMetrics", "Prometheus metrics", rl_handle_metrics},
    {"GET", "/openapi.json", "getOpenapi", "This API's description", rl_handle_openapi},
    {"POST", "/login", "logIn", "Exchange a token for a session cookie", rl_handle_login, .body_limit = LOGIN_BODY, .open = true},
    {"POST", "/logout", "logOut", "End the session", rl_handle_logout, .open = true},
    {"GET", "/{file}", "getFile", "The page's files", rl_handle_file, .open = true, .page = true},
    {0},
};

/* Does path match the pattern? {id} takes one decimal segment. */
static bool matches(const char *pattern, const char *path, int64_t *id) {
  const char *hole = strstr(pattern, "{id}");
  if (hole == NULL) return strcmp(pattern, path) == 0;
  size_t before = (size_t)(hole - pattern);
  if (strncmp(pattern, path, before) != 0) return false;
  const char *rest = path + before;
  size_t digits = strcspn(rest, "/");
  char text[20];
  if (digits == 0 || digits >= sizeof text || strcmp(rest + digits, hole + strlen("{id}")) != 0) return false;
  memcpy(text, rest, digits);
  text[digits] = '\0';
  return rl_decimal_parse(text, id);
}

static void allow_method(char *allow, size_t size, const char *method) {
  size_t used = strlen(allow);
  snprintf(allow + used, size - used, "%s%s", used > 0 ? ", " : "", method);
}

const rl_route *rl_route_find(const char *method, const char *path, int64_t *id, char *allow, size_t allow_size) {
  bool known = false;
  allow[0] = '\0';
  if (strcmp(method, "HEAD") == 0) method = "GET";
  for (const rl_route *route = rl_routes; route->method != NULL; route++) {
    if (strcmp(route->path, "/{file}") == 0) return !known && strcmp(method, "GET") == 0 ? route : NULL;
    if (!matches(route->path, path, id)) continue;
    known = true;
    if (strcmp(route->method, method) == 0) return route;
    allow_method(allow, allow_size, route->method);
    if (strcmp(route->method, "GET") == 0) allow_method(allow, allow_size, "HEAD");
  }
  return NULL;
}

static void refuse(rl_call *call, int status, const char *message) {
  rl_fail(&call->err, RL_HTTP, status, "%s", message);
  call->refused = true;
}

/* The address that the client reached us on, as text; NULL when it can't be told. */
static const char *local_address(const rl_call *call, char *text, size_t size) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(call->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  struct sockaddr_storage address;
  socklen_t length = sizeof address;
  if (info == NULL || getsockname(info->connect_fd, (struct sockaddr *)&address, &length) < 0) return NULL;
  return getnameinfo((struct sockaddr *)&address, length, text, (socklen_t)size, NULL, 0, NI_NUMERICHOST) == 0 ? text : NULL;
}

static enum MHD_Result count_hosts(void *context, enum MHD_ValueKind kind, const char *name, const char *value) {
  (void)kind, (void)value;
  if (strcasecmp(name, "Host") == 0) ++*(int *)context;
  return MHD_YES;
}

static bool asked_from_here(rl_call *call) {
  const rl_config *config = call->server->config;
  char local[64];
  int hosts = 0;
  const char *host = rl_call_header(call, "Host");
  MHD_get_connection_values(call->connection, MHD_HEADER_KIND, count_hosts, &hosts);
  if (hosts != 1 || !rl_guard_host(host, config->address, local_address(call, local, sizeof local), config->allowed_hosts)) {
    refuse(call, 421, "The Host header must name this daemon: loopback, its address, or one of allowed_hosts.");
  } else if (!rl_guard_origin(rl_call_header(call, "Origin"), host) ||
             !rl_guard_fetch_site(rl_call_header(call, "Sec-Fetch-Site"))) {
    refuse(call, 403, "The request comes from a page of another site.");
  }
  return !call->refused;
}

static bool route_found(rl_call *call) {
  bool options = strcmp(call->method, "OPTIONS") == 0;
  call->route = rl_route_find(call->method, call->path, &call->id, call->allow, sizeof call->allow);
  if (call->route != NULL) {
    call->allow[0] = '\0';
    return true;
  }
  if (call->allow[0] == '\0' && rl_file_exists(call->server, call->path)) snprintf(call->allow, sizeof call->allow, "GET, HEAD");
  if (call->allow[0] == '\0') {
    refuse(call, 404, "No route has this path; /openapi.json lists them.");
  } else {
    allow_method(call->allow, sizeof call->allow, "OPTIONS");
    if (!options) refuse(call, 405, "The Allow header lists the methods that this path takes.");
  }
  return false;
}

static const char *too_large(const rl_call *call) {
  return call->body_limit == 0 ? "This route takes no body." : "The body is larger than the limit (body_limit_bytes).";
}

/* What the headers say about the body, before it is read. */
static void check_body(rl_call *call) {
  const char *length = rl_call_header(call, "Content-Length");
  int64_t declared = 0;
  call->body_limit =
      call->route->body_limit == RL_BODY_CONFIGURED ? call->server->config->body_limit_bytes : call->route->body_limit;
  if (length != NULL && (!rl_decimal_parse(length, &declared) || declared > call->body_limit)) refuse(call, 413, too_large(call));
  else if (call->body_limit > 0 && !rl_media_is_json(rl_call_header(call, "Content-Type")))
    refuse(call, 415, "The Content-Type must be application/json.");
}

void rl_call_begin(rl_call *call) {
  if (!asked_from_here(call) || !route_found(call)) return;
  if (rl_call_authorize(call, &call->err) < 0) call->refused = true;
  else check_body(call);
}

void rl_call_receive(rl_call *call, const char *data, size_t size) {
  if (!call->refused && call->length + size > (size_t)call->body_limit) refuse(call, 413, too_large(call));
  if (call->refused) return;
  if (call->length + size + 1 > call->capacity) {
    size_t capacity = (call->length + size + 1) * 2;
    char *grown = realloc(call->body, capacity);
    if (grown == NULL) {
      rl_fail(&call->err, RL_SYS, 0, "out of memory for a body");
      call->refused = true;
      return;
    }
    call->body = grown;
    call->capacity = capacity;
  }
  memcpy(call->body + call->length, data, size);
  call->length += size;
  call->body[call->length] = '\0';
}

static int answer_options(rl_call *call, rl_error *err) {
  struct MHD_Response *response = rl_response_empty();
  if (response != NULL) rl_header(response, "Allow", call->allow);
  return rl_reply(call, 204, response, err);
}

static int answer(rl_call *call, rl_error *err) {
  char nothing = 0;
  if (call->refused) return -1; /* err is the call's own, and says why */
  if (call->route == NULL) return answer_options(call, err);
  if (call->route->query == NULL && !call->route->page && rl_call_query(call, &nothing, 0, err) < 0) return -1;
  return call->route->handle(call, err);
}

enum MHD_Result rl_call_answer(rl_call *call) {
  rl_error err = {0};
  if (answer(call, &call->err) == 0) return MHD_YES;
  if (!call->answered && rl_reply_problem(call, &err) == 0) return MHD_YES;
  return MHD_NO; /* closes the connection: memory is out, there is nothing left to say */
}

void rl_call_free(rl_call *call) {
  if (call == NULL) return;
  free(call->body);
  free(call);
}
