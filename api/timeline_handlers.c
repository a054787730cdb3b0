/* The route that explains the trace of a run: classes of time, idle intervals and findings. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/time_classes.h"
#include "api/handlers.h"
#include "api/json_members.h"
#include "api/reply.h"
#include "api/report.h"
#include "api/server_internal.h"
#include "base/array.h"

enum { MAX_EVENTS = 2000000, LONGEST_INTERVALS = 8 };

/* The trace of a run in memory. */
typedef struct run_trace {
  rl_trace_event *items;
  size_t count, capacity;
  char **names;
  size_t name_count, name_capacity;
  char reason[256];            /* why there is no trace; "" */
  char incomplete_reason[128]; /* "" */
} run_trace;

static void clear_trace(run_trace *trace) {
  for (size_t i = 0; i < trace->name_count; i++) free(trace->names[i]);
  free(trace->names);
  free(trace->items);
}

/* Sets trace->reason if the run has no rows, and incomplete_reason if some are missing. RL_HTTP 422: there are too many. */
static int read_pass(rl_store *store, const rl_binding *run, run_trace *trace, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *state;
  if (rl_store_query(store, RL_QUERY_TIMELINE_PASS, run, 1, &cursor, err) < 0) return -1;
  int found = rl_cursor_next(cursor, &state, err);
  if (found < 0) return -1;
  const char *reason = found > 0 ? rl_cursor_text(cursor, 1) : NULL;
  int64_t rows = found > 0 ? rl_cursor_integer(cursor, 2) : 0;
  if (found == 0) snprintf(trace->reason, sizeof trace->reason, "the job did not request the activity pass");
  else if (strcmp(state, "completed") != 0)
    snprintf(trace->reason, sizeof trace->reason, "the activity pass is %s%s%s", state, reason != NULL ? ": " : "",
             reason != NULL ? reason : "");
  else if (rows == 0) snprintf(trace->reason, sizeof trace->reason, "the activity pass recorded nothing");
  else if (rl_cursor_integer(cursor, 3) == 0)
    snprintf(trace->reason, sizeof trace->reason, "retention has deleted the rows of the trace");
  if (trace->reason[0] != '\0') return 0;
  if (rows > MAX_EVENTS)
    return rl_fail(err, RL_HTTP, 422, "The trace has %lld rows; at most %d are analysed. Trace fewer iterations.",
                   (long long)rows, MAX_EVENTS);
  double dropped = rl_cursor_real(cursor, 4), untimed = rl_cursor_real(cursor, 5);
  if (dropped > 0 || untimed > 0)
    snprintf(trace->incomplete_reason, sizeof trace->incomplete_reason, "%.0f records were dropped, %.0f have no times",
             fmax(dropped, 0), fmax(untimed, 0));
  return 0;
}

static int read_names(rl_store *store, const rl_binding *run, run_trace *trace, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *name;
  int found;
  if (rl_store_query(store, RL_QUERY_TIMELINE_NAMES, run, 1, &cursor, err) < 0) return -1;
  while ((found = rl_cursor_next(cursor, &name, err)) > 0) {
    if (rl_array_reserve(&trace->names, trace->name_count, &trace->name_capacity, sizeof *trace->names, err) < 0) return -1;
    if ((trace->names[trace->name_count] = strdup(name)) == NULL)
      return rl_fail(err, RL_ERRNO, 0, "out of memory for the trace of a run");
    trace->name_count++;
  }
  return found;
}

static int read_events(rl_store *store, const rl_binding *run, run_trace *trace, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *unused;
  int found;
  if (rl_store_query(store, RL_QUERY_TIMELINE_EVENTS, run, 1, &cursor, err) < 0) return -1;
  while ((found = rl_cursor_next(cursor, &unused, err)) > 0) {
    if (rl_array_reserve(&trace->items, trace->count, &trace->capacity, sizeof *trace->items, err) < 0) return -1;
    int64_t start_ns = rl_cursor_integer(cursor, 1);
    trace->items[trace->count++] = (rl_trace_event){.start_ns = start_ns,
                                                    .end_ns = start_ns + rl_cursor_integer(cursor, 2),
                                                    .kind = (uint32_t)rl_cursor_integer(cursor, 3),
                                                    .name = (uint32_t)rl_cursor_integer(cursor, 4),
                                                    .correlation = (uint32_t)rl_cursor_integer(cursor, 5),
                                                    .graph_node = (uint32_t)rl_cursor_integer(cursor, 6)};
  }
  return found;
}

/* Reads what the pass, the names and the events say. Retention may delete the rows meanwhile: events are all there or none. */
static int read_trace(rl_store *store, int64_t run_id, run_trace *trace, rl_error *err) {
  rl_binding run = RL_BIND_INTEGER(":run", run_id);
  if (read_pass(store, &run, trace, err) < 0) return -1;
  if (trace->reason[0] != '\0') return 0;
  if (read_names(store, &run, trace, err) < 0 || read_events(store, &run, trace, err) < 0) return -1;
  if (trace->count == 0) snprintf(trace->reason, sizeof trace->reason, "the trace has no operation and no API call");
  return 0;
}

/* --- JSON -------------------------------------------------------------------------------------------------------------- */

static void add_name(cJSON *object, const char *member, const rl_trace_events *events, const rl_trace_event *event) {
  rl_json_add_text(object, member, event != NULL ? events->names[event->name] : NULL);
}

static cJSON *interval_json(const rl_trace_events *events, const rl_idle_interval *interval) {
  cJSON *object = cJSON_CreateObject();
  cJSON_AddNumberToObject(object, "start_ns", (double)interval->start_ns);
  cJSON_AddNumberToObject(object, "end_ns", (double)interval->end_ns);
  add_name(object, "before", events, interval->before);
  add_name(object, "after", events, interval->after);
  add_name(object, "call", events, interval->call);
  return object;
}

static int64_t duration_ns(const rl_idle_interval *interval) { return interval->end_ns - interval->start_ns; }

/* The longest intervals of a class, longest first. */
static cJSON *longest_json(const rl_trace_events *events, const rl_time_classes *classes, rl_time_class time_class) {
  const rl_idle_interval *longest[LONGEST_INTERVALS + 1];
  size_t count = 0;
  for (size_t i = 0; i < classes->idle_count; i++) {
    const rl_idle_interval *interval = &classes->idle[i];
    if (interval->time_class != time_class) continue;
    size_t position = count;
    for (; position > 0 && duration_ns(longest[position - 1]) < duration_ns(interval); position--)
      longest[position] = longest[position - 1];
    longest[position] = interval;
    if (count < LONGEST_INTERVALS) count++;
  }
  cJSON *array = cJSON_CreateArray();
  for (size_t i = 0; i < count; i++) cJSON_AddItemToArray(array, interval_json(events, longest[i]));
  return array;
}

static void add_classes(cJSON *document, const rl_trace_events *events, const rl_time_classes *classes) {
  cJSON *array = cJSON_AddArrayToObject(document, "classes");
  double window_ns = (double)(classes->end_ns - classes->start_ns);
  for (int i = 0; i < RL_TIME_CLASS_COUNT; i++) {
    cJSON *item = cJSON_CreateObject();
    bool is_idle = rl_time_class_is_idle((rl_time_class)i);
    cJSON_AddStringToObject(item, "class", rl_time_class_names[i]);
    cJSON_AddNumberToObject(item, "time_ns", (double)classes->class_ns[i]);
    rl_json_add_number(item, "ratio", window_ns > 0 ? (double)classes->class_ns[i] / window_ns : NAN);
    rl_json_add_number(item, "intervals", is_idle ? (double)classes->intervals[i] : NAN);
    cJSON_AddItemToObject(item, "longest", is_idle ? longest_json(events, classes, (rl_time_class)i) : cJSON_CreateNull());
    cJSON_AddItemToArray(array, item);
  }
}

static void add_trace(cJSON *document, const rl_trace_events *events, const rl_time_classes *classes) {
  rl_metric_value metrics[RL_TIME_METRIC_COUNT];
  cJSON *window = cJSON_AddObjectToObject(document, "window");
  cJSON_AddNumberToObject(window, "start_ns", (double)classes->start_ns);
  cJSON_AddNumberToObject(window, "end_ns", (double)classes->end_ns);
  cJSON_AddNumberToObject(document, "operations", (double)classes->operations);
  cJSON_AddNumberToObject(document, "kernels", (double)classes->kernels);
  cJSON_AddNumberToObject(document, "unrecorded_launches", (double)classes->unrecorded_launches);
  add_classes(document, events, classes);
  rl_metric_values values = {metrics, rl_time_classes_metrics(classes, metrics)};
  cJSON_AddItemToObject(document, "findings", rl_report_findings(&values));
}

static void add_missing_trace(cJSON *document) {
  static const char *const members[] = {"window", "operations", "kernels", "unrecorded_launches", "classes", "findings"};
  for (size_t i = 0; i < sizeof members / sizeof *members; i++) cJSON_AddNullToObject(document, members[i]);
}

/* Reads all rows of a trace. */
bool rl_timeline_findings_are_heavy(const rl_http_request *request) {
  (void)request;
  return true;
}

int rl_handle_get_timeline_findings(rl_http_request *request, rl_error *err) {
  RL_CLEANUP(clear_trace) run_trace trace = {0};
  RL_CLEANUP(rl_time_classes_clear) rl_time_classes classes = {0};
  RL_CLEANUP(rl_json_cleanup) cJSON *document = cJSON_CreateObject();
  rl_store *store = request->server->store;
  bool exists;
  if (rl_store_has_run(store, request->id, &exists, err) < 0) return -1;
  if (!exists) return rl_fail(err, RL_HTTP, 404, "There is no run %lld.", (long long)request->id);
  if (read_trace(store, request->id, &trace, err) < 0) return -1;
  rl_trace_events events = {trace.items, trace.count, (const char *const *)trace.names, trace.name_count,
                            trace.incomplete_reason[0] != '\0' ? trace.incomplete_reason : NULL};
  cJSON_AddNumberToObject(document, "run", (double)request->id);
  rl_json_add_text(document, "reason", trace.reason[0] != '\0' ? trace.reason : NULL);
  rl_json_add_text(document, "incomplete_reason", events.incomplete_reason);
  if (trace.reason[0] != '\0') add_missing_trace(document);
  else if (rl_time_classes_compute(&events, &classes, err) < 0) return -1;
  else add_trace(document, &events, &classes);
  return rl_reply_json(request, 200, rl_take_ownership(&document), err);
}
