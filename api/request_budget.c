/* Implements request_budget.h. The store calls is_exceeded while a query runs, and interrupts the query when is_exceeded returns
 * true. is_exceeded checks the client's socket at most every 10 ms. */
#include "api/request_budget.h"

#include <poll.h>

#include "api/server_internal.h"
#include "base/clock.h"

static const int64_t socket_check_interval_ns = 10000000, second_ns = 1000000000;

static bool client_has_left(int client_socket) {
  struct pollfd entry = {.fd = client_socket, .events = POLLRDHUP};
  return poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static bool is_exceeded(void *context) {
  rl_request_budget *budget = context;
  int64_t now_ns = rl_monotonic_ns();
  if (now_ns >= budget->deadline_ns) budget->time_over = true;
  if (now_ns >= budget->next_socket_check_ns && budget->client_socket >= 0) {
    budget->next_socket_check_ns = now_ns + socket_check_interval_ns;
    if (client_has_left(budget->client_socket)) budget->client_left = true;
  }
  return budget->time_over || budget->client_left || atomic_load(&budget->server->interrupt_queries);
}

rl_request_budget rl_request_budget_make(const rl_server *server, int client_socket, int64_t start_ns) {
  int64_t spent_ns = rl_monotonic_ns() - start_ns;
  return (rl_request_budget){.server = server,
                             .client_socket = client_socket,
                             .next_socket_check_ns = start_ns + RL_CLOSED_CLIENT_GRACE_NS,
                             .remaining_ns = server->config->request_deadline_s * second_ns - spent_ns};
}

void rl_request_budget_renew(rl_request_budget *budget) {
  budget->remaining_ns = budget->server->config->request_deadline_s * second_ns;
}

void rl_request_budget_begin(rl_request_budget *budget) {
  budget->deadline_ns = rl_monotonic_ns() + budget->remaining_ns;
  budget->query_limit = (rl_query_limit){.is_exceeded = is_exceeded, .context = budget};
  rl_store_limit_queries(&budget->query_limit);
}

void rl_request_budget_end(rl_request_budget *budget) {
  rl_store_limit_queries(NULL);
  budget->remaining_ns = budget->deadline_ns - rl_monotonic_ns();
}

static int fail(const rl_request_budget *budget, rl_error *err) {
  if (budget->client_left) return rl_fail(err, RL_HTTP, 503, "The client has closed the connection.");
  if (budget->time_over)
    return rl_fail(err, RL_LIMIT, RL_LIMIT_DEADLINE,
                   "The request took longer than request_deadline_s (%lld s): ask for fewer rows, or try again later.",
                   (long long)budget->server->config->request_deadline_s);
  return rl_fail(err, RL_HTTP, 503, "The daemon is stopping.");
}

int rl_request_budget_check(rl_request_budget *budget, rl_error *err) { return is_exceeded(budget) ? fail(budget, err) : 0; }

void rl_request_budget_explain(const rl_request_budget *budget, rl_error *err) {
  if (err->domain == RL_STORAGE && err->code == RL_STORAGE_INTERRUPTED) fail(budget, err);
}
