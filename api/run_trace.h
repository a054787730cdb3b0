/* The trace of a run in memory. All traces in memory together have at most RL_MAX_LOADED_ROWS rows, unless there is only one
 * trace. A thread that reads a further trace waits until enough other traces are cleared. So a thread that holds a trace must not
 * read a second one: it could wait for itself. */
#ifndef RL_API_RUN_TRACE_H
#define RL_API_RUN_TRACE_H

#include "analyze/trace_index.h"
#include "api/request_budget.h"
#include "base/cleanup.h"
#include "store/store.h"

enum { RL_MAX_LOADED_ROWS = 1000000 };

/* State of the stored rows of a run's trace. */
typedef struct rl_trace_state {
  int64_t row_count;
  char reason[256];            /* why the run has no trace; "": it has one */
  char incomplete_reason[128]; /* sentence with the number of missing records; "": no record is missing */
} rl_trace_state;

typedef struct rl_run_trace {
  rl_trace_event *items; /* the events while they are read; NULL once `index` has a copy */
  size_t count, capacity;
  char **names;
  size_t name_count, name_capacity;
  int64_t *sizes; /* of copies, in bytes */
  size_t size_count, size_capacity;
  rl_trace_state state;
  int64_t claimed_rows;   /* rows of this trace that count towards RL_MAX_LOADED_ROWS */
  rl_trace_events events; /* points to the members above */
  rl_trace_index index;
} rl_run_trace;

/* Reads the state of a run's trace. Fails with RL_HTTP 404 if there is no such run. */
int rl_trace_state_read(rl_store *store, int64_t run_id, rl_trace_state *state, rl_error *err);
/* Checks the number of rows. Fails with RL_HTTP 422 if the trace has more than 2,000,000 rows. */
int rl_trace_state_check_size(const rl_trace_state *state, rl_error *err);

/* Reads the trace of a run. *trace must not be moved, because the index points into it. The caller clears it, even after a
 * failure. Fails with RL_HTTP 404 if there is no such run; with RL_HTTP 422 if the trace has too many rows. While it waits for
 * other traces, it also fails like rl_request_budget_check. */
int rl_run_trace_read(rl_store *store, rl_request_budget *budget, int64_t run_id, rl_run_trace *trace, rl_error *err);
void rl_run_trace_clear(rl_run_trace *trace);

#endif
