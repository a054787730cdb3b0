/* Routes of regression suites: /suites and /suite-runs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/cached_reply.h"
#include "api/handlers.h"
#include "api/json_rows.h"
#include "api/reply.h"
#include "api/server_internal.h"
#include "analyze/change_points.h"
#include "api/submission.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/json_members.h"
#include "base/sha256.h"
#include "store/suites.h"
#include "suite/suite_promotion.h"
#include "suite/suite_runner.h"
#include "suite/suites.h"

enum {
  DEFAULT_RUN_ITEMS = 50,
  MAX_RUN_ITEMS = 500,
  DEFAULT_HISTORY_ITEMS = 100,
  MAX_HISTORY_ITEMS = 200,
  MAX_CHANGE_POINTS = 64
};

typedef struct suite_runs_query {
  int64_t limit;
  char cursor[RL_PAGE_CURSOR_SIZE];
} suite_runs_query;

typedef struct suite_history_query {
  char metric[RL_SUITE_KEY_SIZE];
  int64_t limit;
} suite_history_query;

const rl_field rl_list_suite_runs_query[] = {
    RL_FIELD(suite_runs_query, limit, RL_FIELD_INT, .minimum = 1, .maximum = MAX_RUN_ITEMS,
             .summary = "Maximum number of items in a page"),
    RL_FIELD(suite_runs_query, cursor, RL_FIELD_TEXT, .summary = "next_cursor of the previous page"),
    {0}};
const rl_field rl_get_suite_history_query[] = {
    RL_FIELD(suite_history_query, metric, RL_FIELD_TEXT, .required = true,
             .summary = "Key of the metric, such as train/fp16/epoch_ms_median"),
    RL_FIELD(suite_history_query, limit, RL_FIELD_INT, .minimum = 1, .maximum = MAX_HISTORY_ITEMS,
             .summary = "Number of the newest completed runs that are searched"),
    {0}};

/* Body of POST /suites/{name}/runs. */
typedef struct run_body {
  char against[RL_SUITE_NAME_SIZE], device[16];
  const cJSON *definition, *against_request;
} run_body;
static const rl_field run_body_fields[] = {RL_FIELD(run_body, against, RL_FIELD_TEXT),
                                           RL_FIELD(run_body, device, RL_FIELD_TEXT),
                                           RL_FIELD(run_body, against_request, RL_FIELD_OBJECT),
                                           RL_FIELD(run_body, definition, RL_FIELD_OBJECT),
                                           {0}};

/* Body of POST /suites/{name}/baselines. */
typedef struct baseline_body {
  char name[RL_SUITE_NAME_SIZE];
  int64_t run;
} baseline_body;
static const rl_field baseline_body_fields[] = {
    RL_FIELD(baseline_body, name, RL_FIELD_TEXT, .required = true),
    RL_FIELD(baseline_body, run, RL_FIELD_INT, .required = true, .minimum = 1, .maximum = RL_JSON_INTEGER_MAX),
    {0}};

/* --- suites ------------------------------------------------------------------------------------------------------------ */

/* Holds a reference to the list of suites from begin_reading to end_reading. */
typedef struct suite_reader {
  rl_suites *suites;
  const rl_suite_list *list;
} suite_reader;

static void end_reading(suite_reader *reader) {
  if (reader->list != NULL) rl_suites_release(reader->suites, reader->list);
}

static int begin_reading(rl_http_request *request, suite_reader *reader, rl_error *err) {
  reader->suites = request->server->suites;
  reader->list = rl_suites_acquire(reader->suites, err);
  return reader->list != NULL ? 0 : -1;
}

static int fail_unknown_suite(const rl_http_request *request, rl_error *err) {
  return rl_fail(err, RL_HTTP, 404, "Suite %s not found; GET /suites lists them.", request->name);
}

static cJSON *problem_json(const rl_suite_problem *problem) {
  cJSON *object = cJSON_CreateObject();
  cJSON_AddStringToObject(object, "file", problem->file);
  cJSON_AddNumberToObject(object, "line", problem->line);
  cJSON_AddStringToObject(object, "pointer", problem->pointer);
  cJSON_AddStringToObject(object, "message", problem->message);
  return object;
}

/* Adds "last_run": the last run of the suite, or null. */
static int add_last_run(rl_http_request *request, const char *suite, cJSON *object, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *json = "null";
  if (rl_store_query(request->server->store, RL_QUERY_SUITE_LAST_RUN, RL_BINDINGS(RL_BIND_TEXT(":suite", suite)), &cursor, err) <
      0)
    return -1;
  if (rl_cursor_next(cursor, &json, err) < 0) return -1;
  cJSON_AddRawToObject(object, "last_run", json);
  return 0;
}

static void add_estimate(rl_suite_estimate estimate, cJSON *object) {
  rl_json_add_number(object, "estimated_s", estimate.seconds);
  rl_json_add_text(object, "estimate_basis", rl_suite_estimate_basis_name(estimate.basis));
}

static cJSON *suite_json(rl_http_request *request, const rl_suite_entry *entry, rl_error *err) {
  const rl_suite *suite = entry->suite;
  RL_CLEANUP(rl_json_cleanup) cJSON *object = cJSON_CreateObject();
  cJSON_AddStringToObject(object, "name", entry->name);
  rl_json_add_text(object, "summary", suite != NULL ? suite->summary : NULL);
  rl_json_add_text(object, "device", suite != NULL ? suite->device : NULL);
  if (suite != NULL) {
    cJSON_AddNumberToObject(object, "blocks", (double)suite->blocks);
    cJSON_AddNumberToObject(object, "time_budget_s", (double)suite->time_budget_s);
    add_estimate(rl_suite_runner_estimate(request->server->suite_runner, suite), object);
    cJSON_AddNumberToObject(object, "jobs", suite->job_count);
    cJSON_AddNumberToObject(object, "metrics", (double)rl_suite_count_keys(suite));
    cJSON_AddNullToObject(object, "problem");
  } else {
    static const char *const unknown[] = {"blocks", "time_budget_s", "estimated_s", "estimate_basis", "jobs", "metrics", NULL};
    rl_json_add_nulls(object, unknown);
    cJSON_AddItemToObject(object, "problem", problem_json(&entry->problem));
  }
  if (add_last_run(request, entry->name, object, err) < 0) return NULL;
  return rl_take_ownership(&object);
}

/* Returns true if it has set the response from the cache, because the files, suite runs and jobs are unchanged since an earlier
 * request. */
static bool reply_for_same_files(rl_http_request *request, const rl_suite_list *list) {
  char version[24];
  snprintf(version, sizeof version, "%llu", (unsigned long long)list->version);
  return rl_cached_reply_share(request, "files", version);
}

int rl_handle_list_suites(rl_http_request *request, rl_error *err) {
  RL_CLEANUP(end_reading) suite_reader reader = {0};
  if (begin_reading(request, &reader, err) < 0) return -1;
  if (reply_for_same_files(request, reader.list)) return 0;
  RL_CLEANUP(rl_json_cleanup) cJSON *document = cJSON_CreateObject();
  cJSON *items = cJSON_AddArrayToObject(document, "items");
  for (int i = 0; i < reader.list->count; i++) {
    cJSON *item = suite_json(request, &reader.list->entries[i], err);
    if (item == NULL) return -1;
    cJSON_AddItemToArray(items, item);
  }
  return rl_reply_json(request, 200, rl_take_ownership(&document), err);
}

int rl_handle_get_suite(rl_http_request *request, rl_error *err) {
  RL_CLEANUP(end_reading) suite_reader reader = {0};
  if (begin_reading(request, &reader, err) < 0) return -1;
  const rl_suite_entry *entry = rl_suite_list_find(reader.list, request->name);
  if (entry == NULL) return fail_unknown_suite(request, err);
  if (reply_for_same_files(request, reader.list)) return 0;
  cJSON *document = suite_json(request, entry, err);
  if (document == NULL) return -1;
  if (entry->suite != NULL) cJSON_AddRawToObject(document, "definition", entry->suite->text);
  else cJSON_AddNullToObject(document, "definition");
  return rl_reply_json(request, 200, document, err);
}

/* Fails with RL_HTTP 404 if the suite has neither a file nor runs. */
static int require_suite(rl_http_request *request, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  RL_CLEANUP(end_reading) suite_reader reader = {0};
  const char *json;
  if (rl_store_query(request->server->store, RL_QUERY_SUITE_LAST_RUN, RL_BINDINGS(RL_BIND_TEXT(":suite", request->name)), &cursor,
                     err) < 0)
    return -1;
  int found = rl_cursor_next(cursor, &json, err);
  if (found != 0) return found < 0 ? -1 : 0;
  if (begin_reading(request, &reader, err) < 0) return -1;
  return rl_suite_list_find(reader.list, request->name) != NULL ? 0 : fail_unknown_suite(request, err);
}

/* --- runs -------------------------------------------------------------------------------------------------------------- */

/* planned_s: the estimated duration; NAN: unknown. planned_basis: NULL: unknown. */
static cJSON *accepted_json(int64_t id, const char *state, double planned_s, const char *planned_basis) {
  char path[48];
  cJSON *document = cJSON_CreateObject();
  snprintf(path, sizeof path, "/suite-runs/%lld", (long long)id);
  cJSON_AddNumberToObject(document, "id", (double)id);
  cJSON_AddStringToObject(document, "state", state);
  rl_json_add_number(document, "estimated_s", planned_s);
  rl_json_add_text(document, "estimate_basis", planned_basis);
  cJSON *links = cJSON_AddObjectToObject(document, "links");
  cJSON_AddStringToObject(links, "self", path);
  snprintf(path, sizeof path, "/suite-runs/%lld/events", (long long)id);
  cJSON_AddStringToObject(links, "events", path);
  return document;
}

static int fail_unknown_run(int64_t id, rl_error *err) {
  return rl_fail(err, RL_HTTP, 404, "Suite run %lld not found.", (long long)id);
}

static int reply_accepted(rl_http_request *request, int64_t id, bool replayed, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  char location[48];
  const char *state;
  if (rl_store_query(request->server->store, RL_QUERY_SUITE_RUN_STATUS, RL_BINDINGS(RL_BIND_INTEGER(":run", id)), &cursor, err) <
      0)
    return -1;
  int found = rl_cursor_next(cursor, &state, err);
  if (found <= 0) return found < 0 ? -1 : fail_unknown_run(id, err);
  snprintf(location, sizeof location, "/suite-runs/%lld", (long long)id);
  cJSON *document = accepted_json(id, state, rl_cursor_real(cursor, 2), rl_cursor_text(cursor, 3));
  return rl_reply_accepted(request, location, replayed, document, err);
}

/* Changes the JSON pointer of an error in the suite's definition, so that it points into the request's body. If the body contains
 * the definition, prefixes the pointer with /definition. If the definition comes from a file, points to /device, because another
 * device may be able to run the suite, and puts the original pointer into the message. Errors in the body's own members device
 * and against_request keep their pointers. Returns -1. */
static int point_error_into_body(const run_body *body, rl_error *err) {
  char pointer[sizeof err->json_pointer];
  if (err->domain != RL_INPUT) return -1;
  bool is_device = strcmp(err->json_pointer, "/device") == 0;
  if (strncmp(err->json_pointer, "/against_request", strlen("/against_request")) == 0) return -1;
  if (body->definition != NULL && !(is_device && body->device[0] != '\0')) {
    snprintf(pointer, sizeof pointer, "/definition%.80s", err->json_pointer);
    memcpy(err->json_pointer, pointer, sizeof pointer);
  } else if (!is_device) {
    rl_wrap(err, "%s of the suite", err->json_pointer);
    strcpy(err->json_pointer, "/device");
  }
  return -1;
}

static int submit(rl_http_request *request, const run_body *body, const rl_suite_submission *submission, rl_error *err) {
  int64_t id;
  bool existing;
  if (rl_suite_runner_submit(request->server->suite_runner, submission, &id, &existing, err) < 0)
    return point_error_into_body(body, err);
  return reply_accepted(request, id, existing, err);
}

static int submit_definition(rl_http_request *request, const run_body *body, rl_suite_submission *submission, rl_error *err) {
  RL_CLEANUP(rl_suite_cleanup) rl_suite *suite = NULL;
  if (rl_suite_decode(body->definition, "/definition", submission->policy, &suite, err) < 0) return -1;
  if (strcmp(suite->name, request->name) != 0)
    return rl_fail_at(err, "/definition/name", "the name must equal the name in the path, %s", request->name);
  submission->suite = suite;
  return submit(request, body, submission, err);
}

static int submit_file(rl_http_request *request, const run_body *body, rl_suite_submission *submission, rl_error *err) {
  RL_CLEANUP(end_reading) suite_reader reader = {0};
  if (begin_reading(request, &reader, err) < 0) return -1;
  const rl_suite_entry *entry = rl_suite_list_find(reader.list, request->name);
  if (entry == NULL) return fail_unknown_suite(request, err);
  const rl_suite_problem *problem = &entry->problem;
  if (entry->suite == NULL) {
    rl_fail_at(err, "", "%s:%d: %s%s%s", problem->file, problem->line, problem->pointer, problem->pointer[0] != '\0' ? " " : "",
               problem->message);
    err->domain = RL_SUITE;
    err->code = RL_SUITE_MALFORMED;
    return -1;
  }
  submission->suite = entry->suite;
  return submit(request, body, submission, err);
}

/* Looks up the Idempotency-Key before it reads the suite's file and checks the device, so that a repeated request gets its run
 * even if the file has been removed or the device has become unusable since. */
static int submit_or_replay(rl_http_request *request, const run_body *body, rl_error *err) {
  char sha256[RL_SHA256_SIZE];
  int64_t id;
  rl_job_policy policy;
  rl_suite_submission submission = {.device = body->device[0] != '\0' ? body->device : NULL,
                                    .against = body->against[0] != '\0' ? body->against : NULL,
                                    .against_request = body->against_request,
                                    .policy = &policy,
                                    .body_sha256 = sha256};
  if (rl_http_request_idempotency_key(request, &submission.key, err) < 0) return -1;
  rl_sha256(request->body, request->body_length, sha256);
  int seen = submission.key != NULL
                 ? rl_store_suite_find_run_by_key(request->server->store, submission.key, request->name, sha256, &id, err)
                 : 0;
  if (seen != 0) return seen < 0 ? -1 : reply_accepted(request, id, true, err);
  if (rl_http_request_job_policy(request, &policy, err) < 0) return -1;
  return body->definition != NULL ? submit_definition(request, body, &submission, err)
                                  : submit_file(request, body, &submission, err);
}

int rl_handle_start_suite_run(rl_http_request *request, rl_error *err) {
  run_body body = {0};
  if (atomic_load(&request->server->stopping)) return rl_fail(err, RL_HTTP, 503, "The daemon is stopping.");
  RL_CLEANUP(rl_json_cleanup)
  cJSON *object = rl_json_parse(request->body != NULL ? request->body : "", request->body_length, err);
  if (object == NULL || rl_fields_decode(run_body_fields, object, "", &body, sizeof body, err) < 0) return -1;
  return submit_or_replay(request, &body, err);
}

int rl_handle_list_suite_runs(rl_http_request *request, rl_error *err) {
  suite_runs_query query = {.limit = DEFAULT_RUN_ITEMS};
  int64_t before = 0;
  rl_cursor *cursor;
  if (rl_http_request_parse_query(request, &query, sizeof query, err) < 0) return -1;
  if (query.cursor[0] != '\0' && !rl_page_cursor_parse('s', query.cursor, &before))
    return rl_http_request_fail_parameter(request, err, "cursor", "is not a next_cursor of this list");
  if (require_suite(request, err) < 0) return -1;
  const rl_binding bindings[] = {RL_BIND_TEXT(":suite", request->name),
                                 {":before", before > 0 ? RL_SQL_INTEGER : RL_SQL_NULL, .integer = before},
                                 RL_BIND_INTEGER(":limit", query.limit + 1)};
  if (rl_store_query(request->server->store, RL_QUERY_SUITE_RUN_LIST, bindings, 3, &cursor, err) < 0) return -1;
  return rl_reply_rows(request, cursor, query.limit, 's', err);
}

int rl_handle_get_suite_run(rl_http_request *request, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *json;
  if (rl_store_query(request->server->store, RL_QUERY_SUITE_RUN,
                     RL_BINDINGS(RL_BIND_INTEGER(":id", request->id), RL_BIND_INTEGER(":now", rl_realtime_ns())), &cursor,
                     err) < 0)
    return -1;
  int found = rl_cursor_next(cursor, &json, err);
  if (found < 0) return -1;
  if (found == 0) return fail_unknown_run(request->id, err);
  return rl_reply_text(request, 200, strdup(json), "application/json", err);
}

int rl_handle_cancel_suite_run(rl_http_request *request, rl_error *err) {
  if (rl_suite_runner_cancel(request->server->suite_runner, request->id, err) < 0) return -1;
  return rl_reply_json(request, 202, accepted_json(request->id, "cancelled", NAN, NULL), err);
}

/* --- baselines and history --------------------------------------------------------------------------------------------- */

int rl_handle_add_baseline(rl_http_request *request, rl_error *err) {
  baseline_body body = {0};
  RL_CLEANUP(rl_json_cleanup)
  cJSON *object = rl_json_parse(request->body != NULL ? request->body : "", request->body_length, err);
  if (object == NULL || rl_fields_decode(baseline_body_fields, object, "", &body, sizeof body, err) < 0) return -1;
  if (!rl_suite_is_name(body.name))
    return rl_fail_at(err, "/name",
                      "a name has 1 to 64 lower-case letters, digits, _ and -, and begins with a letter or a digit");
  if (require_suite(request, err) < 0 ||
      rl_suite_promote_run(request->server->store, request->name, body.name, body.run, err) < 0)
    return -1;
  cJSON *document = cJSON_CreateObject();
  cJSON_AddStringToObject(document, "name", body.name);
  cJSON_AddNumberToObject(document, "run", (double)body.run);
  return rl_reply_json(request, 201, document, err);
}

int rl_handle_list_baselines(rl_http_request *request, rl_error *err) {
  rl_cursor *cursor;
  if (require_suite(request, err) < 0 || rl_store_query(request->server->store, RL_QUERY_SUITE_BASELINES,
                                                        RL_BINDINGS(RL_BIND_TEXT(":suite", request->name)), &cursor, err) < 0)
    return -1;
  return rl_reply_rows(request, cursor, 0, 0, err);
}

static int add_change_points(const double *medians, const int64_t *runs, size_t count, cJSON *document, rl_error *err) {
  rl_change_point points[MAX_CHANGE_POINTS];
  size_t found = 0;
  cJSON *array = cJSON_AddArrayToObject(document, "change_points");
  if (rl_change_points_find(medians, count, points, MAX_CHANGE_POINTS, &found, err) < 0) return -1;
  for (size_t i = 0; i < found && i < MAX_CHANGE_POINTS; i++) {
    cJSON *point = cJSON_CreateObject();
    cJSON_AddNumberToObject(point, "run", (double)runs[points[i].index]);
    cJSON_AddNumberToObject(point, "before", points[i].before);
    cJSON_AddNumberToObject(point, "after", points[i].after);
    cJSON_AddNumberToObject(point, "p_value", points[i].p_value);
    cJSON_AddItemToArray(array, point);
  }
  return 0;
}

int rl_handle_get_suite_history(rl_http_request *request, rl_error *err) {
  suite_history_query query = {.limit = DEFAULT_HISTORY_ITEMS};
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *json;
  int found;
  if (rl_http_request_parse_query(request, &query, sizeof query, err) < 0 || require_suite(request, err) < 0) return -1;
  if (rl_store_query(request->server->store, RL_QUERY_SUITE_HISTORY,
                     RL_BINDINGS(RL_BIND_TEXT(":suite", request->name), RL_BIND_TEXT(":metric", query.metric),
                                 RL_BIND_INTEGER(":limit", query.limit)),
                     &cursor, err) < 0)
    return -1;
  RL_CLEANUP(rl_json_cleanup) cJSON *document = cJSON_CreateObject();
  cJSON *items = cJSON_AddArrayToObject(document, "items");
  double medians[MAX_HISTORY_ITEMS]; /* medians of the runs, oldest first; only the elements from `begin` on are used */
  int64_t runs[MAX_HISTORY_ITEMS];
  size_t begin = MAX_HISTORY_ITEMS;
  while ((found = rl_cursor_next(cursor, &json, err)) > 0 && begin > 0) {
    cJSON_InsertItemInArray(items, 0, cJSON_CreateRaw(json));
    runs[--begin] = rl_cursor_integer(cursor, 1);
    medians[begin] = rl_cursor_real(cursor, 2);
  }
  if (found < 0 || add_change_points(medians + begin, runs + begin, MAX_HISTORY_ITEMS - begin, document, err) < 0) return -1;
  return rl_reply_json(request, 200, rl_take_ownership(&document), err);
}
