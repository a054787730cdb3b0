/* Tests that the traces in memory have at most RL_MAX_LOADED_ROWS rows together. A trace that would exceed the limit waits until
 * others are cleared. */
#include "store_fixture.h"

#include "api/run_trace.h"
#include "api/server_internal.h"
#include "base/clock.h"

static const rl_config config = {.request_deadline_s = 10};
static const rl_server server = {.config = &config};

/* A budget that is spent in 30 ms. */
static rl_request_budget short_budget(void) {
  return rl_request_budget_make(&server, -1, rl_monotonic_ns() - INT64_C(9970000000));
}

/* Stores a trace that claims to have this many rows. Returns its run. */
static int64_t store_trace(fixture *f, int64_t claimed_rows) {
  char sql[160];
  submit(f->store, "cpu", 1u << RL_PASS_ACTIVITY);
  execute_pass(f->store, "cpu", 1);
  sqlite3 *db = connect_to(f);
  snprintf(sql, sizeof sql, "UPDATE passes SET activity_rows = %lld WHERE id = (SELECT max(id) FROM passes WHERE activity_kept)",
           (long long)claimed_rows);
  assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
  sqlite3_close(db);
  return query_integer(f, "SELECT run_id FROM passes WHERE activity_kept ORDER BY id DESC LIMIT 1");
}

static int read_trace(fixture *f, int64_t run, rl_run_trace *trace) {
  rl_request_budget budget = short_budget();
  rl_request_budget_begin(&budget);
  int rc = rl_run_trace_read(f->store, &budget, run, trace, &err);
  rl_request_budget_end(&budget);
  return rc;
}

static void a_trace_waits_until_others_are_cleared(void **state) {
  fixture *f = *state;
  rl_run_trace first, second, third;
  int64_t nearly_full_run = store_trace(f, RL_MAX_LOADED_ROWS - 1000), run_of_1000_rows = store_trace(f, 1000),
          run_of_1_row = store_trace(f, 1), run_of_too_many_rows = store_trace(f, RL_MAX_LOADED_ROWS + 1);
  ASSERT_OK(read_trace(f, nearly_full_run, &first));
  assert_true(first.claimed_rows == RL_MAX_LOADED_ROWS - 1000);
  ASSERT_OK(read_trace(f, run_of_1000_rows, &second));
  ASSERT_FAILS(read_trace(f, run_of_1_row, &third), RL_LIMIT, RL_LIMIT_DEADLINE);
  rl_run_trace_clear(&third); /* has no effect: the failed read loaded no rows */
  rl_run_trace_clear(&second);
  ASSERT_OK(read_trace(f, run_of_1_row, &third));
  rl_run_trace_clear(&third);
  ASSERT_FAILS(read_trace(f, run_of_too_many_rows, &third), RL_LIMIT, RL_LIMIT_DEADLINE);
  rl_run_trace_clear(&third);
  rl_run_trace_clear(&first);
  ASSERT_OK(read_trace(f, run_of_too_many_rows, &third)); /* accepted, because it is the only trace in memory */
  rl_run_trace_clear(&third);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_trace_waits_until_others_are_cleared, open_fixture, close_fixture)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
