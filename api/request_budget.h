/* Bounds the work for one request: it ends when its time (the setting request_deadline_s) is spent, when the client has closed
 * its connection, or when the server closes. Between rl_request_budget_begin and _end the queries of the calling thread are under
 * the budget. A reply in pieces begins and ends for each piece; only the time between them is spent. Not thread-safe. */
#ifndef RL_API_REQUEST_BUDGET_H
#define RL_API_REQUEST_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

typedef struct rl_server rl_server;

typedef struct rl_request_budget {
  const rl_server *server;
  int client_socket;            /* -1: the work is done although the client leaves */
  int64_t left_ns;              /* outside begin and end */
  int64_t deadline_ns;          /* rl_monotonic_ns */
  int64_t next_socket_check_ns; /* rl_monotonic_ns */
  bool time_over, client_left;
  rl_query_limit limit;
} rl_request_budget;

/* start_ns: when the request began to wait for a thread; the time since then is spent. */
rl_request_budget rl_request_budget_make(const rl_server *server, int client_socket, int64_t start_ns);
void rl_request_budget_begin(rl_request_budget *budget);
void rl_request_budget_end(rl_request_budget *budget);
/* Returns -1 if the work must end: RL_LIMIT_DEADLINE, or RL_HTTP 503 when the server closes or the client has left. */
int rl_request_budget_check(rl_request_budget *budget, rl_error *err);
/* Puts the reason in place of the store's error if the budget interrupted a query. */
void rl_request_budget_explain(const rl_request_budget *budget, rl_error *err);

#endif
