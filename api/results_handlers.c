/* Routes that read measurements: results, kernels, timeline, comparison, history, ceilings. */
#include <string.h>

#include "api/handlers.h"
#include "api/http_syntax.h"
#include "api/json_rows.h"
#include "api/reply.h"
#include "api/server_internal.h"
#include "base/clock.h"

enum {
  DEFAULT_KERNELS = 200,
  MAX_KERNELS = 2000,
  DEFAULT_TIMELINE = 10000,
  MAX_TIMELINE = 200000,
  DEFAULT_HISTORY = 1000,
  MAX_HISTORY = 10000
};
#define MAX_NUMBER 9007199254740992.0 /* 2^53: up to here whole numbers are exact as JSON numbers (doubles) */

typedef struct kernels_query {
  int64_t limit, run, most_metrics; /* run 0: all; most_metrics -1: any */
  char cursor[RL_PAGE_CURSOR_SIZE];
  int pass; /* -1: all */
} kernels_query;

typedef struct timeline_query {
  int64_t run, from, to, limit;
  int format;
} timeline_query;

typedef struct history_query {
  char metric[RL_NAME_SIZE], workload[32], device[16], from[RL_INSTANT_SIZE], to[RL_INSTANT_SIZE];
  int64_t like, limit;
} history_query;

typedef struct ceilings_query {
  char device[16];
} ceilings_query;

enum { FORMAT_JSON, FORMAT_CHROME };
static const char *const format_names[] = {"json", "chrome", NULL};

const rl_field rl_list_kernels_query[] = {
    RL_FIELD(kernels_query, pass, RL_FIELD_CHOICE, .names = rl_pass_names, .summary = "Only kernels recorded by this pass"),
    RL_FIELD(kernels_query, run, RL_FIELD_INT, .minimum = 1, .maximum = MAX_NUMBER, .summary = "Only kernels of this run"),
    RL_FIELD(kernels_query, most_metrics, RL_FIELD_INT, .minimum = 0, .maximum = MAX_NUMBER,
             .summary = "Kernels with more metrics than this are listed without them"),
    RL_FIELD(kernels_query, limit, RL_FIELD_INT, .minimum = 1, .maximum = MAX_KERNELS,
             .summary = "Maximum number of items in a page"),
    RL_FIELD(kernels_query, cursor, RL_FIELD_TEXT, .summary = "next_cursor of the previous page"),
    {0}};
const rl_field rl_get_timeline_query[] = {
    RL_FIELD(timeline_query, run, RL_FIELD_INT, .minimum = 1, .maximum = MAX_NUMBER, .summary = "Only activities of this run"),
    RL_FIELD(timeline_query, from, RL_FIELD_INT, .minimum = 0, .maximum = MAX_NUMBER,
             .summary = "Start of the window in ns since the start of the trace: only activities that end later"),
    RL_FIELD(timeline_query, to, RL_FIELD_INT, .minimum = 0, .maximum = MAX_NUMBER,
             .summary = "End of the window in ns since the start of the trace: only activities that start earlier"),
    RL_FIELD(timeline_query, limit, RL_FIELD_INT, .minimum = 1, .maximum = MAX_TIMELINE, .summary = "Maximum number of items"),
    RL_FIELD(timeline_query, format, RL_FIELD_CHOICE, .names = format_names,
             .summary = "chrome: trace events for Perfetto and chrome://tracing; default json"),
    {0}};
const rl_field rl_get_history_query[] = {
    RL_FIELD(history_query, metric, RL_FIELD_TEXT, .required = true,
             .summary = "epoch_ms_median, images_per_s, or the name of a measurement"),
    RL_FIELD(history_query, workload, RL_FIELD_TEXT, .summary = "Only runs of this workload"),
    RL_FIELD(history_query, device, RL_FIELD_TEXT, .summary = "Only runs on this device"),
    RL_FIELD(history_query, like, RL_FIELD_INT, .minimum = 1, .maximum = MAX_NUMBER,
             .summary = "Only runs with the workload, variant, parameters and device of this run"),
    RL_FIELD(history_query, from, RL_FIELD_TEXT, .summary = "Only runs at or after this RFC 3339 instant"),
    RL_FIELD(history_query, to, RL_FIELD_TEXT, .summary = "Only runs before this RFC 3339 instant"),
    RL_FIELD(history_query, limit, RL_FIELD_INT, .minimum = 1, .maximum = MAX_HISTORY,
             .summary = "Maximum number of items; the newest are kept"),
    {0}};

const rl_field rl_list_ceilings_query[] = {
    RL_FIELD(ceilings_query, device, RL_FIELD_TEXT, .summary = "Only ceilings of this device"), {0}};

static rl_binding bind_integer(const char *name, int64_t value, bool given) {
  return (rl_binding){name, given ? RL_BIND_INT : RL_BIND_NULL, .integer = value};
}

static rl_binding bind_text(const char *name, const char *value) {
  return (rl_binding){name, value != NULL && value[0] != '\0' ? RL_BIND_TEXT : RL_BIND_NULL, .text = value};
}

static int reply_final_results(rl_call *call, const char *json, rl_error *err) {
  char etag[RL_ETAG_SIZE];
  rl_etag_make(json, strlen(json), etag);
  bool unchanged = rl_etag_matches(rl_call_header(call, "If-None-Match"), etag);
  struct MHD_Response *response =
      unchanged ? rl_response_empty() : rl_response_text(strdup(json), strlen(json), "application/json");
  if (response != NULL) {
    rl_response_add_header(response, "ETag", etag);
    rl_response_add_header(response, "Cache-Control", "private, no-cache");
  }
  return rl_reply(call, unchanged ? 304 : 200, response, err);
}

int rl_handle_get_results(rl_call *call, rl_error *err) {
  rl_store *store = call->server->store;
  rl_auto(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  rl_binding job = bind_integer(":job", call->id, true);
  rl_job_state state;
  const char *json;
  /* The state is read first: results read after a final state don't change any more. */
  if (rl_store_job_state(store, call->id, &state, err) < 0) return -1;
  if (rl_store_query(store, RL_QUERY_RESULTS, &job, 1, &cursor, err) < 0) return -1;
  int found = rl_cursor_next(cursor, &json, err);
  if (found < 0) return -1;
  if (found == 0) return rl_fail(err, RL_HTTP, 404, "There is no job %lld.", (long long)call->id);
  return rl_job_is_final(state) ? reply_final_results(call, json, err)
                                : rl_reply_text(call, 200, strdup(json), "application/json", err);
}

/* Queries rows of the call's job. RL_HTTP 404 when there is no such job. */
static int query_job(rl_call *call, rl_query query, const rl_binding *bindings, int count, rl_cursor **cursor, rl_error *err) {
  rl_job_state state;
  if (rl_store_job_state(call->server->store, call->id, &state, err) < 0) return -1;
  return rl_store_query(call->server->store, query, bindings, count, cursor, err);
}

static int reply_job_rows(rl_call *call, rl_query query, const rl_binding *bindings, int count, int64_t limit, char list_letter,
                          rl_error *err) {
  rl_cursor *cursor;
  if (query_job(call, query, bindings, count, &cursor, err) < 0) return -1;
  return rl_reply_rows(call, cursor, limit, list_letter, err);
}

int rl_handle_list_kernels(rl_call *call, rl_error *err) {
  kernels_query query = {.limit = DEFAULT_KERNELS, .pass = -1, .most_metrics = -1};
  int64_t after = 0;
  if (rl_call_parse_query(call, &query, sizeof query, err) < 0) return -1;
  if (query.cursor[0] != '\0' && !rl_page_cursor_parse('k', query.cursor, &after))
    return rl_call_fail_parameter(call, err, "cursor", "is not a next_cursor of this list");
  rl_binding bindings[] = {
      bind_integer(":job", call->id, true),           bind_text(":pass", query.pass >= 0 ? rl_pass_names[query.pass] : NULL),
      bind_integer(":run", query.run, query.run > 0), bind_integer(":most_metrics", query.most_metrics, query.most_metrics >= 0),
      bind_integer(":after", after, after > 0),       bind_integer(":limit", query.limit + 1, true)};
  return reply_job_rows(call, RL_QUERY_KERNELS, bindings, 6, query.limit, 'k', err);
}

int rl_handle_get_timeline(rl_call *call, rl_error *err) {
  timeline_query query = {.from = -1, .to = -1, .limit = DEFAULT_TIMELINE};
  if (rl_call_parse_query(call, &query, sizeof query, err) < 0) return -1;
  if (query.from >= 0 && query.to >= 0 && query.to < query.from)
    return rl_call_fail_parameter(call, err, "to", "must not be less than from");
  rl_binding bindings[] = {bind_integer(":job", call->id, true), bind_integer(":run", query.run, query.run > 0),
                           bind_integer(":from", query.from, query.from >= 0), bind_integer(":to", query.to, query.to >= 0),
                           bind_integer(":limit", query.limit + 1, true)};
  bool chrome = query.format == FORMAT_CHROME;
  rl_cursor *cursor;
  if (query_job(call, chrome ? RL_QUERY_TRACE : RL_QUERY_TIMELINE, bindings, 5, &cursor, err) < 0) return -1;
  return chrome ? rl_reply_trace(call, cursor, query.limit, err) : rl_reply_rows(call, cursor, query.limit, 0, err);
}

int rl_handle_get_comparison(rl_call *call, rl_error *err) {
  rl_binding job = bind_integer(":job", call->id, true);
  return reply_job_rows(call, RL_QUERY_COMPARISON, &job, 1, 0, 0, err);
}

/* 404 when the run that a query parameter names does not exist. */
static int require_run(rl_call *call, const char *name, int64_t run_id, rl_error *err) {
  bool found;
  if (rl_store_has_run(call->server->store, run_id, &found, err) < 0) return -1;
  if (found) return 0;
  rl_call_fail_parameter(call, err, name, "names no run");
  err->domain = RL_HTTP;
  err->code = 404;
  return -1;
}

int rl_handle_get_history(rl_call *call, rl_error *err) {
  history_query query = {.limit = DEFAULT_HISTORY};
  int64_t from = 0, to = 0;
  rl_cursor *cursor;
  if (rl_call_parse_query(call, &query, sizeof query, err) < 0) return -1;
  if (query.metric[0] == '\0') return rl_call_fail_parameter(call, err, "metric", "must not be empty");
  if (query.from[0] != '\0' && rl_call_parse_instant(call, "from", query.from, &from, err) < 0) return -1;
  if (query.to[0] != '\0' && rl_call_parse_instant(call, "to", query.to, &to, err) < 0) return -1;
  if (query.like > 0 && require_run(call, "like", query.like, err) < 0) return -1;
  rl_binding bindings[] = {bind_text(":metric", query.metric),
                           bind_text(":workload", query.workload),
                           bind_text(":device", query.device),
                           bind_integer(":like", query.like, query.like > 0),
                           bind_integer(":from", from, query.from[0] != '\0'),
                           bind_integer(":to", to, query.to[0] != '\0'),
                           bind_integer(":limit", query.limit + 1, true)};
  if (rl_store_query(call->server->store, RL_QUERY_HISTORY, bindings, 7, &cursor, err) < 0) return -1;
  return rl_reply_rows(call, cursor, query.limit, 0, err);
}

int rl_handle_list_ceilings(rl_call *call, rl_error *err) {
  ceilings_query query = {0};
  rl_cursor *cursor;
  if (rl_call_parse_query(call, &query, sizeof query, err) < 0) return -1;
  rl_binding device = bind_text(":device", query.device);
  if (rl_store_query(call->server->store, RL_QUERY_CEILINGS, &device, 1, &cursor, err) < 0) return -1;
  return rl_reply_rows(call, cursor, 0, 0, err);
}
