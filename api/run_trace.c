/* Reads the stored rows of a trace, or determines why there are none. */
#include "api/run_trace.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "store/store.h"

enum { MAX_TRACE_ROWS = 2000000, CLAIM_RETRY_US = 5000 };

static _Atomic int64_t loaded_rows; /* sum over all traces in memory */

/* Waits until the trace's rows fit into RL_MAX_LOADED_ROWS, or no other trace is in memory. */
static int claim_rows(rl_run_trace *trace, rl_request_budget *budget, rl_error *err) {
  int64_t rows = trace->state.row_count, before = atomic_load(&loaded_rows);
  while (!((before == 0 || before + rows <= RL_MAX_LOADED_ROWS) &&
           atomic_compare_exchange_strong(&loaded_rows, &before, before + rows))) {
    if (rl_request_budget_check(budget, err) < 0) return -1;
    usleep(CLAIM_RETRY_US);
    before = atomic_load(&loaded_rows);
  }
  trace->claimed_rows = rows;
  return 0;
}

void rl_run_trace_clear(rl_run_trace *trace) {
  atomic_fetch_sub(&loaded_rows, trace->claimed_rows);
  for (size_t i = 0; i < trace->name_count; i++) free(trace->names[i]);
  free(trace->names);
  free(trace->sizes);
  free(trace->items);
  rl_trace_index_clear(&trace->index);
  *trace = (rl_run_trace){0};
}

int rl_trace_state_read(rl_store *store, int64_t run_id, rl_trace_state *state, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const rl_binding run = RL_BIND_INTEGER(":run", run_id);
  const char *reason;
  *state = (rl_trace_state){0};
  if (rl_store_query(store, RL_QUERY_TIMELINE_PASS, &run, 1, &cursor, err) < 0) return -1;
  int found = rl_cursor_next(cursor, &reason, err);
  if (found < 0) return -1;
  if (found == 0) return rl_fail(err, RL_HTTP, 404, "Run %lld not found.", (long long)run_id);
  state->row_count = rl_cursor_integer(cursor, 1);
  if (reason[0] != '\0') snprintf(state->reason, sizeof state->reason, "%s", reason);
  else if (state->row_count == 0) snprintf(state->reason, sizeof state->reason, "the activity pass recorded nothing");
  else if (rl_cursor_integer(cursor, 2) == 0)
    snprintf(state->reason, sizeof state->reason, "retention has deleted the rows of the trace");
  if (state->reason[0] != '\0') return 0;
  double dropped = rl_cursor_real(cursor, 3), untimed = rl_cursor_real(cursor, 4);
  if (dropped > 0 || untimed > 0)
    snprintf(state->incomplete_reason, sizeof state->incomplete_reason, "%.0f records were dropped, %.0f have no times",
             fmax(dropped, 0), fmax(untimed, 0));
  return 0;
}

int rl_trace_state_check_size(const rl_trace_state *state, rl_error *err) {
  if (state->reason[0] != '\0' || state->row_count <= MAX_TRACE_ROWS) return 0;
  return rl_fail(err, RL_HTTP, 422,
                 "The trace has %lld rows; a trace of at most %d rows can be analysed. Trace fewer iterations.",
                 (long long)state->row_count, MAX_TRACE_ROWS);
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

typedef struct shared_values { /* an entry of activity_dictionary */
  uint32_t name, graph_node, stream, thread;
} shared_values;

typedef struct value_dictionary {
  shared_values *entries;
  size_t count, capacity;
} value_dictionary;

static void free_dictionary(value_dictionary *dictionary) { free(dictionary->entries); }

/* Reads the values that rows share. The number of an entry is also the index of its size. */
static int read_dictionary(rl_store *store, const rl_binding *run, value_dictionary *dictionary, rl_run_trace *trace,
                           rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *unused;
  int found;
  if (rl_store_query(store, RL_QUERY_TIMELINE_VALUES, run, 1, &cursor, err) < 0) return -1;
  while ((found = rl_cursor_next(cursor, &unused, err)) > 0) {
    if (rl_array_reserve(&dictionary->entries, dictionary->count, &dictionary->capacity, sizeof *dictionary->entries, err) < 0 ||
        rl_array_reserve(&trace->sizes, trace->size_count, &trace->size_capacity, sizeof *trace->sizes, err) < 0)
      return -1;
    dictionary->entries[dictionary->count++] = (shared_values){.name = (uint32_t)rl_cursor_integer(cursor, 2),
                                                               .graph_node = (uint32_t)rl_cursor_integer(cursor, 3),
                                                               .stream = (uint32_t)rl_cursor_integer(cursor, 4),
                                                               .thread = (uint32_t)rl_cursor_integer(cursor, 5)};
    trace->sizes[trace->size_count++] = rl_cursor_integer(cursor, 6);
  }
  return found;
}

static int add_event(rl_run_trace *trace, const value_dictionary *dictionary, rl_cursor *cursor, rl_error *err) {
  int64_t start_ns = rl_cursor_integer(cursor, 1), entry = rl_cursor_integer(cursor, 5);
  if (rl_array_reserve(&trace->items, trace->count, &trace->capacity, sizeof *trace->items, err) < 0) return -1;
  if (entry < 0 || (uint64_t)entry >= dictionary->count)
    return rl_fail(err, RL_STORAGE, 0, "an activity row refers to entry %lld of the dictionary, which does not exist",
                   (long long)entry);
  const shared_values *shared = &dictionary->entries[entry];
  rl_trace_event *event = &trace->items[trace->count++];
  *event = (rl_trace_event){.start_ns = start_ns,
                            .end_ns = start_ns + rl_cursor_integer(cursor, 2),
                            .kind = (uint32_t)rl_cursor_integer(cursor, 3),
                            .name = shared->name,
                            .correlation = (uint32_t)rl_cursor_integer(cursor, 4),
                            .graph_node = shared->graph_node,
                            .stream = shared->stream,
                            .thread = shared->thread};
  if (event->kind == RL_ACTIVITY_MEMCPY) event->size = (uint32_t)entry;
  return 0;
}

static int read_events(rl_store *store, const rl_binding *run, rl_run_trace *trace, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  RL_CLEANUP(free_dictionary) value_dictionary dictionary = {0};
  const char *unused;
  int found;
  if (read_dictionary(store, run, &dictionary, trace, err) < 0) return -1;
  if (rl_store_query(store, RL_QUERY_TIMELINE_EVENTS, run, 1, &cursor, err) < 0) return -1;
  while ((found = rl_cursor_next(cursor, &unused, err)) > 0)
    if (add_event(trace, &dictionary, cursor, err) < 0) return -1;
  return found;
}

/* Reads the rows. If retention deletes them meanwhile, the trace is empty, not incomplete. */
static int read_trace(rl_store *store, rl_request_budget *budget, int64_t run_id, rl_run_trace *trace, rl_error *err) {
  rl_binding run = RL_BIND_INTEGER(":run", run_id);
  if (trace->state.reason[0] != '\0') return 0;
  if (claim_rows(trace, budget, err) < 0 || read_names(store, &run, trace, err) < 0 || read_events(store, &run, trace, err) < 0)
    return -1;
  if (trace->count == 0)
    snprintf(trace->state.reason, sizeof trace->state.reason, "the trace contains no operation and no API call");
  return 0;
}

int rl_run_trace_read(rl_store *store, rl_request_budget *budget, int64_t run_id, rl_run_trace *trace, rl_error *err) {
  *trace = (rl_run_trace){0};
  if (rl_trace_state_read(store, run_id, &trace->state, err) < 0 || rl_trace_state_check_size(&trace->state, err) < 0) return -1;
  if (read_trace(store, budget, run_id, trace, err) < 0) return -1;
  const char *incomplete_reason = trace->state.incomplete_reason;
  trace->events = (rl_trace_events){.items = trace->items,
                                    .count = trace->count,
                                    .names = (const char *const *)trace->names,
                                    .name_count = trace->name_count,
                                    .incomplete_reason = incomplete_reason[0] != '\0' ? incomplete_reason : NULL,
                                    .sizes = trace->sizes,
                                    .size_count = trace->size_count};
  if (rl_trace_index_build(&trace->events, &trace->index, err) < 0) return -1;
  free(rl_take_ownership(&trace->items)); /* the index has a copy */
  trace->events.items = NULL;
  return 0;
}
