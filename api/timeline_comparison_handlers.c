/* The route that compares the traces of two runs. */

#include "analyze/trace_comparison.h"
#include "api/handlers.h"
#include "api/reply.h"
#include "api/run_trace.h"
#include "api/server_internal.h"
#include "base/json_members.h"

enum { MAX_ROWS = 256 };

typedef struct timelines_query {
  int64_t a, b;
} timelines_query;

const rl_field rl_compare_timelines_query[] = {RL_FIELD(timelines_query, a, RL_FIELD_INT, .required = true, .minimum = 1,
                                                        .maximum = RL_JSON_INTEGER_MAX, .summary = "The baseline run"),
                                               RL_FIELD(timelines_query, b, RL_FIELD_INT, .required = true, .minimum = 1,
                                                        .maximum = RL_JSON_INTEGER_MAX, .summary = "The candidate run"),
                                               {0}};

static void add_difference(cJSON *object, int64_t a_ns, int64_t b_ns) {
  cJSON_AddNumberToObject(object, "a_ns", (double)a_ns);
  cJSON_AddNumberToObject(object, "b_ns", (double)b_ns);
  cJSON_AddNumberToObject(object, "difference_ns", (double)(b_ns - a_ns));
}

static void add_classes(cJSON *document, const rl_trace_comparison *comparison) {
  cJSON *array = cJSON_AddArrayToObject(document, "classes");
  for (int i = 0; i < RL_TIME_CLASS_COUNT; i++) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "class", rl_time_class_names[i]);
    add_difference(object, comparison->class_ns[0][i], comparison->class_ns[1][i]);
    cJSON_AddItemToArray(array, object);
  }
}

static cJSON *row_json(const rl_compared_time *row) {
  cJSON *object = cJSON_CreateObject();
  cJSON_AddStringToObject(object, "name", row->name);
  rl_json_add_text(object, "idle", row->is_idle ? rl_time_class_names[row->time_class] : NULL);
  cJSON_AddStringToObject(object, "change", rl_trace_change_names[row->change]);
  add_difference(object, row->time_ns[0], row->time_ns[1]);
  cJSON_AddNumberToObject(object, "a_count", (double)row->count[0]);
  cJSON_AddNumberToObject(object, "b_count", (double)row->count[1]);
  cJSON_AddNumberToObject(object, "a_total_ns", (double)row->total_ns[0]);
  cJSON_AddNumberToObject(object, "b_total_ns", (double)row->total_ns[1]);
  return object;
}

/* Adds the first MAX_ROWS rows, and the sum of the remaining rows. */
static void add_rows(cJSON *document, const rl_trace_comparison *comparison) {
  cJSON *rows = cJSON_AddArrayToObject(document, "rows"), *rest = cJSON_AddObjectToObject(document, "rest");
  int64_t rest_ns[2] = {0, 0};
  size_t listed = comparison->count < MAX_ROWS ? comparison->count : MAX_ROWS;
  for (size_t i = 0; i < listed; i++) cJSON_AddItemToArray(rows, row_json(&comparison->rows[i]));
  for (size_t i = listed; i < comparison->count; i++)
    for (int run = 0; run < 2; run++) rest_ns[run] += comparison->rows[i].time_ns[run];
  cJSON_AddNumberToObject(rest, "rows", (double)(comparison->count - listed));
  add_difference(rest, rest_ns[0], rest_ns[1]);
}

typedef struct compared_run {
  int64_t run;
  rl_trace_state state;
  rl_trace_times times;
} compared_run;

static void clear_run(compared_run *run) { rl_trace_times_clear(&run->times); }

/* Reads a run's trace, sums its times by name, and frees the trace, so that a thread never holds two traces. */
static int read_run(rl_http_request *request, int64_t id, compared_run *run, rl_error *err) {
  RL_CLEANUP(rl_run_trace_clear) rl_run_trace trace = {0};
  run->run = id;
  if (rl_run_trace_read(request->server->store, &request->budget, id, &trace, err) < 0) return -1;
  run->state = trace.state;
  return rl_trace_times_compute(&trace.index, &run->times, err);
}

static int add_comparison(cJSON *document, const compared_run *a, const compared_run *b, rl_error *err) {
  RL_CLEANUP(rl_trace_comparison_clear) rl_trace_comparison comparison = {0};
  if (rl_trace_comparison_compute(&a->times, &b->times, &comparison, err) < 0) return -1;
  add_difference(cJSON_AddObjectToObject(document, "window"), comparison.window_ns[0], comparison.window_ns[1]);
  add_classes(document, &comparison);
  add_rows(document, &comparison);
  return 0;
}

static void add_missing_comparison(cJSON *document) {
  static const char *const members[] = {"window", "classes", "rows", "rest", NULL};
  rl_json_add_nulls(document, members);
}

static void add_run(cJSON *document, const char *member, const compared_run *run) {
  cJSON *object = cJSON_AddObjectToObject(document, member);
  cJSON_AddNumberToObject(object, "run", (double)run->run);
  rl_json_add_text(object, "reason", run->state.reason);
  rl_json_add_text(object, "incomplete_reason", run->state.incomplete_reason);
}

int rl_handle_compare_timelines(rl_http_request *request, rl_error *err) {
  RL_CLEANUP(clear_run) compared_run a = {0};
  RL_CLEANUP(clear_run) compared_run b = {0};
  RL_CLEANUP(rl_json_cleanup) cJSON *document = cJSON_CreateObject();
  timelines_query query = {0};
  if (rl_http_request_parse_query(request, &query, sizeof query, err) < 0) return -1;
  if (read_run(request, query.a, &a, err) < 0) return -1;
  if (read_run(request, query.b, &b, err) < 0) return -1;
  add_run(document, "a", &a);
  add_run(document, "b", &b);
  if (a.state.reason[0] != '\0' || b.state.reason[0] != '\0') add_missing_comparison(document);
  else if (add_comparison(document, &a, &b, err) < 0) return -1;
  return rl_reply_json(request, 200, rl_take_ownership(&document), err);
}
