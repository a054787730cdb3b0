/* Limits the work for one request. The work ends when its time (the setting request_deadline_s) has passed, when the client has
 * closed its connection, or when the server stops. The limit applies to the queries that the calling thread runs between
 * rl_request_budget_begin and rl_request_budget_end. A chunked reply calls both functions for each chunk, so the time in which
 * the client reads the reply does not count. Not thread-safe. */
#ifndef RL_API_REQUEST_BUDGET_H
#define RL_API_REQUEST_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

typedef struct rl_server rl_server;

/* Time from start_ns of rl_request_budget_make to the first check whether the client has closed its connection. Most requests end
 * earlier, and then a client that closes only its sending side still gets its reply. */
#define RL_CLOSED_CLIENT_GRACE_NS INT64_C(100000000)

typedef struct rl_request_budget {
  const rl_server *server;
  int client_socket;            /* -1: the work continues even if the client disconnects */
  int64_t remaining_ns;         /* time that is left; valid outside of begin and end */
  int64_t deadline_ns;          /* rl_monotonic_ns at which the time is over; valid between begin and end */
  int64_t next_socket_check_ns; /* rl_monotonic_ns of the next check of the socket */
  bool time_over, client_left;
  rl_query_limit query_limit; /* the function that the store calls while a query runs */
} rl_request_budget;

/* Makes a budget. start_ns: the time at which the request began to wait for a thread; the limit counts from then. */
rl_request_budget rl_request_budget_make(const rl_server *server, int client_socket, int64_t start_ns);
void rl_request_budget_begin(rl_request_budget *budget);
void rl_request_budget_end(rl_request_budget *budget);
/* Resets the remaining time to the full limit. Must not be called between begin and end. */
void rl_request_budget_renew(rl_request_budget *budget);
/* Returns -1 if the work must end: with RL_LIMIT_DEADLINE, or with RL_HTTP 503 if the server stops or the client has
 * disconnected. */
int rl_request_budget_check(rl_request_budget *budget, rl_error *err);
/* If the budget interrupted a query, replaces the store's error by the reason. */
void rl_request_budget_explain(const rl_request_budget *budget, rl_error *err);

#endif
