/* Queries the rows and the names of a run's trace. A reply numbers the names that it mentions from 0, so that it need not contain
 * the trace's other names. */
#include "api/trace_rows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/run_trace.h"
#include "api/server_internal.h"
#include "base/array.h"
#include "base/json_members.h"
#include "model/activity_levels.h"

static int start_query(rl_store *store, rl_query query, const rl_trace_window *window, rl_cursor **cursor, rl_error *err) {
  return rl_store_query(store, query,
                        RL_BINDINGS(RL_BIND_INTEGER(":run", window->run_id), RL_BIND_INTEGER(":level", window->level),
                                    RL_BIND_INTEGER(":from", window->from_ns), RL_BIND_INTEGER(":to", window->to_ns)),
                        cursor, err);
}

static rl_lane_key current_lane(rl_cursor *cursor) {
  return rl_lane_key_of((uint32_t)rl_cursor_integer(cursor, 1), (uint32_t)rl_cursor_integer(cursor, 2),
                        (uint32_t)rl_cursor_integer(cursor, 3), (uint32_t)rl_cursor_integer(cursor, 4));
}

int rl_trace_rows_read(rl_store *store, const rl_trace_window *window, rl_take_trace_item *take, void *context, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *unused;
  int found;
  if (start_query(store, RL_QUERY_TIMELINE_ROWS, window, &cursor, err) < 0) return -1;
  while ((found = rl_cursor_next(cursor, &unused, err)) > 0) {
    int64_t start_ns = rl_cursor_integer(cursor, 5), duration_ns = rl_cursor_integer(cursor, 6);
    const rl_lane_item item = {.start_ns = start_ns,
                               .end_ns = start_ns + duration_ns,
                               .row_count = 1,
                               .busy_ns = duration_ns,
                               .longest_ns = duration_ns,
                               .name = (uint32_t)rl_cursor_integer(cursor, 7)};
    if (take(context, current_lane(cursor), &item, err) < 0) return -1;
  }
  return found;
}

int rl_trace_intervals_read(rl_store *store, const rl_trace_window *window, rl_take_trace_item *take, void *context,
                            rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *unused;
  int found;
  if (start_query(store, RL_QUERY_TIMELINE_INTERVALS, window, &cursor, err) < 0) return -1;
  while ((found = rl_cursor_next(cursor, &unused, err)) > 0) {
    int64_t start_ns = rl_cursor_integer(cursor, 5);
    const rl_lane_item item = {.start_ns = start_ns,
                               .end_ns = start_ns + rl_activity_level_ns(window->level),
                               .row_count = rl_cursor_integer(cursor, 6),
                               .busy_ns = rl_cursor_integer(cursor, 7),
                               .longest_ns = rl_cursor_integer(cursor, 8),
                               .name = (uint32_t)rl_cursor_integer(cursor, 9)};
    if (take(context, current_lane(cursor), &item, err) < 0) return -1;
  }
  return found;
}

static int read_end(rl_store *store, int64_t run_id, int64_t *end_ns, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *unused;
  if (rl_store_query(store, RL_QUERY_TIMELINE_END, RL_BINDINGS(RL_BIND_INTEGER(":run", run_id)), &cursor, err) < 0) return -1;
  int found = rl_cursor_next(cursor, &unused, err);
  if (found < 0) return -1;
  *end_ns = found > 0 ? rl_cursor_integer(cursor, 1) : 0;
  return 0;
}

int rl_trace_window_find(rl_store *store, int64_t run_id, int64_t from_ns, int64_t to_ns, rl_trace_window *window,
                         int64_t *end_ns, rl_error *err) {
  if (read_end(store, run_id, end_ns, err) < 0) return -1;
  if (to_ns == 0) to_ns = *end_ns > from_ns ? *end_ns : from_ns + 1;
  *window = (rl_trace_window){run_id, from_ns, to_ns, RL_NO_LEVEL};
  return 0;
}

/* --- members of replies -------------------------------------------------------------------------------------------------- */

int rl_add_trace_state(cJSON *document, rl_http_request *request, const char *const members[], bool *has_trace, rl_error *err) {
  rl_trace_state state;
  if (rl_trace_state_read(request->server->store, request->id, &state, err) < 0) return -1;
  cJSON_AddNumberToObject(document, "run", (double)request->id);
  rl_json_add_text(document, "reason", state.reason);
  rl_json_add_text(document, "incomplete_reason", state.incomplete_reason);
  *has_trace = state.reason[0] == '\0';
  if (!*has_trace) rl_json_add_nulls(document, members);
  return 0;
}

void rl_add_trace_window(cJSON *document, int64_t end_ns, const rl_trace_window *window) {
  cJSON_AddNumberToObject(document, "trace_end_ns", (double)end_ns);
  cJSON *object = cJSON_AddObjectToObject(document, "window");
  cJSON_AddNumberToObject(object, "from_ns", (double)window->from_ns);
  cJSON_AddNumberToObject(object, "to_ns", (double)window->to_ns);
}

void rl_add_lane_key(cJSON *object, rl_lane_key key) {
  cJSON_AddStringToObject(object, "kind", rl_lane_kind_names[key.kind]);
  rl_json_add_number(object, "device", key.device != 0 ? (double)key.device - 1 : NAN);
  rl_json_add_number(object, "stream", key.stream != 0 ? (double)key.stream : NAN);
  rl_json_add_number(object, "thread", key.thread != 0 ? (double)key.thread : NAN);
}

/* --- names -------------------------------------------------------------------------------------------------------------- */

void rl_mentioned_names_clear(rl_mentioned_names *names) {
  free(names->ordinals);
  free(names->number_plus_one);
  *names = (rl_mentioned_names){0};
}

/* Enlarges names->number_plus_one so that number_plus_one[ordinal] exists. */
static int reserve_ordinal(rl_mentioned_names *names, uint32_t ordinal, rl_error *err) {
  size_t old = names->number_capacity;
  while (names->number_capacity <= ordinal)
    if (rl_array_reserve(&names->number_plus_one, names->number_capacity, &names->number_capacity, sizeof *names->number_plus_one,
                         err) < 0)
      return -1;
  if (names->number_capacity > old)
    memset(names->number_plus_one + old, 0, (names->number_capacity - old) * sizeof *names->number_plus_one);
  return 0;
}

int rl_mentioned_names_add(rl_mentioned_names *names, uint32_t ordinal, uint32_t *number, rl_error *err) {
  if (reserve_ordinal(names, ordinal, err) < 0) return -1;
  if (names->number_plus_one[ordinal] == 0) {
    if (rl_array_reserve(&names->ordinals, names->count, &names->capacity, sizeof *names->ordinals, err) < 0) return -1;
    names->ordinals[names->count++] = ordinal;
    names->number_plus_one[ordinal] = (uint32_t)names->count;
  }
  *number = names->number_plus_one[ordinal] - 1;
  return 0;
}

/* Sets texts[number] of each mentioned name. */
static int read_texts(rl_store *store, int64_t run_id, const rl_mentioned_names *names, cJSON **texts, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *name;
  int found;
  if (rl_store_query(store, RL_QUERY_TIMELINE_NAMES, RL_BINDINGS(RL_BIND_INTEGER(":run", run_id)), &cursor, err) < 0) return -1;
  for (size_t ordinal = 0; (found = rl_cursor_next(cursor, &name, err)) > 0; ordinal++)
    if (ordinal < names->number_capacity && names->number_plus_one[ordinal] != 0)
      texts[names->number_plus_one[ordinal] - 1] = cJSON_CreateString(name);
  return found;
}

int rl_mentioned_names_read(rl_store *store, int64_t run_id, const rl_mentioned_names *names, cJSON **array, rl_error *err) {
  *array = cJSON_CreateArray();
  if (names->count == 0) return 0;
  cJSON **texts = calloc(names->count, sizeof *texts);
  if (texts == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the names of a trace");
  int rc = read_texts(store, run_id, names, texts, err);
  /* A text is NULL if retention has deleted the names meanwhile. */
  for (size_t i = 0; i < names->count; i++)
    cJSON_AddItemToArray(*array, texts[i] != NULL ? texts[i] : cJSON_CreateString("(deleted)"));
  free(texts);
  return rc;
}
