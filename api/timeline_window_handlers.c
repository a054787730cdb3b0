/* Two routes that read the rows of a time window: statistics of the rows, and the search for events by their names. */
#include <stdlib.h>
#include <string.h>

#include "analyze/timeline_statistics.h"
#include "api/handlers.h"
#include "api/reply.h"
#include "api/server_internal.h"
#include "api/trace_rows.h"
#include "base/array.h"
#include "base/json_members.h"

enum { MAX_NAMES = 100, NAME_BYTES = 512, MAX_EVENTS = 2000000 };

/* --- statistics -------------------------------------------------------------------------------------------------------- */

typedef struct statistics_query {
  int64_t from, to;
} statistics_query;

const rl_field rl_get_timeline_statistics_query[] = {
    RL_FIELD(statistics_query, from, RL_FIELD_INT, .minimum = 0, .maximum = RL_JSON_INTEGER_MAX,
             .summary = "Start of the window in ns since the start of the trace"),
    RL_FIELD(statistics_query, to, RL_FIELD_INT, .minimum = 1, .maximum = RL_JSON_INTEGER_MAX,
             .summary = "End of the window in ns; default: the end of the trace"),
    {0}};

static int take_row(void *context, rl_lane_key key, const rl_lane_item *item, rl_error *err) {
  const rl_timeline_statistics *statistics = context;
  if (statistics->row_count >= MAX_EVENTS)
    return rl_fail(err, RL_HTTP, 422, "The window has more than %d events. Select a shorter one.", MAX_EVENTS);
  return rl_timeline_statistics_add(context, key, item->start_ns, item->end_ns, item->name, err);
}

static void add_share(cJSON *object, int64_t time_ns, const rl_timeline_statistics *statistics) {
  rl_json_add_number(object, "ratio", (double)time_ns / (double)(statistics->to_ns - statistics->from_ns));
}

static cJSON *lane_json(const rl_lane_statistics *lane, const rl_timeline_statistics *statistics) {
  cJSON *object = cJSON_CreateObject();
  rl_add_lane_key(object, lane->key);
  cJSON_AddNumberToObject(object, "events", (double)lane->row_count);
  cJSON_AddNumberToObject(object, "busy_ns", (double)lane->busy_ns);
  add_share(object, lane->busy_ns, statistics);
  return object;
}

static int compare_lanes(const void *left, const void *right) {
  const rl_lane_statistics *const *a = left, *const *b = right;
  return rl_lane_key_compare(&(*a)->key, &(*b)->key);
}

/* Adds the lanes in the order in which the timeline is drawn. */
static void add_lanes(cJSON *document, const rl_timeline_statistics *statistics) {
  const rl_lane_statistics *lanes[RL_MAX_LANES];
  cJSON *array = cJSON_AddArrayToObject(document, "lanes");
  for (size_t i = 0; i < statistics->lane_count; i++) lanes[i] = &statistics->lanes[i];
  qsort(lanes, statistics->lane_count, sizeof *lanes, compare_lanes);
  for (size_t i = 0; i < statistics->lane_count; i++) cJSON_AddItemToArray(array, lane_json(lanes[i], statistics));
  cJSON_AddBoolToObject(document, "lanes_truncated", statistics->truncated);
}

static cJSON *name_json(const rl_lane_name *name, const char *text, const rl_timeline_statistics *statistics) {
  cJSON *object = cJSON_CreateObject();
  cJSON_AddStringToObject(object, "name", text);
  rl_add_lane_key(object, statistics->lanes[name->lane].key);
  cJSON_AddNumberToObject(object, "events", (double)name->row_count);
  cJSON_AddNumberToObject(object, "total_ns", (double)name->total_ns);
  cJSON_AddNumberToObject(object, "longest_ns", (double)name->longest_ns);
  add_share(object, name->total_ns, statistics);
  return object;
}

static int add_names(cJSON *document, rl_store *store, int64_t run_id, const rl_timeline_statistics *statistics, rl_error *err) {
  RL_CLEANUP(rl_mentioned_names_clear) rl_mentioned_names names = {0};
  RL_CLEANUP(rl_json_cleanup) cJSON *texts = NULL;
  uint32_t numbers[MAX_NAMES];
  size_t listed = statistics->name_count < MAX_NAMES ? statistics->name_count : MAX_NAMES;
  for (size_t i = 0; i < listed; i++)
    if (rl_mentioned_names_add(&names, statistics->names[i].name, &numbers[i], err) < 0) return -1;
  if (rl_mentioned_names_read(store, run_id, &names, &texts, err) < 0) return -1;
  cJSON *array = cJSON_AddArrayToObject(document, "names");
  for (size_t i = 0; i < listed; i++) {
    const char *text = cJSON_GetStringValue(cJSON_GetArrayItem(texts, (int)numbers[i]));
    cJSON_AddItemToArray(array, name_json(&statistics->names[i], text, statistics));
  }
  cJSON_AddBoolToObject(document, "names_truncated", listed < statistics->name_count);
  return 0;
}

static int add_statistics(cJSON *document, rl_http_request *request, const statistics_query *query, rl_error *err) {
  RL_CLEANUP(rl_timeline_statistics_clear) rl_timeline_statistics statistics = {0};
  rl_store *store = request->server->store;
  rl_trace_window window;
  int64_t end_ns;
  if (rl_trace_window_find(store, request->id, query->from, query->to, &window, &end_ns, err) < 0) return -1;
  statistics.from_ns = window.from_ns, statistics.to_ns = window.to_ns;
  if (rl_trace_rows_read(store, &window, take_row, &statistics, err) < 0) return -1;
  rl_timeline_statistics_finish(&statistics);
  rl_add_trace_window(document, end_ns, &window);
  add_lanes(document, &statistics);
  return add_names(document, store, request->id, &statistics, err);
}

int rl_handle_get_timeline_statistics(rl_http_request *request, rl_error *err) {
  static const char *const members[] = {"trace_end_ns", "window", "lanes", "lanes_truncated", "names", "names_truncated", NULL};
  RL_CLEANUP(rl_json_cleanup) cJSON *document = cJSON_CreateObject();
  statistics_query query = {0};
  bool has_trace;
  if (rl_http_request_parse_query(request, &query, sizeof query, err) < 0) return -1;
  if (query.to > 0 && query.to <= query.from)
    return rl_http_request_fail_parameter(request, err, "to", "must be greater than from");
  if (rl_add_trace_state(document, request, members, &has_trace, err) < 0) return -1;
  if (has_trace && add_statistics(document, request, &query, err) < 0) return -1;
  return rl_reply_json(request, 200, rl_take_ownership(&document), err);
}

/* --- search ------------------------------------------------------------------------------------------------------------ */

typedef struct search_query {
  char name[NAME_BYTES];
  int64_t from;
} search_query;

const rl_field rl_search_timeline_query[] = {
    RL_FIELD(search_query, name, RL_FIELD_TEXT, .required = true,
             .summary = "Text that the names of the events contain; upper and lower case are equal"),
    RL_FIELD(search_query, from, RL_FIELD_INT, .minimum = 0, .maximum = RL_JSON_INTEGER_MAX,
             .summary = "Time in ns since the start of the trace: previous is the last event that starts before it, next the "
                        "first event that does not; default 0"),
    {0}};

typedef struct found_event {
  rl_lane_key key;
  rl_lane_item item; /* row_count 0: no event was found */
} found_event;

typedef struct name_search {
  bool *matches; /* matches[i]: whether name i of the trace contains the text */
  size_t name_count, name_capacity;
  int64_t from_ns;
  int64_t found_count;   /* number of events whose names contain the text */
  int64_t earlier_count; /* how many of these events start before from_ns */
  found_event previous, next, first, last;
} name_search;

static void clear_search(name_search *search) { free(search->matches); }

/* Finds the names of the trace that contain the text. */
static int match_names(rl_store *store, int64_t run_id, const char *text, name_search *search, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *name;
  int found;
  if (rl_store_query(store, RL_QUERY_TIMELINE_NAMES, RL_BINDINGS(RL_BIND_INTEGER(":run", run_id)), &cursor, err) < 0) return -1;
  while ((found = rl_cursor_next(cursor, &name, err)) > 0) {
    if (rl_array_reserve(&search->matches, search->name_count, &search->name_capacity, sizeof *search->matches, err) < 0)
      return -1;
    search->matches[search->name_count++] = strcasestr(name, text) != NULL;
  }
  return found;
}

static void keep_earliest(found_event *kept, const found_event *event) {
  if (kept->item.row_count == 0 || event->item.start_ns < kept->item.start_ns) *kept = *event;
}

static void keep_latest(found_event *kept, const found_event *event) {
  if (kept->item.row_count == 0 || event->item.start_ns > kept->item.start_ns) *kept = *event;
}

static int take_match(void *context, rl_lane_key key, const rl_lane_item *item, rl_error *err) {
  name_search *search = context;
  const found_event event = {key, *item};
  (void)err;
  if (item->name >= search->name_count || !search->matches[item->name]) return 0;
  bool is_earlier = item->start_ns < search->from_ns;
  search->found_count++;
  search->earlier_count += is_earlier;
  if (is_earlier) keep_latest(&search->previous, &event);
  else keep_earliest(&search->next, &event);
  keep_earliest(&search->first, &event);
  keep_latest(&search->last, &event);
  return 0;
}

static int add_event(cJSON *document, const char *member, rl_store *store, int64_t run_id, const found_event *event,
                     rl_error *err) {
  RL_CLEANUP(rl_mentioned_names_clear) rl_mentioned_names names = {0};
  RL_CLEANUP(rl_json_cleanup) cJSON *texts = NULL;
  uint32_t number;
  cJSON_AddItemToObject(document, member, event->item.row_count > 0 ? cJSON_CreateObject() : cJSON_CreateNull());
  if (event->item.row_count == 0) return 0;
  if (rl_mentioned_names_add(&names, event->item.name, &number, err) < 0) return -1;
  if (rl_mentioned_names_read(store, run_id, &names, &texts, err) < 0) return -1;
  cJSON *object = cJSON_GetObjectItem(document, member);
  cJSON_AddStringToObject(object, "name", cJSON_GetStringValue(cJSON_GetArrayItem(texts, (int)number)));
  rl_add_lane_key(object, event->key);
  cJSON_AddNumberToObject(object, "start_ns", (double)event->item.start_ns);
  cJSON_AddNumberToObject(object, "end_ns", (double)event->item.end_ns);
  return 0;
}

static int add_search(cJSON *document, rl_http_request *request, const search_query *query, rl_error *err) {
  RL_CLEANUP(clear_search) name_search search = {.from_ns = query->from};
  rl_store *store = request->server->store;
  const rl_trace_window window = {request->id, 0, INT64_MAX, RL_NO_LEVEL};
  if (match_names(store, request->id, query->name, &search, err) < 0) return -1;
  if (rl_trace_rows_read(store, &window, take_match, &search, err) < 0) return -1;
  cJSON_AddNumberToObject(document, "events", (double)search.found_count);
  cJSON_AddNumberToObject(document, "earlier_events", (double)search.earlier_count);
  return add_event(document, "previous", store, request->id, &search.previous, err) < 0 ||
                 add_event(document, "next", store, request->id, &search.next, err) < 0 ||
                 add_event(document, "first", store, request->id, &search.first, err) < 0 ||
                 add_event(document, "last", store, request->id, &search.last, err) < 0
             ? -1
             : 0;
}

int rl_handle_search_timeline(rl_http_request *request, rl_error *err) {
  static const char *const members[] = {"events", "earlier_events", "previous", "next", "first", "last", NULL};
  RL_CLEANUP(rl_json_cleanup) cJSON *document = cJSON_CreateObject();
  search_query query = {0};
  bool has_trace;
  if (rl_http_request_parse_query(request, &query, sizeof query, err) < 0) return -1;
  if (query.name[0] == '\0') return rl_http_request_fail_parameter(request, err, "name", "must not be empty");
  if (rl_add_trace_state(document, request, members, &has_trace, err) < 0) return -1;
  if (has_trace && add_search(document, request, &query, err) < 0) return -1;
  return rl_reply_json(request, 200, rl_take_ownership(&document), err);
}
