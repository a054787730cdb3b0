/* The trace of a run in memory. All traces in memory together have at most RL_LOADED_ROWS rows, or there is only one: a further
 * one waits until others are cleared. So a thread may hold one trace, not two. */
#ifndef RL_API_RUN_TRACE_H
#define RL_API_RUN_TRACE_H

#include "analyze/trace_index.h"
#include "api/request_budget.h"
#include "base/cleanup.h"
#include "store/store.h"

enum { RL_LOADED_ROWS = 1000000 };

/* The state of the rows of a run's trace, before they are read. */
typedef struct rl_trace_state {
  int64_t row_count;
  char reason[256];            /* why there is no trace; "": there is one */
  char incomplete_reason[128]; /* which records are missing; "": none */
} rl_trace_state;

typedef struct rl_run_trace {
  rl_trace_event *items;
  size_t count, capacity;
  char **names;
  size_t name_count, name_capacity;
  rl_trace_state state;
  int64_t claimed_rows;   /* of RL_LOADED_ROWS */
  rl_trace_events events; /* of the members above */
  rl_trace_index index;
} rl_run_trace;

/* RL_HTTP 404: there is no such run. */
int rl_trace_state_read(rl_store *store, int64_t run_id, rl_trace_state *state, rl_error *err);
/* RL_HTTP 422: the trace has more rows than are analysed at once. */
int rl_trace_state_check_size(const rl_trace_state *state, rl_error *err);

/* Reads the trace of a run. Do not move it: the index points into it. The caller clears it, also after a failure. RL_HTTP 404:
 * there is no such run; 422: the trace has too many rows. As rl_request_budget_check while it waits for other traces. */
int rl_run_trace_read(rl_store *store, rl_request_budget *budget, int64_t run_id, rl_run_trace *trace, rl_error *err);
void rl_run_trace_clear(rl_run_trace *trace);

#endif
