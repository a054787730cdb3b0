/* What jobs measured: results, kernels, timeline, comparison, history, ceilings. */
#include <string.h>

#include "api/internal.h"
#include "base/clock.h"

enum {
  KERNELS_DEFAULT = 200,
  KERNELS_MOST = 2000,
  TIMELINE_DEFAULT = 10000,
  TIMELINE_MOST = 200000,
  HISTORY_DEFAULT = 1000,
  HISTORY_MOST = 10000
};
#define LATEST 9007199254740992.0 /* 2^53 */

typedef struct kernels_query {
  int64_t limit, run, most_metrics; /* run 0: all; most_metrics -1: any */
  char cursor[RL_CURSOR_SIZE];
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
static const char *const formats[] = {"json", "chrome", NULL};

const rl_field rl_kernels_query[] = {
    RL_FIELD(kernels_query, pass, RL_FIELD_CHOICE, .names = rl_pass_names, .summary = "Only what this pass saw"),
    RL_FIELD(kernels_query, run, RL_FIELD_INT, .minimum = 1, .maximum = LATEST, .summary = "Only this run"),
    RL_FIELD(kernels_query, most_metrics, RL_FIELD_INT, .minimum = 0, .maximum = LATEST,
             .summary = "A kernel with more metrics comes without them"),
    RL_FIELD(kernels_query, limit, RL_FIELD_INT, .minimum = 1, .maximum = KERNELS_MOST, .summary = "Most items of a page"),
    RL_FIELD(kernels_query, cursor, RL_FIELD_TEXT, .summary = "next_cursor of the page before"),
    {0}};
const rl_field rl_timeline_query[] = {
    RL_FIELD(timeline_query, run, RL_FIELD_INT, .minimum = 1, .maximum = LATEST, .summary = "Only this run"),
    RL_FIELD(timeline_query, from, RL_FIELD_INT, .minimum = 0, .maximum = LATEST,
             .summary = "Nanoseconds since the start of the trace; what ends later is listed"),
    RL_FIELD(timeline_query, to, RL_FIELD_INT, .minimum = 0, .maximum = LATEST,
             .summary = "Nanoseconds since the start of the trace; what starts earlier is listed"),
    RL_FIELD(timeline_query, limit, RL_FIELD_INT, .minimum = 1, .maximum = TIMELINE_MOST, .summary = "Most items"),
    RL_FIELD(timeline_query, format, RL_FIELD_CHOICE, .names = formats,
             .summary = "chrome: trace events for Perfetto and chrome://tracing; default json"),
    {0}};
const rl_field rl_history_query[] = {
    RL_FIELD(history_query, metric, RL_FIELD_TEXT, .required = true,
             .summary = "The number to follow: epoch_ms_median, images_per_s, a measurement's name"),
    RL_FIELD(history_query, workload, RL_FIELD_TEXT, .summary = "Only runs of this workload"),
    RL_FIELD(history_query, device, RL_FIELD_TEXT, .summary = "Only runs on this device"),
    RL_FIELD(history_query, like, RL_FIELD_INT, .minimum = 1, .maximum = LATEST,
             .summary = "Only runs of the same workload, variant, parameters and device as this run"),
    RL_FIELD(history_query, from, RL_FIELD_TEXT, .summary = "RFC 3339 instant; not before it"),
    RL_FIELD(history_query, to, RL_FIELD_TEXT, .summary = "RFC 3339 instant; before it"),
    RL_FIELD(history_query, limit, RL_FIELD_INT, .minimum = 1, .maximum = HISTORY_MOST, .summary = "Most items, the newest"),
    {0}};

const rl_field rl_ceilings_query[] = {RL_FIELD(ceilings_query, device, RL_FIELD_TEXT, .summary = "Only this device"), {0}};

static rl_binding integer(const char *name, int64_t value, bool given) {
  return (rl_binding){name, given ? RL_BIND_INT : RL_BIND_NULL, .integer = value};
}

static rl_binding text(const char *name, const char *value) {
  return (rl_binding){name, value != NULL && value[0] != '\0' ? RL_BIND_TEXT : RL_BIND_NULL, .text = value};
}

int rl_handle_results(rl_call *call, rl_error *err) {
  rl_store *store = call->server->store;
  rl_auto(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  rl_binding job = integer(":job", call->id, true);
  rl_job_state state;
  const char *json;
  char etag[RL_ETAG_SIZE];
  /* The state first: results read after a final state don't change any more. */
  if (rl_store_job_state(store, call->id, &state, err) < 0) return -1;
  if (rl_store_query(store, RL_QUERY_RESULTS, &job, 1, &cursor, err) < 0) return -1;
  int rc = rl_cursor_next(cursor, &json, err);
  if (rc < 0) return -1;
  if (rc == 0) return rl_fail(err, RL_HTTP, 404, "There is no job %lld.", (long long)call->id);
  bool finished = state == RL_JOB_COMPLETED || state == RL_JOB_FAILED || state == RL_JOB_CANCELLED;
  rl_etag_of(json, strlen(json), etag);
  bool same = finished && rl_etag_matches(rl_call_header(call, "If-None-Match"), etag);
  struct MHD_Response *response = same ? rl_response_empty() : rl_response_text(strdup(json), strlen(json), "application/json");
  if (response != NULL && finished) {
    rl_header(response, "ETag", etag);
    rl_header(response, "Cache-Control", "private, no-cache");
  }
  return rl_reply(call, same ? 304 : 200, response, err);
}

/* Rows of a job that exists; an unknown one is a 404. */
static int query_job(rl_call *call, rl_query query, const rl_binding *bindings, int count, rl_cursor **cursor, rl_error *err) {
  rl_job_state state;
  if (rl_store_job_state(call->server->store, call->id, &state, err) < 0) return -1;
  return rl_store_query(call->server->store, query, bindings, count, cursor, err);
}

static int reply_job_rows(rl_call *call, rl_query query, const rl_binding *bindings, int count, int64_t limit, char letter,
                          rl_error *err) {
  rl_cursor *cursor;
  if (query_job(call, query, bindings, count, &cursor, err) < 0) return -1;
  return rl_reply_rows(call, cursor, limit, letter, err);
}

int rl_handle_kernels(rl_call *call, rl_error *err) {
  kernels_query query = {.limit = KERNELS_DEFAULT, .pass = -1, .most_metrics = -1};
  int64_t after = 0;
  if (rl_call_query(call, &query, sizeof query, err) < 0) return -1;
  if (query.cursor[0] != '\0' && !rl_page_cursor_parse('k', query.cursor, &after))
    return rl_call_bad_parameter(call, err, "cursor", "is not a next_cursor of this list");
  rl_binding bindings[] = {
      integer(":job", call->id, true),           text(":pass", query.pass >= 0 ? rl_pass_names[query.pass] : NULL),
      integer(":run", query.run, query.run > 0), integer(":most_metrics", query.most_metrics, query.most_metrics >= 0),
      integer(":after", after, after > 0),       integer(":limit", query.limit + 1, true)};
  return reply_job_rows(call, RL_QUERY_KERNELS, bindings, 6, query.limit, 'k', err);
}

int rl_handle_timeline(rl_call *call, rl_error *err) {
  timeline_query query = {.from = -1, .to = -1, .limit = TIMELINE_DEFAULT};
  if (rl_call_query(call, &query, sizeof query, err) < 0) return -1;
  if (query.from >= 0 && query.to >= 0 && query.to < query.from)
    return rl_call_bad_parameter(call, err, "to", "must not be less than from");
  rl_binding bindings[] = {integer(":job", call->id, true), integer(":run", query.run, query.run > 0),
                           integer(":from", query.from, query.from >= 0), integer(":to", query.to, query.to >= 0),
                           integer(":limit", query.limit + 1, true)};
  bool chrome = query.format == FORMAT_CHROME;
  rl_cursor *cursor;
  if (query_job(call, chrome ? RL_QUERY_TRACE : RL_QUERY_TIMELINE, bindings, 5, &cursor, err) < 0) return -1;
  return chrome ? rl_reply_trace(call, cursor, query.limit, err) : rl_reply_rows(call, cursor, query.limit, 0, err);
}

int rl_handle_comparison(rl_call *call, rl_error *err) {
  rl_binding job = integer(":job", call->id, true);
  return reply_job_rows(call, RL_QUERY_COMPARISON, &job, 1, 0, 0, err);
}

int rl_handle_history(rl_call *call, rl_error *err) {
  history_query query = {.limit = HISTORY_DEFAULT};
  int64_t from = 0, to = 0;
  rl_cursor *cursor;
  if (rl_call_query(call, &query, sizeof query, err) < 0) return -1;
  if (query.metric[0] == '\0') return rl_call_bad_parameter(call, err, "metric", "must not be empty");
  if (query.from[0] != '\0' && rl_call_instant(call, "from", query.from, &from, err) < 0) return -1;
  if (query.to[0] != '\0' && rl_call_instant(call, "to", query.to, &to, err) < 0) return -1;
  rl_binding bindings[] = {text(":metric", query.metric),
                           text(":workload", query.workload),
                           text(":device", query.device),
                           integer(":like", query.like, query.like > 0),
                           integer(":from", from, query.from[0] != '\0'),
                           integer(":to", to, query.to[0] != '\0'),
                           integer(":limit", query.limit + 1, true)};
  if (rl_store_query(call->server->store, RL_QUERY_HISTORY, bindings, 7, &cursor, err) < 0) return -1;
  return rl_reply_rows(call, cursor, query.limit, 0, err);
}

int rl_handle_ceilings(rl_call *call, rl_error *err) {
  ceilings_query query = {0};
  rl_cursor *cursor;
  if (rl_call_query(call, &query, sizeof query, err) < 0) return -1;
  rl_binding device = text(":device", query.device);
  if (rl_store_query(call->server->store, RL_QUERY_CEILINGS, &device, 1, &cursor, err) < 0) return -1;
  return rl_reply_rows(call, cursor, 0, 0, err);
}
