/* GET /runs/{id}/timeline/lanes. The reply has the lanes of a time window, from which a client draws a timeline. Events that are
 * shorter than a pixel of the drawing are merged. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/handlers.h"
#include "api/reply.h"
#include "api/server_internal.h"
#include "api/trace_rows.h"
#include "base/json_members.h"

enum { DEFAULT_PIXELS = 1024, MAX_PIXELS = 4096 };

typedef struct lanes_query {
  int64_t from, to, pixels;
} lanes_query;

const rl_field rl_get_timeline_lanes_query[] = {
    RL_FIELD(lanes_query, from, RL_FIELD_INT, .minimum = 0, .maximum = RL_JSON_INTEGER_MAX,
             .summary = "Start of the window in ns since the start of the trace"),
    RL_FIELD(lanes_query, to, RL_FIELD_INT, .minimum = 1, .maximum = RL_JSON_INTEGER_MAX,
             .summary = "End of the window in ns; default: the end of the trace"),
    RL_FIELD(lanes_query, pixels, RL_FIELD_INT, .minimum = 1, .maximum = MAX_PIXELS,
             .summary = "Width of the drawing in pixels: events shorter than a pixel are merged; default 1024"),
    {0}};

static int take_item(void *context, rl_lane_key key, const rl_lane_item *item, rl_error *err) {
  return rl_timeline_lanes_add(context, key, item, err);
}

static int read_lanes(rl_store *store, const rl_trace_window *window, rl_timeline_lanes *lanes, rl_error *err) {
  rl_trace_window rows = *window;
  rows.level = rl_activity_highest_level_up_to(lanes->step_ns);
  if (rl_trace_rows_read(store, &rows, take_item, lanes, err) < 0) return -1;
  if (rows.level >= 0 && rl_trace_intervals_read(store, &rows, take_item, lanes, err) < 0) return -1;
  return rl_timeline_lanes_finish(lanes, err);
}

/* --- JSON -------------------------------------------------------------------------------------------------------------- */

/* A lane's columns of numbers are written as text, because a cJSON node for each number would take 64 bytes, and making the nodes
 * would take most of the request's time. */
typedef int64_t column(const rl_lane_item *item);
static int64_t start_of(const rl_lane_item *item) { return item->start_ns; }
static int64_t duration_of(const rl_lane_item *item) { return item->end_ns - item->start_ns; }
static int64_t events_of(const rl_lane_item *item) { return item->row_count; }
static int64_t busy_of(const rl_lane_item *item) { return item->busy_ns; }
static int64_t depth_of(const rl_lane_item *item) { return item->depth; }
static int64_t name_of(const rl_lane_item *item) { return item->name; }

static const struct {
  const char *name;
  column *value;
} columns[] = {{"start_ns", start_of}, {"duration_ns", duration_of}, {"events", events_of},
               {"busy_ns", busy_of},   {"depth", depth_of},          {"name", name_of}};

static int add_column(cJSON *object, const char *name, column *value, const rl_timeline_lane *lane, rl_error *err) {
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  if (out == NULL) return rl_fail_errno(err, "cannot write the lanes of a timeline");
  fputc('[', out);
  for (size_t i = 0; i < lane->count; i++) fprintf(out, i > 0 ? ",%lld" : "%lld", (long long)value(&lane->items[i]));
  fputc(']', out);
  bool is_written = fclose(out) == 0;
  if (is_written) cJSON_AddRawToObject(object, name, text);
  free(text);
  return is_written ? 0 : rl_fail_errno(err, "cannot write the lanes of a timeline");
}

static int add_lane(cJSON *array, const rl_timeline_lane *lane, rl_error *err) {
  cJSON *object = cJSON_CreateObject();
  cJSON_AddItemToArray(array, object);
  rl_add_lane_key(object, lane->key);
  cJSON_AddNumberToObject(object, "depths", lane->depth_count);
  for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
    if (add_column(object, columns[i].name, columns[i].value, lane, err) < 0) return -1;
  return 0;
}

/* Replaces each item's name, an ordinal in the trace's names, by its number in the reply's names. */
static int number_names(rl_timeline_lanes *lanes, rl_mentioned_names *names, rl_error *err) {
  for (size_t lane = 0; lane < lanes->count; lane++)
    for (size_t i = 0; i < lanes->lanes[lane].count; i++) {
      uint32_t *name = &lanes->lanes[lane].items[i].name;
      if (rl_mentioned_names_add(names, *name, name, err) < 0) return -1;
    }
  return 0;
}

static int add_lanes(cJSON *document, rl_store *store, int64_t run_id, rl_timeline_lanes *lanes, rl_error *err) {
  RL_CLEANUP(rl_mentioned_names_clear) rl_mentioned_names names = {0};
  RL_CLEANUP(rl_json_cleanup) cJSON *texts = NULL;
  if (number_names(lanes, &names, err) < 0 || rl_mentioned_names_read(store, run_id, &names, &texts, err) < 0) return -1;
  cJSON_AddNumberToObject(document, "step_ns", (double)lanes->step_ns);
  cJSON_AddItemToObject(document, "names", rl_take_ownership(&texts));
  cJSON *array = cJSON_AddArrayToObject(document, "lanes");
  for (size_t i = 0; i < lanes->count; i++)
    if (add_lane(array, &lanes->lanes[i], err) < 0) return -1;
  cJSON_AddBoolToObject(document, "lanes_truncated", lanes->truncated);
  return 0;
}

static int add_trace(cJSON *document, rl_http_request *request, const lanes_query *query, rl_error *err) {
  rl_store *store = request->server->store;
  rl_trace_window window;
  int64_t end_ns;
  if (rl_trace_window_find(store, request->id, query->from, query->to, &window, &end_ns, err) < 0) return -1;
  rl_add_trace_window(document, end_ns, &window);
  rl_timeline_lanes *lanes = malloc(sizeof *lanes);
  if (lanes == NULL) return rl_fail_errno(err, "cannot read the lanes of a timeline");
  rl_timeline_lanes_init(lanes, window.from_ns, window.to_ns, (size_t)query->pixels);
  int rc = read_lanes(store, &window, lanes, err);
  if (rc >= 0) rc = add_lanes(document, store, request->id, lanes, err);
  rl_timeline_lanes_clear(lanes);
  free(lanes);
  return rc;
}

int rl_handle_get_timeline_lanes(rl_http_request *request, rl_error *err) {
  static const char *const members[] = {"trace_end_ns", "window", "step_ns", "names", "lanes", "lanes_truncated", NULL};
  RL_CLEANUP(rl_json_cleanup) cJSON *document = cJSON_CreateObject();
  lanes_query query = {.pixels = DEFAULT_PIXELS};
  bool has_trace;
  if (rl_http_request_parse_query(request, &query, sizeof query, err) < 0) return -1;
  if (query.to > 0 && query.to <= query.from)
    return rl_http_request_fail_parameter(request, err, "to", "must be greater than from");
  if (rl_add_trace_state(document, request, members, &has_trace, err) < 0) return -1;
  if (has_trace && add_trace(document, request, &query, err) < 0) return -1;
  return rl_reply_json(request, 200, rl_take_ownership(&document), err);
}
