/* Routes that read measurements: results, kernels, timeline, comparison, history, ceilings. */
#include <stdio.h>
#include <string.h>

#include "api/cached_reply.h"
#include "api/comparison_explanation.h"
#include "api/handlers.h"
#include "api/json_rows.h"
#include "api/reply.h"
#include "api/server_internal.h"
#include "base/clock.h"
#include "base/json_members.h"

enum {
  DEFAULT_KERNEL_ITEMS = 200,
  MAX_KERNEL_ITEMS = 2000,
  DEFAULT_TIMELINE_ITEMS = 10000,
  MAX_TIMELINE_ITEMS = 200000,
  DEFAULT_HISTORY_ITEMS = 1000,
  MAX_HISTORY_ITEMS = 10000
};

typedef struct kernels_query {
  int64_t limit;
  int64_t run;          /* id of the run; 0: kernels of all runs */
  int64_t most_metrics; /* kernels with more metrics are listed without them; -1: no limit */
  char cursor[RL_PAGE_CURSOR_SIZE];
  int pass; /* rl_pass; -1: kernels of all passes */
} kernels_query;

typedef struct timeline_query {
  /* run: id of a run, 0: all runs; from, to: ns since the start of the trace, -1: the client set no limit */
  int64_t run, from, to, limit;
} timeline_query;

typedef struct history_query {
  char metric[RL_NAME_SIZE], workload[32], device[16], from[RL_INSTANT_SIZE], to[RL_INSTANT_SIZE];
  int64_t like, limit; /* like: id of a run; 0: the client named none */
} history_query;

typedef struct ceilings_query {
  char device[16];
} ceilings_query;

const rl_field rl_list_job_kernels_query[] = {
    RL_FIELD(kernels_query, pass, RL_FIELD_CHOICE, .names = rl_pass_names, .summary = "Only kernels recorded by this pass"),
    RL_FIELD(kernels_query, run, RL_FIELD_INT, .minimum = 1, .maximum = RL_JSON_INTEGER_MAX,
             .summary = "Only kernels of this run"),
    RL_FIELD(kernels_query, most_metrics, RL_FIELD_INT, .minimum = 0, .maximum = RL_JSON_INTEGER_MAX,
             .summary = "Kernels with more metrics than this are listed without them"),
    RL_FIELD(kernels_query, limit, RL_FIELD_INT, .minimum = 1, .maximum = MAX_KERNEL_ITEMS,
             .summary = "Maximum number of items in a page"),
    RL_FIELD(kernels_query, cursor, RL_FIELD_TEXT, .summary = "next_cursor of the previous page"),
    {0}};
const rl_field rl_get_job_timeline_query[] = {
    RL_FIELD(timeline_query, run, RL_FIELD_INT, .minimum = 1, .maximum = RL_JSON_INTEGER_MAX,
             .summary = "Only activities of this run"),
    RL_FIELD(timeline_query, from, RL_FIELD_INT, .minimum = 0, .maximum = RL_JSON_INTEGER_MAX,
             .summary = "Start of the window in ns since the start of the trace: only activities that end later"),
    RL_FIELD(timeline_query, to, RL_FIELD_INT, .minimum = 0, .maximum = RL_JSON_INTEGER_MAX,
             .summary = "End of the window in ns since the start of the trace: only activities that start earlier"),
    RL_FIELD(timeline_query, limit, RL_FIELD_INT, .minimum = 1, .maximum = MAX_TIMELINE_ITEMS,
             .summary = "Maximum number of items"),
    {0}};
const rl_field rl_get_metric_history_query[] = {
    RL_FIELD(history_query, metric, RL_FIELD_TEXT, .required = true,
             .summary = "epoch_ms_median, images_per_s, or the name of a measurement"),
    RL_FIELD(history_query, workload, RL_FIELD_TEXT, .summary = "Only runs of this workload"),
    RL_FIELD(history_query, device, RL_FIELD_TEXT, .summary = "Only runs on this device"),
    RL_FIELD(history_query, like, RL_FIELD_INT, .minimum = 1, .maximum = RL_JSON_INTEGER_MAX,
             .summary = "Only runs with the workload, variant, parameters and device of this run"),
    RL_FIELD(history_query, from, RL_FIELD_TEXT, .summary = "Only runs at or after this RFC 3339 instant"),
    RL_FIELD(history_query, to, RL_FIELD_TEXT, .summary = "Only runs before this RFC 3339 instant"),
    RL_FIELD(history_query, limit, RL_FIELD_INT, .minimum = 1, .maximum = MAX_HISTORY_ITEMS,
             .summary = "Maximum number of items; the newest are kept"),
    {0}};

const rl_field rl_list_ceilings_query[] = {
    RL_FIELD(ceilings_query, device, RL_FIELD_TEXT, .summary = "Only ceilings of this device"), {0}};

static rl_binding bind_integer(const char *name, int64_t value, bool is_set) {
  return (rl_binding){name, is_set ? RL_SQL_INTEGER : RL_SQL_NULL, .integer = value};
}

static rl_binding bind_text(const char *name, const char *value) {
  return (rl_binding){name, value != NULL && value[0] != '\0' ? RL_SQL_TEXT : RL_SQL_NULL, .text = value};
}

int rl_handle_get_job_results(rl_http_request *request, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  rl_binding job = bind_integer(":job", request->id, true);
  const char *json;
  if (rl_store_query(request->server->store, RL_QUERY_RESULTS, &job, 1, &cursor, err) < 0) return -1;
  int found = rl_cursor_next(cursor, &json, err);
  if (found < 0) return -1;
  if (found == 0) return rl_fail(err, RL_HTTP, 404, "Job %lld not found.", (long long)request->id);
  return rl_reply_text(request, 200, strdup(json), "application/json", err);
}

/* Replies with rows of the request's job. list_letter: letter that begins the list's page cursors; 0: the list has one page.
 * Fails with RL_HTTP 404 if there is no such job. */
static int reply_job_rows(rl_http_request *request, rl_query query, const rl_binding *bindings, int count, int64_t limit,
                          char list_letter, rl_error *err) {
  rl_job_state state;
  rl_cursor *cursor;
  if (rl_store_job_state(request->server->store, request->id, &state, err) < 0) return -1;
  if (rl_store_query(request->server->store, query, bindings, count, &cursor, err) < 0) return -1;
  return rl_reply_rows(request, cursor, limit, list_letter, err);
}

bool rl_job_kernels_are_heavy(const rl_http_request *request) {
  return rl_http_request_parameter_exceeds(request, "limit", DEFAULT_KERNEL_ITEMS);
}

int rl_handle_list_job_kernels(rl_http_request *request, rl_error *err) {
  kernels_query query = {.limit = DEFAULT_KERNEL_ITEMS, .pass = -1, .most_metrics = -1};
  int64_t after = 0;
  if (rl_http_request_parse_query(request, &query, sizeof query, err) < 0) return -1;
  if (query.cursor[0] != '\0' && !rl_page_cursor_parse('k', query.cursor, &after))
    return rl_http_request_fail_parameter(request, err, "cursor", "is not a next_cursor of this list");
  rl_binding bindings[] = {
      bind_integer(":job", request->id, true),        bind_text(":pass", query.pass >= 0 ? rl_pass_names[query.pass] : NULL),
      bind_integer(":run", query.run, query.run > 0), bind_integer(":most_metrics", query.most_metrics, query.most_metrics >= 0),
      bind_integer(":after", after, after > 0),       bind_integer(":limit", query.limit + 1, true)};
  return reply_job_rows(request, RL_QUERY_KERNELS, bindings, 6, query.limit, 'k', err);
}

bool rl_job_timeline_is_heavy(const rl_http_request *request) {
  return rl_http_request_parameter_exceeds(request, "limit", DEFAULT_TIMELINE_ITEMS);
}

int rl_handle_get_job_timeline(rl_http_request *request, rl_error *err) {
  timeline_query query = {.from = -1, .to = -1, .limit = DEFAULT_TIMELINE_ITEMS};
  if (rl_http_request_parse_query(request, &query, sizeof query, err) < 0) return -1;
  if (query.from >= 0 && query.to >= 0 && query.to < query.from)
    return rl_http_request_fail_parameter(request, err, "to", "must not be less than from");
  rl_binding bindings[] = {bind_integer(":job", request->id, true), bind_integer(":run", query.run, query.run > 0),
                           bind_integer(":from", query.from, query.from >= 0), bind_integer(":to", query.to, query.to >= 0),
                           bind_integer(":limit", query.limit + 1, true)};
  return reply_job_rows(request, RL_QUERY_TIMELINE, bindings, 5, query.limit, 0, err);
}

/* Adds the rows of RL_QUERY_COMPARISON for this job to an array. */
static int read_comparisons(rl_store *store, int64_t job_id, cJSON *array, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  rl_binding job = bind_integer(":job", job_id, true);
  const char *json;
  int found;
  if (rl_store_query(store, RL_QUERY_COMPARISON, &job, 1, &cursor, err) < 0) return -1;
  while ((found = rl_cursor_next(cursor, &json, err)) > 0) cJSON_AddItemToArray(array, cJSON_Parse(json));
  return found;
}

int rl_handle_get_job_comparison(rl_http_request *request, rl_error *err) {
  RL_CLEANUP(rl_json_cleanup) cJSON *document = cJSON_CreateObject();
  cJSON *array = cJSON_AddArrayToObject(document, "items"), *comparison;
  rl_store *store = request->server->store;
  rl_job_state state;
  if (rl_store_job_state(store, request->id, &state, err) < 0) return -1;
  if (read_comparisons(store, request->id, array, err) < 0) return -1;
  cJSON_ArrayForEach (comparison, array)
    if (rl_comparison_add_explanation(store, comparison, err) < 0) return -1;
  return rl_reply_json(request, 200, rl_take_ownership(&document), err);
}

/* Fails with RL_HTTP 404 if there is no such run. name: name of the query parameter that contains the run's id. */
static int require_run(rl_http_request *request, const char *name, int64_t run_id, rl_error *err) {
  bool found;
  if (rl_store_has_run(request->server->store, run_id, &found, err) < 0) return -1;
  if (found) return 0;
  rl_http_request_fail_parameter(request, err, name, "names no run");
  err->domain = RL_HTTP;
  err->code = 404;
  return -1;
}

bool rl_metric_history_is_heavy(const rl_http_request *request) {
  return rl_http_request_parameter_exceeds(request, "limit", DEFAULT_HISTORY_ITEMS);
}

/* Runs with the same configuration have the same history, so requests for them share a cached reply. Returns 1 if the response
 * was set from the cache, 0 if the cache has no reply, -1 if the query failed. */
static int share_reply_of_like_runs(rl_http_request *request, int64_t run_id, rl_error *err) {
  char configuration[24];
  int64_t configuration_id = 0;
  if (rl_store_configuration_of_run(request->server->store, run_id, &configuration_id, err) < 0) return -1;
  snprintf(configuration, sizeof configuration, "%lld", (long long)configuration_id);
  return configuration_id != 0 && rl_cached_reply_share(request, "like", configuration);
}

int rl_handle_get_metric_history(rl_http_request *request, rl_error *err) {
  history_query query = {.limit = DEFAULT_HISTORY_ITEMS};
  int64_t from = 0, to = 0;
  rl_cursor *cursor;
  if (rl_http_request_parse_query(request, &query, sizeof query, err) < 0) return -1;
  if (query.metric[0] == '\0') return rl_http_request_fail_parameter(request, err, "metric", "must not be empty");
  if (query.from[0] != '\0' && rl_http_request_parse_instant(request, "from", query.from, &from, err) < 0) return -1;
  if (query.to[0] != '\0' && rl_http_request_parse_instant(request, "to", query.to, &to, err) < 0) return -1;
  if (query.like > 0 && require_run(request, "like", query.like, err) < 0) return -1;
  int shared = query.like > 0 ? share_reply_of_like_runs(request, query.like, err) : 0;
  if (shared != 0) return shared < 0 ? -1 : 0;
  rl_binding bindings[] = {bind_text(":metric", query.metric),
                           bind_text(":workload", query.workload),
                           bind_text(":device", query.device),
                           bind_integer(":repetitions_of", query.like, query.like > 0),
                           bind_integer(":from", from, query.from[0] != '\0'),
                           bind_integer(":to", to, query.to[0] != '\0'),
                           bind_integer(":limit", query.limit + 1, true)};
  if (rl_store_query(request->server->store, RL_QUERY_HISTORY, bindings, 7, &cursor, err) < 0) return -1;
  return rl_reply_rows(request, cursor, query.limit, 0, err);
}

int rl_handle_list_ceilings(rl_http_request *request, rl_error *err) {
  ceilings_query query = {0};
  rl_cursor *cursor;
  if (rl_http_request_parse_query(request, &query, sizeof query, err) < 0) return -1;
  rl_binding device = bind_text(":device", query.device);
  if (rl_store_query(request->server->store, RL_QUERY_CEILINGS, &device, 1, &cursor, err) < 0) return -1;
  return rl_reply_rows(request, cursor, 0, 0, err);
}
