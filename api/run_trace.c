/* Reads the stored rows of a trace, and says why there are none. */
#include "api/run_trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "store/store.h"

enum { MAX_EVENTS = 2000000 };

void rl_run_trace_clear(rl_run_trace *trace) {
  for (size_t i = 0; i < trace->name_count; i++) free(trace->names[i]);
  free(trace->names);
  free(trace->items);
  rl_trace_index_clear(&trace->index);
  *trace = (rl_run_trace){0};
}

/* Sets trace->reason if the run has no rows, and incomplete_reason if some are missing. RL_HTTP 422: there are too many. */
static int read_pass(rl_store *store, const rl_binding *run, rl_run_trace *trace, rl_error *err) {
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

static int read_names(rl_store *store, const rl_binding *run, rl_run_trace *trace, rl_error *err) {
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

static int read_events(rl_store *store, const rl_binding *run, rl_run_trace *trace, rl_error *err) {
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
                                                    .graph_node = (uint32_t)rl_cursor_integer(cursor, 6),
                                                    .stream = (uint32_t)rl_cursor_integer(cursor, 7),
                                                    .thread = (uint32_t)rl_cursor_integer(cursor, 8)};
  }
  return found;
}

/* Retention may delete the rows meanwhile: events are all there or none. */
static int read_trace(rl_store *store, int64_t run_id, rl_run_trace *trace, rl_error *err) {
  rl_binding run = RL_BIND_INTEGER(":run", run_id);
  if (read_pass(store, &run, trace, err) < 0) return -1;
  if (trace->reason[0] != '\0') return 0;
  if (read_names(store, &run, trace, err) < 0 || read_events(store, &run, trace, err) < 0) return -1;
  if (trace->count == 0) snprintf(trace->reason, sizeof trace->reason, "the trace has no operation and no API call");
  return 0;
}

int rl_run_trace_read(rl_store *store, int64_t run_id, rl_run_trace *trace, rl_error *err) {
  bool exists;
  *trace = (rl_run_trace){0};
  if (rl_store_has_run(store, run_id, &exists, err) < 0) return -1;
  if (!exists) return rl_fail(err, RL_HTTP, 404, "There is no run %lld.", (long long)run_id);
  if (read_trace(store, run_id, trace, err) < 0) return -1;
  trace->events = (rl_trace_events){trace->items, trace->count, (const char *const *)trace->names, trace->name_count,
                                    trace->incomplete_reason[0] != '\0' ? trace->incomplete_reason : NULL};
  if (rl_trace_index_build(&trace->events, &trace->index, err) < 0) return -1;
  free(rl_take_ownership(&trace->items)); /* the index has a copy */
  trace->events.items = NULL;
  return 0;
}
