/* Tests which changes of verdicts become events of the webhook, and that the table of events is bounded. */
#include "base/clock.h"
#include "store/suites.h"
#include "store/webhooks.h"
#include "store_fixture.h"

static int announcements;
static void count_announcement(void *context) { ++*(int *)context; }

static int open_webhook(void **state) {
  open_fixture(state);
  fixture *f = *state;
  announcements = 0;
  ASSERT_OK(rl_store_webhook_enable(f->store, count_announcement, &announcements, &err));
  return 0;
}

typedef struct ended_run {
  const char *verdicts;                                        /* "a=slower b=same": metrics of the job "train" */
  const char *suite, *device, *against, *driver, *jobs_sha256; /* NULL: "mnist", "cpu", rolling, "1", "{\"train\":\"1\"}" */
} ended_run;

static const char *or_default(const char *text, const char *fallback) { return text != NULL ? text : fallback; }

static void set_driver(rl_store *store, int64_t run, const char *driver) {
  RL_CLEANUP(rl_free_text) char *sql = NULL;
  assert_true(asprintf(&sql, "UPDATE suite_runs SET driver = '%s' WHERE id = %lld", driver, (long long)run) > 0);
  ASSERT_OK(rl_db_execute(&store->writer, sql, "set the driver", &err));
}

/* Executes a suite run to its end. Returns its id. */
static int64_t execute_suite_run(rl_store *store, const ended_run *run) {
  rl_suite_verdict verdicts[32];
  char metrics[32][64], words[32][16], text[1024], *rest = text;
  int count = 0;
  int64_t id;
  bool existing;
  const rl_suite_run_spec spec = {.suite = or_default(run->suite, "mnist"),
                                  .definition = "{}",
                                  .definition_sha256 = "0",
                                  .jobs_sha256 = or_default(run->jobs_sha256, "{\"train\":\"1\"}"),
                                  .device = or_default(run->device, "cpu"),
                                  .against = run->against,
                                  .planned_s = NAN};
  ASSERT_OK(rl_store_suite_run_insert(store, &spec, NULL, NULL, 1000, &id, &existing, &err));
  set_driver(store, id, or_default(run->driver, "1"));
  snprintf(text, sizeof text, "%s", run->verdicts);
  for (char *word; (word = strsep(&rest, " ")) != NULL; count++) {
    char *verdict = strchr(word, '=');
    *verdict++ = '\0';
    snprintf(metrics[count], sizeof metrics[count], "train/fp32/%s", word);
    snprintf(words[count], sizeof words[count], "%s", verdict);
    verdicts[count] =
        (rl_suite_verdict){metrics[count], words[count], "{\"effect_ratio\":0.5,\"interval_ratio\":[0.4,null]}", NULL};
  }
  const rl_suite_outcome outcome = {
      .state = "completed", .verdict = "same", .reason = "", .verdicts = verdicts, .verdict_count = count};
  ASSERT_OK(rl_store_suite_run_finish(store, id, &outcome, &err));
  return id;
}

/* Executes a suite run to its end and checks the events that it causes. expected: their types and metrics, "confirmed a,b fixed
 * c". */
static void assert_events(rl_store *store, const ended_run *run, const char *expected) {
  static const char sql[] =
      "SELECT coalesce(group_concat(line, ' '), '') FROM (SELECT substr(type, 12) || ' ' || (SELECT group_concat(substr(value "
      "->> "
      "'$.metric', 12)) FROM json_each(body, '$.data.metrics')) AS line FROM webhook_events WHERE suite_run_id = ? ORDER BY "
      "type)";
  const int before = announcements;
  const int64_t id = execute_suite_run(store, run);
  sqlite3_stmt *row;
  assert_int_equal(sqlite3_prepare_v2(store->writer.handle, sql, -1, &row, NULL), SQLITE_OK);
  sqlite3_bind_int64(row, 1, id);
  assert_int_equal(sqlite3_step(row), SQLITE_ROW);
  assert_string_equal((const char *)sqlite3_column_text(row, 0), expected);
  sqlite3_finalize(row);
  assert_int_equal(announcements - before, *expected != '\0');
}

static void each_change_is_one_event(void **state) {
  fixture *f = *state;
  assert_events(f->store, &(ended_run){"a=incomparable b=incomparable"}, "");
  assert_events(f->store, &(ended_run){"a=same b=faster"}, "");
  assert_events(f->store, &(ended_run){"a=slower b=same c=same"}, "confirmed a");
  assert_events(f->store, &(ended_run){"a=slower b=same c=slower"}, "confirmed c");
  assert_events(f->store, &(ended_run){"a=inconclusive b=incomparable c=slower"}, "");
  assert_events(f->store, &(ended_run){"a=slower b=slower"}, "confirmed b");
  assert_events(f->store, &(ended_run){"a=same b=faster c=slower d=slower"}, "confirmed d fixed a,b");
  assert_events(f->store, &(ended_run){"a=same b=same c=inconclusive"}, "");
  assert_events(f->store, &(ended_run){"a=slower c=same"}, "confirmed a fixed c");
}

/* Verdicts under different conditions are not compared: a run after a driver update does not fix a regression. */
static void only_equal_conditions_are_compared(void **state) {
  fixture *f = *state;
  const ended_run others[] = {{"a=same", .suite = "other"},
                              {"a=same", .device = "gpu0"},
                              {"a=same", .against = "v1"},
                              {"a=same", .driver = "2"},
                              {"a=same", .jobs_sha256 = "{\"train\":\"2\"}"}};
  assert_events(f->store, &(ended_run){"a=slower"}, "confirmed a");
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    ended_run slower = others[i];
    slower.verdicts = "a=slower";
    assert_events(f->store, &others[i], "");
    assert_events(f->store, &slower, "confirmed a");
    assert_events(f->store, &slower, "");
  }
  assert_events(f->store, &(ended_run){"a=slower"}, "");
  assert_events(f->store, &(ended_run){"a=same"}, "fixed a");
}

static void a_bisection_reports_nothing(void **state) {
  fixture *f = *state;
  assert_events(f->store, &(ended_run){"a=slower", .against = "bisect-0a1b2c-7"}, "");
  assert_events(f->store, &(ended_run){"a=slower", .against = "before-bisect-7"}, "confirmed a");
}

static void without_a_webhook_there_are_no_events(void **state) {
  fixture *f = *state;
  rl_store_webhook_disable(f->store);
  assert_events(f->store, &(ended_run){"a=slower"}, "");
}

static void an_event_names_20_metrics(void **state) {
  fixture *f = *state;
  char verdicts[1024] = "";
  for (int i = 0; i < 25; i++) sprintf(verdicts + strlen(verdicts), "%sm%02d=slower", i > 0 ? " " : "", i);
  execute_suite_run(f->store, &(ended_run){verdicts});
  assert_int_equal(query_integer(f, "SELECT body ->> '$.data.metric_count' FROM webhook_events"), 25);
  assert_int_equal(query_integer(f, "SELECT json_array_length(body, '$.data.metrics') FROM webhook_events"), 20);
  assert_int_equal(query_integer(f, "SELECT json_type(body, '$.data.metrics[0].interval_ratio[1]') = 'null' FROM webhook_events"),
                   1);
  assert_int_equal(query_integer(f, "SELECT json_type(body, '$.data.metrics[0].causes') = 'array' FROM webhook_events"), 1);
}

static void events_are_taken_by_their_next_attempt(void **state) {
  fixture *f = *state;
  rl_webhook_event first, event;
  const int64_t later_ns = rl_realtime_ns() + INT64_C(60000000000);
  assert_int_equal(rl_store_webhook_next_event(f->store, &event, &err), 0);
  execute_suite_run(f->store, &(ended_run){"a=slower"});
  execute_suite_run(f->store, &(ended_run){"a=same"});
  assert_int_equal(rl_store_webhook_next_event(f->store, &first, &err), 1);
  assert_int_equal(first.suite_run_id, 1);
  assert_non_null(strstr(first.body, "regression.confirmed"));
  ASSERT_OK(
      rl_store_webhook_record_attempt(f->store, &first, &(rl_webhook_attempt){RL_WEBHOOK_PENDING, later_ns, "refused"}, &err));
  assert_int_equal(rl_store_webhook_next_event(f->store, &event, &err), 1);
  assert_int_equal(event.suite_run_id, 2);
  ASSERT_OK(rl_store_webhook_record_attempt(f->store, &event, &(rl_webhook_attempt){RL_WEBHOOK_DELIVERED}, &err));
  rl_webhook_event_clear(&event);
  reopen_store(f);
  ASSERT_OK(rl_store_webhook_enable(f->store, count_announcement, &announcements, &err));
  assert_int_equal(rl_store_webhook_counts(f->store).pending, 1);
  assert_int_equal(rl_store_webhook_next_event(f->store, &event, &err), 1);
  assert_string_equal(event.event_id, first.event_id);
  assert_string_equal(event.body, first.body);
  assert_int_equal(event.attempts, 1);
  assert_true(event.next_attempt_ns == later_ns);
  ASSERT_OK(rl_store_webhook_record_attempt(f->store, &event, &(rl_webhook_attempt){RL_WEBHOOK_GIVEN_UP, .error = "gone"}, &err));
  const rl_webhook_counts counts = rl_store_webhook_counts(f->store);
  assert_true(counts.pending == 0 && counts.given_up == 1 && counts.delivered == 0 && counts.failed_attempts == 1);
  rl_webhook_event_clear(&first);
  rl_webhook_event_clear(&event);
  assert_int_equal(rl_store_webhook_next_event(f->store, &event, &err), 0);
}

/* The oldest events are deleted, whether they were delivered or not. */
static void a_thousand_events_are_kept(void **state) {
  fixture *f = *state;
  rl_webhook_event event;
  execute_suite_run(f->store, &(ended_run){"a=slower"});
  assert_int_equal(rl_store_webhook_next_event(f->store, &event, &err), 1);
  for (int i = 0; i < 999; i++) execute_suite_run(f->store, &(ended_run){i % 2 == 0 ? "a=same" : "a=slower"});
  assert_int_equal(query_integer(f, "SELECT count(*) FROM webhook_events"), 1000);
  execute_suite_run(f->store, &(ended_run){"a=slower b=slower"});
  assert_int_equal(query_integer(f, "SELECT min(id) || '' || max(id) FROM webhook_events"), 21001);
  rl_webhook_counts counts = rl_store_webhook_counts(f->store);
  assert_true(counts.pending == 1000 && counts.given_up == 1);
  ASSERT_OK(rl_store_webhook_record_attempt(f->store, &event, &(rl_webhook_attempt){RL_WEBHOOK_DELIVERED},
                                            &err)); /* this event was deleted */
  counts = rl_store_webhook_counts(f->store);
  assert_true(counts.pending == 1000 && counts.given_up == 1 && counts.delivered == 0);
  rl_webhook_event_clear(&event);
}

#define WITH_WEBHOOK(TEST) cmocka_unit_test_setup_teardown(TEST, open_webhook, close_fixture)

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_WEBHOOK(each_change_is_one_event),    WITH_WEBHOOK(only_equal_conditions_are_compared),
      WITH_WEBHOOK(a_bisection_reports_nothing), WITH_WEBHOOK(without_a_webhook_there_are_no_events),
      WITH_WEBHOOK(an_event_names_20_metrics),   WITH_WEBHOOK(events_are_taken_by_their_next_attempt),
      WITH_WEBHOOK(a_thousand_events_are_kept)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
