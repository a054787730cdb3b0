/* Tests what ends a request: its time limit, the end of its client's connection, and the stop of the server. */
#include "store_fixture.h"

#include <sys/socket.h>
#include <unistd.h>

#include "api/request_budget.h"
#include "api/server_internal.h"
#include "base/clock.h"

enum { JOBS = 300 };
static const int64_t second_ns = 1000000000;
static const rl_config config = {.request_deadline_s = 10};

static void connect_pair(int sockets[2]) { assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0); }

static void a_request_ends_at_its_time_limit(void **state) {
  rl_server server = {.config = &config};
  int sockets[2];
  (void)state;
  connect_pair(sockets);
  rl_request_budget budget = rl_request_budget_make(&server, sockets[0], rl_monotonic_ns() - 9 * second_ns);
  rl_request_budget_begin(&budget);
  ASSERT_OK(rl_request_budget_check(&budget, &err));
  rl_request_budget_end(&budget);
  assert_in_range(budget.remaining_ns, 1, second_ns);
  budget = rl_request_budget_make(&server, sockets[0], rl_monotonic_ns() - 10 * second_ns);
  rl_request_budget_begin(&budget);
  ASSERT_FAILS(rl_request_budget_check(&budget, &err), RL_LIMIT, RL_LIMIT_DEADLINE);
  rl_request_budget_end(&budget);
  close(sockets[0]);
  close(sockets[1]);
}

/* Only the time between begin and end is spent. */
static void time_outside_of_begin_and_end_is_not_spent(void **state) {
  rl_server server = {.config = &config};
  (void)state;
  rl_request_budget budget = rl_request_budget_make(&server, -1, rl_monotonic_ns() - 9 * second_ns);
  for (int i = 0; i < 3; i++) {
    rl_request_budget_begin(&budget);
    ASSERT_OK(rl_request_budget_check(&budget, &err));
    rl_request_budget_end(&budget);
    usleep(600000);
  }
}

static void a_request_ends_when_its_client_has_left(void **state) {
  rl_server server = {.config = &config};
  int sockets[2];
  (void)state;
  connect_pair(sockets);
  int64_t begin_ns = rl_monotonic_ns();
  rl_request_budget budget = rl_request_budget_make(&server, sockets[0], begin_ns), unwatched = budget;
  unwatched.client_socket = -1;
  assert_int_equal(write(sockets[1], "more", 4), 4); /* a pipelined request is no reason to stop */
  rl_request_budget_begin(&budget);
  ASSERT_OK(rl_request_budget_check(&budget, &err));
  close(sockets[1]);
  if (rl_request_budget_check(&budget, &err) < 0) assert_true(rl_monotonic_ns() - begin_ns >= RL_CLOSED_CLIENT_GRACE_NS);
  usleep(RL_CLOSED_CLIENT_GRACE_NS / 1000);
  ASSERT_FAILS(rl_request_budget_check(&budget, &err), RL_HTTP, 503);
  assert_true(budget.client_left);
  rl_request_budget_begin(&unwatched);
  ASSERT_OK(rl_request_budget_check(&unwatched, &err));
  rl_request_budget_end(&unwatched);
  close(sockets[0]);
}

static int read_jobs(rl_store *store, int *count, rl_error *error) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *json;
  int found;
  *count = 0;
  rl_binding limit = RL_BIND_INTEGER(":limit", 1000);
  if (rl_store_query(store, RL_QUERY_JOBS, &limit, 1, &cursor, error) < 0) return -1;
  while ((found = rl_cursor_next(cursor, &json, error)) > 0) ++*count;
  return found;
}

/* A query in progress is interrupted. Afterwards, its database connection executes other queries. */
static void queries_are_interrupted(void **state) {
  fixture *f = *state;
  rl_server server = {.config = &config};
  int count;
  for (int i = 0; i < JOBS; i++) submit(f->store, "cpu", 1u << RL_PASS_TIMING);
  rl_request_budget budget = rl_request_budget_make(&server, -1, rl_monotonic_ns());
  rl_request_budget_begin(&budget);
  ASSERT_OK(read_jobs(f->store, &count, &err));
  assert_int_equal(count, JOBS);
  atomic_store(&server.interrupt_queries, true);
  ASSERT_FAILS(read_jobs(f->store, &count, &err), RL_STORAGE, RL_STORAGE_INTERRUPTED);
  rl_request_budget_explain(&budget, &err);
  assert_int_equal(err.domain, RL_HTTP);
  assert_int_equal(err.code, 503);
  budget.deadline_ns = 0;
  ASSERT_FAILS(read_jobs(f->store, &count, &err), RL_STORAGE, RL_STORAGE_INTERRUPTED);
  rl_request_budget_explain(&budget, &err);
  assert_int_equal(err.domain, RL_LIMIT);
  assert_int_equal(err.code, RL_LIMIT_DEADLINE);
  rl_request_budget_end(&budget);
  ASSERT_OK(read_jobs(f->store, &count, &err)); /* no limit any more */
  assert_int_equal(count, JOBS);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_request_ends_at_its_time_limit),
                                     cmocka_unit_test(time_outside_of_begin_and_end_is_not_spent),
                                     cmocka_unit_test(a_request_ends_when_its_client_has_left),
                                     cmocka_unit_test_setup_teardown(queries_are_interrupted, open_fixture, close_fixture)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
