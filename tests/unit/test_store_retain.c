/* Tests the store's retention, its online backup and its sizes. */
#include <errno.h>

#include "base/clock.h"
#include "store/suites.h"
#include "store_fixture.h"

enum { ALL_PASSES = (1u << RL_PASS_COUNT) - 1, ROWS = 12000 };
static const int64_t DAY_NS = INT64_C(86400000000000);

/* Stores a finished job with two activity passes of ROWS rows each. Returns its id. */
static int64_t store_large_job(rl_store *store) {
  int64_t id = submit(store, "cpu", 1u << RL_PASS_ACTIVITY), seq;
  rl_activity_row *rows = calloc(ROWS, sizeof *rows);
  for (uint32_t i = 0; i < ROWS; i++)
    rows[i] = (rl_activity_row){.start_ns = i * 10, .end_ns = i * 10 + 5, .kind = RL_ACTIVITY_KERNEL};
  for (int run = 0; run < 2; run++) {
    rl_claim claimed = claim(store, "cpu");
    pass_records pass_data;
    bool done;
    fill_records(&pass_data, claimed.pass, 1);
    pass_data.records.rows = rows, pass_data.records.row_count = ROWS;
    ASSERT_OK(rl_store_event_append(store, id, "progress", "{}", &seq, &err));
    ASSERT_OK(rl_store_pass_commit(store, &claimed, &pass_data.records, NULL, &done, &err));
  }
  free(rows);
  return id;
}

static atomic_bool stop_requested; /* for rl_store_apply_retention */

static int64_t apply_retention(rl_store *store, rl_retention retention, int64_t days_later) {
  int64_t removed = -1;
  ASSERT_OK(rl_store_apply_retention(store, &retention, rl_realtime_ns() + days_later * DAY_NS, &stop_requested, &removed, &err));
  return removed;
}

/* Returns the smallest max_bytes for which retention deletes data. */
static int64_t needed_bytes(const fixture *f) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  ASSERT_OK(rl_db_query_row_bound(&f->store->writer, "needed_bytes", NULL, 0, &row, &err));
  return sqlite3_column_int64(row, 0);
}

static void nothing_is_deleted_without_limits(void **state) {
  fixture *f = *state;
  store_large_job(f->store);
  assert_int_equal(apply_retention(f->store, (rl_retention){0}, 10000), 0);
  assert_int_equal(
      apply_retention(f->store, (rl_retention){.activity_days = 7, .job_days = 30, .max_bytes = INT64_C(1) << 40}, 1), 0);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM activity"), 2 * ROWS);
}

static void raw_rows_are_deleted_before_jobs(void **state) {
  fixture *f = *state;
  int64_t id = store_large_job(f->store), waiting = submit(f->store, "cpu", ALL_PASSES);
  rl_retention retention = {.activity_days = 7, .job_days = 30};
  assert_int_equal(apply_retention(f->store, retention, 8), 2 * ROWS + 7);
  assert_int_equal(query_integer(f,
                                 "SELECT (SELECT count(*) FROM activity) + (SELECT count(*) FROM names) + (SELECT count(*) FROM "
                                 "activity_groups)"),
                   0);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM kernels"), 4); /* aggregates stay */
  assert_int_equal(query_integer(f, "SELECT count(*) FROM events"), 1);  /* the queued job's */
  cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_RESULTS, RL_BIND_INTEGER(":job", id));
  assert_number(rows, "0.runs.0.passes.0.activity_rows", ROWS); /* the number of recorded rows stays */
  assert_true(cJSON_IsFalse(json_at(rows, "0.runs.0.passes.0.activity_kept")));
  cJSON_Delete(rows);
  assert_int_equal(rl_store_removed_rows(f->store, RL_REMOVED_ACTIVITY), 2 * ROWS);
  assert_int_equal(rl_store_removed_rows(f->store, RL_REMOVED_EVENTS), 7);
  assert_int_equal(rl_store_removed_rows(f->store, RL_REMOVED_JOBS), 0);
  assert_int_equal(apply_retention(f->store, retention, 31), 1);
  assert_int_equal(rl_store_removed_rows(f->store, RL_REMOVED_JOBS), 1);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM jobs"), 1);
  assert_int_equal(
      query_integer(
          f,
          "SELECT (SELECT count(*) FROM kernels) + (SELECT count(*) FROM measurements) + (SELECT count(*) FROM instructions) + "
          "(SELECT count(*) FROM series)"),
      0);
  rl_job_state job_state;
  ASSERT_OK(rl_store_job_state(f->store, waiting, &job_state, &err));
  assert_int_equal(job_state, RL_JOB_QUEUED);
  assert_true(submit(f->store, "cpu", ALL_PASSES) > waiting); /* ids are not reused */
}

static void running_jobs_stay(void **state) {
  fixture *f = *state;
  submit(f->store, "cpu", 1u << RL_PASS_ACTIVITY);
  execute_pass(f->store, "cpu", 1);
  assert_int_equal(apply_retention(f->store, (rl_retention){.job_days = 1, .max_bytes = needed_bytes(f)}, 1000),
                   4); /* the raw rows of the finished pass */
  assert_int_equal(query_integer(f, "SELECT count(*) FROM jobs"), 1);
  assert_true(execute_pass(f->store, "cpu", 1));
}

static void size_is_bounded(void **state) {
  fixture *f = *state;
  int64_t before = 0, after = 0, log = 0, first = store_large_job(f->store);
  store_large_job(f->store);
  int64_t last = store_large_job(f->store);
  ASSERT_OK(rl_store_file_sizes(f->store, &before, &log, &err));
  int64_t limit = (before + log) / 3;
  assert_true(apply_retention(f->store, (rl_retention){.max_bytes = limit}, 0) > 0);
  ASSERT_OK(rl_store_file_sizes(f->store, &after, &log, &err));
  assert_true(after + log <= limit);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM jobs"), 3); /* deleting raw rows was enough */
  char sql[128];
  snprintf(sql, sizeof sql, "SELECT count(*) FROM passes WHERE job_id = %d AND activity_kept", (int)first);
  assert_int_equal(query_integer(f, sql), 0);
  snprintf(sql, sizeof sql, "SELECT count(*) FROM passes WHERE job_id = %d AND activity_kept", (int)last);
  assert_true(query_integer(f, sql) > 0); /* older rows were deleted first */
  apply_retention(f->store, (rl_retention){.max_bytes = needed_bytes(f)}, 0);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM jobs"), 0);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM runs"), 0);
}

/* The newest ceilings of each device are kept, so that later jobs have floors. */
static void ceilings_in_use_stay(void **state) {
  fixture *f = *state;
  static const char other_properties[] = "{\"name\":\"Test CPU\",\"threads\":4}";
  execute_ceilings_job(f->store, TEST_CPU_PROPERTIES, rates_for_10_ms_floor);
  int64_t other = execute_ceilings_job(f->store, other_properties, rates_for_10_ms_floor);
  int64_t newest = execute_ceilings_job(f->store, TEST_CPU_PROPERTIES, rates_for_10_ms_floor);
  submit(f->store, "cpu", 1u << RL_PASS_TIMING);
  while (!execute_pass(f->store, "cpu", 1)) continue;
  apply_retention(f->store, (rl_retention){.max_bytes = needed_bytes(f)}, 0);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM jobs"), 2);
  cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_CEILINGS, RL_BIND_TEXT(":device", NULL));
  assert_number(rows, "0.job", (double)newest);
  assert_number(rows, "1.job", (double)other);
  cJSON_Delete(rows);
  submit(f->store, "cpu", 1u << RL_PASS_TIMING);
  execute_pass(f->store, "cpu", 1);
  assert_int_equal(query_integer(f, "SELECT value = 10 FROM measurements WHERE name = 'floor_ms'"), 1);
}

/* --- suite runs -------------------------------------------------------------------------------------------------------- */

enum { DEFINITION_BYTES = 22000 };

/* Stores a suite run on the CPU with a large definition and one value, and ends it. */
static int64_t store_suite_run(rl_store *store, const rl_suite_outcome *outcome) {
  static char definition[DEFINITION_BYTES + 1];
  int64_t id = 0;
  bool existing;
  snprintf(definition, sizeof definition, "\"%*s\"", DEFINITION_BYTES - 2, "");
  const rl_suite_run_spec spec = {
      .suite = "s", .definition = definition, .definition_sha256 = "0", .jobs_sha256 = "{}", .device = "cpu", .planned_s = NAN};
  const rl_suite_step step = {.role = "block", .job_name = "a"};
  const rl_suite_value value = {.metric = "a/fp32/epoch_ms_median", .value = 1, .cycles = NAN};
  ASSERT_OK(rl_store_suite_run_insert(store, &spec, NULL, NULL, 1000, &id, &existing, &err));
  int64_t job = submit(store, "cpu", 1u << RL_PASS_TIMING);
  ASSERT_OK(rl_store_suite_job_insert(store, id, &step, job, &err));
  ASSERT_OK(rl_store_job_finish(store, job, RL_JOB_CANCELLED, NULL, &err));
  ASSERT_OK(rl_store_suite_job_finish(store, id, &step, job, "completed", NULL, &value, 1, &err));
  ASSERT_OK(rl_store_suite_run_finish(store, id, outcome, &err));
  return id;
}

static const rl_suite_outcome cancelled = {.state = "cancelled", .reason = "A client cancelled the run."},
                              completed = {.state = "completed", .verdict = "same", .reason = "No metric changed."};

static int64_t excess_bytes(const fixture *f, int64_t max_bytes) {
  int64_t bytes = -1;
  ASSERT_OK(rl_store_excess_bytes(f->store, max_bytes, &bytes, &err));
  return bytes;
}

/* Suite runs that no verdict needs are deleted before jobs. */
static void cancelled_suite_runs_are_deleted_before_jobs(void **state) {
  fixture *f = *state;
  int64_t job = store_large_job(f->store), limit = needed_bytes(f) + 40 * DEFINITION_BYTES;
  for (int i = 0; i < 100; i++) store_suite_run(f->store, &cancelled);
  int64_t newest = store_suite_run(f->store, &cancelled), good = store_suite_run(f->store, &completed);
  assert_true(excess_bytes(f, limit) > 0);
  assert_true(apply_retention(f->store, (rl_retention){.max_bytes = limit}, 0) > 0);
  assert_int_equal(excess_bytes(f, limit), 0);
  int64_t runs = query_integer(f, "SELECT count(*) FROM suite_runs");
  assert_in_range(runs, 2, 50);
  assert_int_equal(rl_store_removed_rows(f->store, RL_REMOVED_SUITE_RUNS), 102 - runs);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM suite_values"), runs);
  assert_int_equal(query_integer(f, "SELECT max(id) FROM suite_runs"), good);
  assert_int_equal(query_integer(f, "SELECT max(id) FROM suite_runs WHERE state = 'cancelled'"), newest);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM jobs"), 103);
  assert_int_equal(query_integer(f, "SELECT min(id) FROM jobs"), job);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM jobs WHERE listing ->> '$.suite_run' IS NOT NULL"), runs);
  assert_int_equal(
      query_integer(
          f, "SELECT count(*) FROM jobs JOIN v_listings ON v_listings.job = jobs.id WHERE jobs.listing <> v_listings.listing"),
      0);
}

/* Later verdicts need the newest 100 comparable runs, and the runs of named baselines. */
static void suite_runs_that_verdicts_need_stay(void **state) {
  fixture *f = *state;
  rl_suite_outcome quarantined = completed;
  quarantined.quarantine_reason = "The canary changed.";
  int64_t baseline = store_suite_run(f->store, &completed);
  ASSERT_OK(rl_store_baseline_insert(f->store, "s", "v1", baseline, &err));
  for (int i = 0; i < 2; i++) store_suite_run(f->store, &completed);
  for (int i = 0; i < 2; i++) store_suite_run(f->store, &quarantined);
  for (int i = 0; i < 100; i++) store_suite_run(f->store, &completed);
  apply_retention(f->store, (rl_retention){.max_bytes = needed_bytes(f)}, 0);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM suite_runs"), 101);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM suite_runs WHERE quarantine_reason IS NOT NULL"), 0);
  assert_int_equal(query_integer(f, "SELECT min(id) FROM suite_runs"), baseline);
}

/* The suite runs that are never deleted are larger than max_bytes, so deleting other data would not help. */
static void nothing_is_deleted_for_a_size_that_cannot_be_reached(void **state) {
  fixture *f = *state;
  store_large_job(f->store);
  for (int i = 0; i < 30; i++) store_suite_run(f->store, &completed);
  store_suite_run(f->store, &cancelled);
  int64_t limit = needed_bytes(f) - 1;
  assert_int_equal(apply_retention(f->store, (rl_retention){.max_bytes = limit}, 0), 0);
  assert_true(excess_bytes(f, limit) > 0);
  assert_true(apply_retention(f->store, (rl_retention){.max_bytes = limit + 1}, 0) > 0);
}

static int request_stop(void *context) {
  atomic_store((atomic_bool *)context, true);
  return 0; /* 0: the commit continues */
}

static void retention_stops_after_a_batch(void **state) {
  fixture *f = *state;
  const rl_retention retention = {.activity_days = 7};
  store_large_job(f->store);
  sqlite3_commit_hook(f->store->writer.handle, request_stop, &stop_requested);
  assert_in_range(apply_retention(f->store, retention, 8), 1, 5000);
  assert_int_equal(apply_retention(f->store, retention, 8), 0);
  sqlite3_commit_hook(f->store->writer.handle, NULL, NULL);
  atomic_store(&stop_requested, false);
  apply_retention(f->store, retention, 8);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM activity"), 0);
}

typedef struct deletion_counter {
  sqlite3 *db;
  int64_t before, largest; /* number of deleted rows: so far, and in one transaction */
} deletion_counter;

static int count_changes(void *context) {
  deletion_counter *counter = context;
  int64_t now = sqlite3_total_changes64(counter->db);
  if (now - counter->before > counter->largest) counter->largest = now - counter->before;
  counter->before = now;
  return 0;
}

/* A job's kernels, with their rows, are deleted before the job, in small batches. */
static void a_large_job_is_deleted_in_batches(void **state) {
  fixture *f = *state;
  submit(f->store, "cpu", 1u << RL_PASS_COUNTERS);
  for (int run = 0; run < 2; run++) execute_pass(f->store, "cpu", 1);
  query_integer(f,
                "WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 209) "
                "INSERT INTO kernels (pass_id, ordinal, name, launches) SELECT (SELECT max(id) FROM passes), i, 'k', 1 FROM n");
  query_integer(f,
                "WITH RECURSIVE n(i) AS (SELECT 16 UNION ALL SELECT i + 16 FROM n WHERE i < 3200) "
                "INSERT INTO instructions (kernel_id, \"offset\", counts) SELECT id, i + 16, '{}' FROM kernels, n");
  assert_in_range(query_integer(f, "SELECT count(*) FROM instructions"), 40000, 50000);
  deletion_counter counter = {.db = f->store->writer.handle, .before = sqlite3_total_changes64(f->store->writer.handle)};
  sqlite3_commit_hook(counter.db, count_changes, &counter);
  apply_retention(f->store, (rl_retention){.job_days = 30}, 31);
  sqlite3_commit_hook(counter.db, NULL, NULL);
  assert_int_equal(query_integer(f, "SELECT (SELECT count(*) FROM jobs) + (SELECT count(*) FROM instructions)"), 0);
  assert_in_range(counter.largest, 1, 5000);
}

/* --- the write-ahead log ----------------------------------------------------------------------------------------------- */

/* Reads a row, and keeps the snapshot. */
static rl_cursor *open_query(rl_store *store, int64_t job_id) {
  rl_cursor *cursor = NULL;
  const char *json;
  ASSERT_OK(rl_store_query(store, RL_QUERY_JOB, RL_BINDINGS(RL_BIND_INTEGER(":id", job_id)), &cursor, &err));
  assert_int_equal(rl_cursor_next(cursor, &json, &err), 1);
  return cursor;
}

/* Another connection, as another program has, holds the log by a snapshot or by the database's lock. If it and a query hold the
 * log, the query is reported. */
static void a_reset_reports_what_holds_the_log(void **state) {
  fixture *f = *state;
  sqlite3 *other = connect_to(f);
  const int64_t id = submit(f->store, "cpu", ALL_PASSES);
  rl_cursor *cursor = open_query(f->store, id);
  assert_int_equal(rl_store_reset_log(f->store, &err), RL_RESET_HELD_BY_QUERY);
  rl_cursor_close(cursor);
  assert_int_equal(rl_store_reset_log(f->store, &err), RL_RESET_DONE);
  submit(f->store, "cpu", ALL_PASSES);
  query_integer_on(other, "BEGIN");
  assert_int_equal(query_integer_on(other, "SELECT count(*) FROM jobs"), 2);
  cursor = open_query(f->store, id);
  assert_int_equal(rl_store_reset_log(f->store, &err), RL_RESET_HELD_BY_QUERY);
  rl_cursor_close(cursor);
  assert_int_equal(rl_store_reset_log(f->store, &err), RL_RESET_HELD_BY_PROGRAM);
  query_integer_on(other, "ROLLBACK");
  assert_int_equal(rl_store_reset_log(f->store, &err), RL_RESET_DONE);
  submit(f->store, "cpu", ALL_PASSES);
  query_integer_on(other, "BEGIN IMMEDIATE");
  assert_int_equal(rl_store_reset_log(f->store, &err), RL_RESET_HELD_BY_PROGRAM);
  sqlite3_close(other);
  rl_timed_mutex_lock(&f->store->writer_mutex);
  assert_int_equal(rl_store_reset_log(f->store, &err), RL_RESET_HELD_BY_WRITER); /* no failure, so retention succeeds */
  rl_timed_mutex_unlock(&f->store->writer_mutex);
  assert_int_equal(rl_store_reset_log(f->store, &err), RL_RESET_DONE);
}

/* --- backup ------------------------------------------------------------------------------------------------------------ */

static void backup_is_a_database(void **state) {
  fixture *f = *state, copy = {0};
  char file[96];
  int64_t id = store_large_job(f->store);
  snprintf(copy.folder, sizeof copy.folder, "%s/copy", f->folder);
  assert_int_equal(mkdir(copy.folder, 0700), 0);
  snprintf(file, sizeof file, "%s/rooflined.db", copy.folder);
  ASSERT_OK(rl_store_backup(f->folder, file, &err)); /* while the store is open */
  ASSERT_FAILS(rl_store_backup(f->folder, file, &err), RL_ERRNO, EEXIST);
  strcat(file, "-wal");
  assert_int_equal(access(file, F_OK), -1); /* the copy has no write-ahead log */
  assert_int_equal(query_integer(&copy, "SELECT count(*) FROM activity"), 2 * ROWS);
  assert_int_equal(query_integer(&copy, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
  ASSERT_OK(rl_store_open(copy.folder, &copy.store, &err));
  rl_job_state job_state;
  ASSERT_OK(rl_store_job_state(copy.store, id, &job_state, &err));
  assert_int_equal(job_state, RL_JOB_COMPLETED);
  rl_store_close(copy.store);
  rl_store_close(f->store);
  f->store = NULL;
  snprintf(file, sizeof file, "%s/second.db", copy.folder);
  ASSERT_OK(rl_store_backup(f->folder, file, &err)); /* while the store is closed */
}

static void backup_to_a_missing_folder_fails(void **state) {
  fixture *f = *state;
  ASSERT_FAILS(rl_store_backup("/nowhere", "/tmp/rooflined-never.db", &err), RL_ERRNO, ENOENT);
  ASSERT_FAILS(rl_store_backup(f->folder, "/nowhere/backup.db", &err), RL_ERRNO, ENOENT);
}

static int64_t submit_source(rl_store *store, const char *text) {
  rl_job_spec spec = make_spec("gpu0", 1u << RL_PASS_TIMING);
  char copy[64];
  int64_t id = 0;
  bool existing;
  spec.source_json = strcpy(copy, text);
  rl_sha256(text, strlen(text), spec.source_sha256);
  ASSERT_OK(rl_store_job_insert(store, &spec, NULL, NULL, 1000, &id, &existing, &err));
  return id;
}

static void posted_code_is_deleted_with_its_last_job(void **state) {
  fixture *f = *state;
  const rl_retention retention = {.job_days = 30};
  int64_t first = submit_source(f->store, "{\"code\":1}"), second = submit_source(f->store, "{\"code\":1}");
  submit_source(f->store, "{\"code\":2}");
  assert_int_equal(query_integer(f, "SELECT count(*) FROM sources"), 2);
  rl_claim claimed = claim(f->store, "gpu0");
  assert_string_equal(claimed.source_json, "{\"code\":1}");
  ASSERT_OK(rl_store_set_run_log(f->store, claimed.run_id, "a line\nand another", &err));
  rl_claim_clear(&claimed);
  cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_JOB, RL_BIND_INTEGER(":id", first));
  assert_string_equal(json_at(rows, "0.runs.0.log")->valuestring, "a line\nand another");
  assert_true(cJSON_IsNull(json_at(rows, "0.runs.1.log")));
  cJSON_Delete(rows);
  ASSERT_OK(rl_store_job_finish(f->store, first, RL_JOB_CANCELLED, NULL, &err));
  apply_retention(f->store, retention, 31);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM jobs"), 2);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM sources"), 2); /* the second job still refers to it */
  ASSERT_OK(rl_store_job_finish(f->store, second, RL_JOB_CANCELLED, NULL, &err));
  apply_retention(f->store, retention, 31);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM jobs"), 1);
  assert_int_equal(query_integer(f, "SELECT text = '{\"code\":2}' FROM sources"), 1);
}

#define WITH_STORE(TEST) cmocka_unit_test_setup_teardown(TEST, open_fixture, close_fixture)

int main(void) {
  const struct CMUnitTest tests[] = {WITH_STORE(nothing_is_deleted_without_limits),
                                     WITH_STORE(raw_rows_are_deleted_before_jobs),
                                     WITH_STORE(running_jobs_stay),
                                     WITH_STORE(size_is_bounded),
                                     WITH_STORE(ceilings_in_use_stay),
                                     WITH_STORE(cancelled_suite_runs_are_deleted_before_jobs),
                                     WITH_STORE(suite_runs_that_verdicts_need_stay),
                                     WITH_STORE(nothing_is_deleted_for_a_size_that_cannot_be_reached),
                                     WITH_STORE(retention_stops_after_a_batch),
                                     WITH_STORE(a_large_job_is_deleted_in_batches),
                                     WITH_STORE(posted_code_is_deleted_with_its_last_job),
                                     WITH_STORE(a_reset_reports_what_holds_the_log),
                                     WITH_STORE(backup_is_a_database),
                                     WITH_STORE(backup_to_a_missing_folder_fails)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
