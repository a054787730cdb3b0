/* Reads rows of a run's trace one by one, and the names that a reply mentions. */
#ifndef RL_API_TRACE_ROWS_H
#define RL_API_TRACE_ROWS_H

#include <cjson/cJSON.h>

#include "analyze/timeline_lanes.h"
#include "api/http_request.h"
#include "base/cleanup.h"
#include "model/activity_levels.h"
#include "store/store.h"

/* The rows of a run that overlap [from_ns, to_ns). */
typedef struct rl_trace_window {
  int64_t run_id, from_ns, to_ns;
  int level; /* of intervals: rl_trace_intervals_read adds the rows in them up, rl_trace_rows_read reads the others. RL_NO_LEVEL:
              * all rows are read */
} rl_trace_window;

/* Takes a row, or the sum of the rows of an interval. item->name: ordinal in the trace's names. */
typedef int rl_take_trace_item(void *context, rl_lane_key key, const rl_lane_item *item, rl_error *err);

/* Call take for each row, or for each interval, in no particular order, until it returns -1. */
int rl_trace_rows_read(rl_store *store, const rl_trace_window *window, rl_take_trace_item *take, void *context, rl_error *err);
int rl_trace_intervals_read(rl_store *store, const rl_trace_window *window, rl_take_trace_item *take, void *context,
                            rl_error *err);
/* Sets *window to all rows in [from_ns, to_ns), and *end_ns to when the last row of the trace ends. to_ns 0: until that end. */
int rl_trace_window_find(rl_store *store, int64_t run_id, int64_t from_ns, int64_t to_ns, rl_trace_window *window,
                         int64_t *end_ns, rl_error *err);

/* --- members of replies -------------------------------------------------------------------------------------------------- */
/* Adds the run of the request and why there is no trace; then also the members, which end with NULL, as null. Fails with
 * RL_HTTP 404 if there is no such run. */
int rl_add_trace_state(cJSON *document, rl_http_request *request, const char *const members[], bool *has_trace, rl_error *err);
void rl_add_trace_window(cJSON *document, int64_t end_ns, const rl_trace_window *window);
void rl_add_lane_key(cJSON *object, rl_lane_key key);

/* Numbers the names that a reply mentions, in the order of the first mention. */
typedef struct rl_mentioned_names {
  uint32_t *ordinals; /* ordinals[number]: the name's ordinal in the trace's names */
  size_t count, capacity;
  uint32_t *numbers; /* numbers[ordinal]: 1 + the number of the name; 0: the reply does not mention it */
  size_t number_capacity;
} rl_mentioned_names;

/* Sets *number to the name's number. Fails with RL_ERRNO if memory is exhausted. */
int rl_mentioned_names_add(rl_mentioned_names *names, uint32_t ordinal, uint32_t *number, rl_error *err);
/* Sets *array to the texts by number, which the caller deletes. */
int rl_mentioned_names_read(rl_store *store, int64_t run_id, const rl_mentioned_names *names, cJSON **array, rl_error *err);
void rl_mentioned_names_clear(rl_mentioned_names *names);

#endif
