/* Bounds the work for one request: it ends when its time (the setting request_deadline_s) is spent, when the client has closed
 * its connection, or when the server closes. Between rl_request_budget_begin and _end the queries of the calling thread are under
 * the budget. A chunked reply calls both for each chunk, so the time in which its client reads does not count. Not thread-safe.
 */
#ifndef RL_API_REQUEST_BUDGET_H
#define RL_API_REQUEST_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

typedef struct rl_server rl_server;

/* A client that has closed its sending side may still read: it gets replies that take less than this. */
#define RL_CLOSED_CLIENT_GRACE_NS INT64_C(100000000)

typedef struct rl_request_budget {
  const rl_server *server;
  int client_socket;            /* -1: the work continues although the client disconnects */
  int64_t remaining_ns;         /* while the thread is not between begin and end */
  int64_t deadline_ns;          /* rl_monotonic_ns */
  int64_t next_socket_check_ns; /* rl_monotonic_ns; the first one after the grace */
  bool time_over, client_left;
  rl_query_limit limit;
} rl_request_budget;

/* start_ns: when the request began to wait for a thread; the time since then counts. */
rl_request_budget rl_request_budget_make(const rl_server *server, int client_socket, int64_t start_ns);
void rl_request_budget_begin(rl_request_budget *budget);
void rl_request_budget_end(rl_request_budget *budget);
/* Makes the remaining time that of a new request. Not between begin and end. */
void rl_request_budget_renew(rl_request_budget *budget);
/* Returns -1 if the work must end: RL_LIMIT_DEADLINE, or RL_HTTP 503 when the server closes or the client has left. */
int rl_request_budget_check(rl_request_budget *budget, rl_error *err);
/* Replaces the store's error by the budget's if the budget interrupted a query. */
void rl_request_budget_explain(const rl_request_budget *budget, rl_error *err);

#endif
