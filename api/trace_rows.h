/* Reads the rows of a run's trace one by one, and numbers the names that a reply mentions. The handlers of timelines call this
 * module in a pool's thread. */
#ifndef RL_API_TRACE_ROWS_H
#define RL_API_TRACE_ROWS_H

#include <cjson/cJSON.h>

#include "analyze/timeline_lanes.h"
#include "api/http_request.h"
#include "base/cleanup.h"
#include "model/activity_levels.h"
#include "store/store.h"

/* The rows of a run that overlap [from_ns, to_ns). A row that is shorter than the intervals of `level` is not read by itself: the
 * store has added it to the sum of an interval, and rl_trace_intervals_read reads these sums. rl_trace_rows_read reads the other
 * rows one by one. */
typedef struct rl_trace_window {
  int64_t run_id, from_ns, to_ns;
  int level; /* level of detail (model/activity_levels.h). RL_NO_LEVEL: all rows are read one by one */
} rl_trace_window;

/* Called for a row, or for the sum of the rows in an interval. item->name: ordinal in the trace's names. Returns -1 to end the
 * read. */
typedef int rl_take_trace_item(void *context, rl_lane_key key, const rl_lane_item *item, rl_error *err);

/* Call `take` for each row, or for each interval, in no particular order. Return -1 when `take` does. */
int rl_trace_rows_read(rl_store *store, const rl_trace_window *window, rl_take_trace_item *take, void *context, rl_error *err);
int rl_trace_intervals_read(rl_store *store, const rl_trace_window *window, rl_take_trace_item *take, void *context,
                            rl_error *err);
/* Sets *window to all rows in [from_ns, to_ns), and *end_ns to the time at which the last row of the trace ends. to_ns 0: until
 * *end_ns. */
int rl_trace_window_find(rl_store *store, int64_t run_id, int64_t from_ns, int64_t to_ns, rl_trace_window *window,
                         int64_t *end_ns, rl_error *err);

/* --- members of replies -------------------------------------------------------------------------------------------------- */
/* Adds the members "run", "reason" and "incomplete_reason" to the reply, and sets *has_trace. If the run has no trace, also adds
 * `members`, a list that ends with NULL, with the value null. Fails with RL_HTTP 404 if there is no such run. */
int rl_add_trace_state(cJSON *document, rl_http_request *request, const char *const members[], bool *has_trace, rl_error *err);
void rl_add_trace_window(cJSON *document, int64_t end_ns, const rl_trace_window *window);
void rl_add_lane_key(cJSON *object, rl_lane_key key);

/* The names that a reply mentions, numbered in the order of their first mention. */
typedef struct rl_mentioned_names {
  uint32_t *ordinals; /* ordinals[number]: the name's ordinal in the trace's names */
  size_t count, capacity;
  uint32_t *number_plus_one; /* number_plus_one[ordinal]: 1 + the number of the name; 0: the reply does not mention it */
  size_t number_capacity;
} rl_mentioned_names;

/* Sets *number to the name's number. Fails with RL_ERRNO if memory is exhausted. */
int rl_mentioned_names_add(rl_mentioned_names *names, uint32_t ordinal, uint32_t *number, rl_error *err);
/* Sets *array to the texts of the names in the order of their numbers. The caller deletes the array. */
int rl_mentioned_names_read(rl_store *store, int64_t run_id, const rl_mentioned_names *names, cJSON **array, rl_error *err);
void rl_mentioned_names_clear(rl_mentioned_names *names);

#endif
