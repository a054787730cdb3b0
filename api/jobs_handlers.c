/* POST /jobs, GET /jobs, GET, PATCH and DELETE /jobs/{id}, GET /jobs/{id}/source. */
#include <stdio.h>
#include <string.h>

#include "api/handlers.h"
#include "api/json_rows.h"
#include "api/reply.h"
#include "api/server_internal.h"
#include "api/submission.h"
#include "base/json_members.h"
#include "base/sha256.h"
#include "request/labels.h"
#include "request/spec.h"

enum { DEFAULT_PAGE_ITEMS = 50, MAX_PAGE_ITEMS = 500 };

typedef struct jobs_query {
  int64_t limit;
  char cursor[RL_PAGE_CURSOR_SIZE], kind[16], device[16], search[81];
  int state;    /* rl_job_state; -1: jobs in all states */
  int in_suite; /* index into in_suite_names; -1: all jobs */
} jobs_query;

static const char *const in_suite_names[] = {"false", "true", NULL};

const rl_field rl_list_jobs_query[] = {RL_FIELD(jobs_query, limit, RL_FIELD_INT, .minimum = 1, .maximum = MAX_PAGE_ITEMS,
                                                .summary = "Maximum number of items in a page"),
                                       RL_FIELD(jobs_query, cursor, RL_FIELD_TEXT, .summary = "next_cursor of the previous page"),
                                       RL_FIELD(jobs_query, kind, RL_FIELD_TEXT, .summary = "Only jobs of this kind"),
                                       RL_FIELD(jobs_query, state, RL_FIELD_CHOICE, .names = rl_job_state_names,
                                                .summary = "Only jobs in this state; running includes storing"),
                                       RL_FIELD(jobs_query, device, RL_FIELD_TEXT, .summary = "Only jobs on this device"),
                                       RL_FIELD(jobs_query, search, RL_FIELD_TEXT,
                                                .summary = "Only jobs whose request, as stored, contains this text: a name, a "
                                                           "tag, a kernel, an entry. The case of ASCII letters is ignored"),
                                       RL_FIELD(jobs_query, in_suite, RL_FIELD_CHOICE, .names = in_suite_names,
                                                .summary = "true: only jobs that suite runs submitted; false: only other jobs"),
                                       {0}};

int rl_handle_submit_job(rl_http_request *request, rl_error *err) {
  rl_server *server = request->server;
  const char *body = request->body != NULL ? request->body : "", *idempotency_key;
  char sha256[RL_SHA256_SIZE];
  rl_job_policy policy;
  RL_CLEANUP(rl_job_spec_clear) rl_job_spec spec = {0};
  int64_t id;
  bool existing;
  rl_job_state state = RL_JOB_QUEUED;
  if (atomic_load(&server->stopping)) return rl_fail(err, RL_HTTP, 503, "The daemon is stopping.");
  if (rl_http_request_idempotency_key(request, &idempotency_key, err) < 0 ||
      rl_http_request_job_policy(request, &policy, err) < 0)
    return -1;
  if (rl_job_spec_parse(body, request->body_length, &policy, &spec, err) < 0) return -1;
  const bool has_key = idempotency_key != NULL;
  if (has_key) rl_sha256(body, request->body_length, sha256);
  if (rl_queue_submit_job(server->queue, &spec, idempotency_key, has_key ? sha256 : NULL, &id, &existing, err) < 0) return -1;
  if (existing && rl_store_job_state(server->store, id, &state, err) < 0) return -1;
  return rl_http_request_reply_job(request, id, state, existing, err);
}

static rl_binding text_filter(const char *name, const char *text) {
  return (rl_binding){name, text[0] != '\0' ? RL_SQL_TEXT : RL_SQL_NULL, .text = text};
}

int rl_handle_list_jobs(rl_http_request *request, rl_error *err) {
  jobs_query query = {.limit = DEFAULT_PAGE_ITEMS, .state = -1, .in_suite = -1};
  int64_t before = 0;
  rl_cursor *cursor;
  if (rl_http_request_parse_query(request, &query, sizeof query, err) < 0) return -1;
  const char *state = query.state >= 0 ? rl_job_state_names[query.state] : "";
  if (query.cursor[0] != '\0' && !rl_page_cursor_parse('j', query.cursor, &before))
    return rl_http_request_fail_parameter(request, err, "cursor", "is not a next_cursor of this list");
  rl_binding bindings[] = {
      {":before", before > 0 ? RL_SQL_INTEGER : RL_SQL_NULL, .integer = before},
      text_filter(":kind", query.kind),
      text_filter(":state", state),
      text_filter(":device", query.device),
      text_filter(":search", query.search),
      {":in_suite", query.in_suite == 1 ? RL_SQL_INTEGER : RL_SQL_NULL, .integer = 1},
      {":in_no_suite", query.in_suite == 0 ? RL_SQL_INTEGER : RL_SQL_NULL, .integer = 1},
      {":limit", RL_SQL_INTEGER, .integer = query.limit + 1},
  };
  if (rl_store_query(request->server->store, RL_QUERY_JOBS, bindings, 8, &cursor, err) < 0) return -1;
  return rl_reply_rows(request, cursor, query.limit, 'j', err);
}

/* Replies with the only row of the query for the request's id; with 404 "NAME ID not found." if the query returns no row. */
static int reply_row(rl_http_request *request, rl_query query, const char *name, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  rl_binding id = {":id", RL_SQL_INTEGER, .integer = request->id};
  const char *json;
  if (rl_store_query(request->server->store, query, &id, 1, &cursor, err) < 0) return -1;
  int found = rl_cursor_next(cursor, &json, err);
  if (found < 0) return -1;
  if (found == 0) return rl_fail(err, RL_HTTP, 404, "%s %lld not found.", name, (long long)request->id);
  return rl_reply_text(request, 200, strdup(json), "application/json", err);
}

int rl_handle_get_job(rl_http_request *request, rl_error *err) { return reply_row(request, RL_QUERY_JOB, "Job", err); }
int rl_handle_get_job_source(rl_http_request *request, rl_error *err) {
  return reply_row(request, RL_QUERY_SOURCE, "Posted code of job", err);
}

int rl_handle_label_job(rl_http_request *request, rl_error *err) {
  char patch[RL_JOB_LABELS_SIZE];
  const char *body = request->body != NULL ? request->body : "";
  if (rl_job_labels_parse(body, request->body_length, patch, err) < 0 ||
      rl_store_job_set_labels(request->server->store, request->id, patch, err) < 0)
    return -1;
  return reply_row(request, RL_QUERY_JOB, "Job", err);
}

int rl_handle_cancel_job(rl_http_request *request, rl_error *err) {
  rl_job_state state;
  if (rl_queue_cancel_job(request->server->queue, request->id, err) < 0) return -1;
  rl_upload_spool_delete_unneeded(request->server->uploads); /* a queued import's file is no longer needed */
  if (rl_store_job_state(request->server->store, request->id, &state, err) < 0) return -1;
  return rl_reply_json(request, 202, rl_accepted_job_json(request->id, state), err);
}
