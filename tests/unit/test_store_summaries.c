/* Tests with random jobs that stored summaries equal what their views compute, that lists of jobs use their SQL indexes, and that
 * lists and the history return the right rows in the right order. */
#include "store/schema.h"
#include "store_fixture.h"

#include "random_numbers.h" /* needs cmocka */

enum { RANDOM_JOBS = 60, TIMING = 1u << RL_PASS_TIMING, ALL_PASSES = (1u << RL_PASS_COUNT) - 1 };

static double random_measure(double scale) {
  return random_below(4) == 0 ? NAN : scale * (1 + (double)random_below(1000) / 1000);
}

/* Replaces the numbers of a pass by random ones or by NAN, which is NULL in the database. Some epochs become shorter than their
 * floor, so the store marks them as suspect. */
static void randomize_records(pass_records *pass_data) {
  for (int i = 0; i < 4 && pass_data->records.epoch_count > 0; i++) {
    rl_epoch *epoch = &pass_data->epochs[i];
    epoch->device_ms = random_measure(0.02 * (1 + (double)random_below(10000)));
    if (random_below(2) == 0) epoch->host_ms = NAN;
    epoch->images = random_measure(60000);
    epoch->test_accuracy_ratio = random_measure(0.4);
    epoch->warmup = random_below(3) == 0;
    if (isnan(epoch->test_accuracy_ratio) && random_below(2) == 0)
      strcpy(epoch->unavailable, "{\"test_accuracy_ratio\":\"no test images\"}");
  }
  for (size_t i = 0; i < pass_data->records.measurement_count; i++) {
    pass_data->measurements[i].value = random_measure(100);
    strcpy(pass_data->measurements[i].reason,
           isnan(pass_data->measurements[i].value) && random_below(2) == 0 ? "not offered" : "");
  }
}

/* Adds samples of a kernel's launches, some of them below the floor. */
static void add_samples(pass_records *pass_data, rl_sample samples[6]) {
  for (int i = 0; i < 6; i++)
    samples[i] = (rl_sample){.mode = i < 3 ? RL_SAMPLE_COLD : RL_SAMPLE_WARM,
                             .ordinal = i % 3,
                             .device_us = random_measure(random_below(3) == 0 ? 1 : 100000)};
  pass_data->records.samples = samples, pass_data->records.sample_count = 6;
  add_measurement(pass_data, "time_cold_us_median", 20, "");
  add_measurement(pass_data, "time_warm_us_median", 10, "");
}

/* Commits the next pass, or sets it to unavailable, or lets its worker die. Returns whether the job is finished. */
static bool execute_random_pass(rl_store *store) {
  rl_claim claimed = claim(store, "cpu");
  pass_records pass_data;
  rl_sample samples[6];
  bool done = false;
  switch (random_below(8)) {
    case 0: ASSERT_OK(rl_store_pass_commit(store, &claimed, NULL, "no counters here", &done, &err)); return done;
    case 1: ASSERT_OK(rl_store_record_worker_crash(store, &claimed, "killed", 5, &done, &err)); return done;
    default: break;
  }
  fill_records(&pass_data, claimed.pass, 1);
  if (claimed.pass == RL_PASS_TIMING && random_below(2) == 0) add_samples(&pass_data, samples);
  randomize_records(&pass_data);
  ASSERT_OK(rl_store_pass_commit(store, &claimed, &pass_data.records, NULL, &done, &err));
  return done;
}

static void execute_random_job(rl_store *store) {
  static const char *const kinds[] = {"train", "kernel"};
  const rl_error problem = {.domain = RL_CUDA, .code = 700, .message = "an illegal memory access"};
  rl_job_spec spec = make_spec("cpu", TIMING | (uint32_t)random_below(ALL_PASSES + 1));
  strcpy(spec.kind, kinds[random_below(2)]);
  int64_t id = 0;
  bool existing;
  ASSERT_OK(rl_store_job_insert(store, &spec, NULL, NULL, 1000, &id, &existing, &err));
  for (int passes = (int)random_below(12); passes > 0; passes--)
    if (execute_random_pass(store)) return;
  ASSERT_OK(rl_store_job_finish(store, id, random_below(2) == 0 ? RL_JOB_CANCELLED : RL_JOB_FAILED,
                                random_below(2) == 0 ? &problem : NULL, &err));
}

/* Fails the test if a stored summary differs from its view. Each query counts differences; the message is the text of the first
 * query whose result is not 0. */
static void assert_stored_as_computed(const fixture *f) {
  static const char *const differences[] = {
      "SELECT count(*) FROM (SELECT * FROM run_summaries EXCEPT SELECT * FROM v_run_summaries)",
      "SELECT count(*) FROM (SELECT * FROM v_run_summaries EXCEPT SELECT * FROM run_summaries) "
      "WHERE run_id IN (SELECT run_id FROM passes WHERE state IN ('completed', 'unavailable'))",
      "SELECT count(*) FROM jobs j JOIN v_listings v ON v.job = j.id WHERE j.listing <> v.listing",
      "SELECT count(*) FROM jobs WHERE (listing IS NULL) <> (state IN ('running', 'interrupted'))",
      "SELECT count(*) FROM ("
      " SELECT pass_id, run_id, workload, variant, nondefault_params, device, metrics, finished_ns, point FROM v_history"
      " WHERE metrics <> '[]' EXCEPT"
      " SELECT h.pass_id, h.run_id, s.workload, c.variant, c.nondefault_params, s.device, s.metrics, h.finished_ns, h.point"
      " FROM history h JOIN history_series s ON s.id = h.series_id JOIN configurations c ON c.id = h.configuration_id"
      " WHERE c.workload = s.workload AND c.device = s.device)",
      "SELECT (SELECT count(*) FROM history) - (SELECT count(*) FROM v_history WHERE metrics <> '[]')",
      "SELECT count(*) FROM (SELECT m.value, s.id FROM history_series s, json_each(s.metrics) m EXCEPT"
      " SELECT metric, series_id FROM history_metrics)",
      "SELECT count(*) FROM history_series WHERE id NOT IN (SELECT series_id FROM history)",
      "SELECT count(*) FROM history_metrics WHERE series_id NOT IN (SELECT id FROM history_series)",
  };
  for (size_t i = 0; i < sizeof differences / sizeof *differences; i++)
    if (query_integer(f, differences[i]) != 0) fail_msg("%s", differences[i]);
}

static void execute_random_jobs(const fixture *f) {
  test_seed = 20261123, drawn_count = 0; /* the cases below depend on the seed */
  ASSERT_OK(rl_db_execute(&f->store->writer, "PRAGMA synchronous = OFF", "not wait for the disk", &err));
  execute_ceilings_job(f->store, TEST_CPU_PROPERTIES, rates_for_10_ms_floor);
  for (int i = 0; i < RANDOM_JOBS; i++) execute_random_job(f->store);
  submit(f->store, "cpu", TIMING); /* the last job stays queued; the job before runs */
  submit(f->store, "cpu", TIMING);
  execute_pass(f->store, "cpu", 1);
}

static void stored_summaries_equal_their_views(void **state) {
  fixture *f = *state;
  execute_random_jobs(f);
  assert_stored_as_computed(f);
  /* the random jobs have every case: no count is 0 */
  static const char *const cases[] = {
      "SELECT count(*) FROM v_runs WHERE epoch_ms_median IS NULL AND unavailable ->> '$.epoch_ms_median' IS NOT NULL",
      "SELECT count(*) FROM v_runs WHERE epoch_ms_median IS NOT NULL AND NOT suspect",
      "SELECT count(*) FROM v_runs WHERE suspect AND suspect_reason LIKE '% is faster than its floor of %'",
      "SELECT count(*) FROM v_launch_times WHERE cold_suspect IS NOT NULL",
      "SELECT count(*) FROM v_launch_times WHERE warm_us IS NULL AND warm_reason = 'not offered'",
      "SELECT count(*) FROM v_runs WHERE unavailable ->> '$.test_accuracy_ratio' = 'no test images'",
      "SELECT count(*) FROM v_runs WHERE unavailable ->> '$.peak_memory_bytes' = 'no counters here'",
      "SELECT count(*) FROM v_runs WHERE unavailable ->> '$.epoch_ms_median' LIKE 'the timing pass is %'",
      "SELECT count(*) FROM jobs WHERE listing ->> '$.fastest.run' IS NOT NULL AND kind = 'kernel'",
      "SELECT count(*) FROM jobs WHERE listing ->> '$.fastest.run' IS NOT NULL AND kind = 'train'",
      "SELECT count(*) FROM jobs WHERE listing ->> '$.fastest' IS NULL AND state = 'failed'",
      "SELECT count(*) FROM jobs WHERE listing ->> '$.state' = 'queued'",
      "SELECT count(*) FROM jobs WHERE listing IS NULL AND state = 'running'",
      "SELECT count(DISTINCT series_id) > 5 FROM history",
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (query_integer(f, cases[i]) == 0) fail_msg("%s", cases[i]);
}

/* Deletes the stored summaries, and later falsifies them. Each time rl_store_summarize_all, which an upgrade calls, must restore
 * what the store had stored. */
static void an_upgrade_stores_all_summaries(void **state) {
  fixture *f = *state;
  execute_random_jobs(f);
  rl_db *db = &f->store->writer;
  assert_true(rl_current_schema()->store_summaries == rl_store_summarize_all);
  ASSERT_OK(rl_db_execute(db,
                          "DELETE FROM run_summaries; DELETE FROM history; DELETE FROM history_series; "
                          "DELETE FROM history_metrics; DELETE FROM configurations; UPDATE jobs SET listing = NULL",
                          "delete the summaries", &err));
  ASSERT_OK(rl_store_summarize_all(db, &err));
  assert_stored_as_computed(f);
  ASSERT_OK(rl_db_execute(db,
                          "UPDATE run_summaries SET epochs = 99; "
                          "INSERT INTO history_series (id, workload, device, metrics) VALUES (999, 'w', 'd', '[\"m\"]'); "
                          "UPDATE history SET point = '{}', series_id = 999 WHERE pass_id % 2; UPDATE jobs SET listing = '{}' "
                          "WHERE listing IS NOT NULL",
                          "change the summaries", &err));
  ASSERT_OK(rl_store_summarize_all(db, &err));
  assert_stored_as_computed(f);
}

static void deleted_jobs_leave_no_summaries(void **state) {
  fixture *f = *state;
  execute_random_jobs(f);
  assert_true(query_integer(f, "SELECT count(*) FROM configurations") > 1);
  assert_true(query_integer(f, "SELECT count(*) FROM history_series") > 1);
  sqlite3 *db = connect_to(f);
  assert_int_equal(sqlite3_exec(db, "DELETE FROM jobs WHERE finished_ns IS NOT NULL", NULL, NULL, NULL), SQLITE_OK);
  sqlite3_close(db);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM history WHERE pass_id NOT IN (SELECT id FROM passes)"), 0);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM run_summaries WHERE run_id NOT IN (SELECT id FROM runs)"), 0);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM configurations"), 1); /* of the running job */
  assert_stored_as_computed(f);
}

/* Returns whether the plan of a statement has a step of the statement itself, not of a subquery, that contains the text. */
static bool plan_has(rl_db *db, const char *statement, const char *text) {
  char sql[16384];
  sqlite3_stmt *plan = NULL;
  bool found = false;
  snprintf(sql, sizeof sql, "EXPLAIN QUERY PLAN %s", statement);
  assert_int_equal(sqlite3_prepare_v2(db->handle, sql, -1, &plan, NULL), SQLITE_OK);
  while (sqlite3_step(plan) == SQLITE_ROW) /* columns: id, parent, unused, step */
    found |= sqlite3_column_int(plan, 1) == 0 && strstr((const char *)sqlite3_column_text(plan, 3), text) != NULL;
  sqlite3_finalize(plan);
  return found;
}

/* The filters kind, state and device have an index for each combination. It finds exactly the jobs that match, in the order of
 * ids. A list of the jobs in suites uses suite_jobs_by_job, and a list of the jobs in no suite the primary key. */
static void lists_of_jobs_use_their_index(void **state) {
  static const struct {
    const char *statement, *step;
  } cases[] = {
      {"jobs", "SEARCH job USING INTEGER PRIMARY KEY (rowid<?)"},
      {"jobs_kind", "jobs_by_kind (kind=? AND rowid<?)"},
      {"jobs_state", "jobs_by_state (state=? AND rowid<?)"},
      {"jobs_device", "jobs_by_device (device=? AND rowid<?)"},
      {"jobs_kind_state", "jobs_by_kind_state (kind=? AND state=? AND rowid<?)"},
      {"jobs_kind_device", "jobs_by_kind_device (kind=? AND device=? AND rowid<?)"},
      {"jobs_state_device", "jobs_by_state_device (state=? AND device=? AND rowid<?)"},
      {"jobs_kind_state_device", "jobs_by_kind_state_device (kind=? AND state=? AND device=? AND rowid<?)"},
      {"jobs_in_suite", "SEARCH suite_job USING COVERING INDEX suite_jobs_by_job (job_id<?)"},
      {"jobs_state_in_suite", "SEARCH suite_job USING COVERING INDEX suite_jobs_by_job (job_id<?)"},
      {"jobs_in_no_suite", "SEARCH job USING INTEGER PRIMARY KEY (rowid<?)"},
  };
  fixture *f = *state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const rl_embedded *statement = rl_statements;
    while (statement->name != NULL && strcmp(statement->name, cases[i].statement) != 0) statement++;
    if (statement->name == NULL || !plan_has(&f->store->writer, statement->text, cases[i].step))
      fail_msg("%s", cases[i].statement);
    if (plan_has(&f->store->writer, statement->text, "TEMP B-TREE")) fail_msg("%s is sorted", cases[i].statement);
  }
}

/* Returns the ids of the jobs in the list as text "3 2 1 ". */
static void list_ids(rl_store *store, const char *kind, const char *listed_state, const char *device, int64_t before, char *ids) {
  cJSON *rows = QUERY_ROWS(store, RL_QUERY_JOBS, RL_BIND_TEXT(":kind", kind), RL_BIND_TEXT(":state", listed_state),
                           RL_BIND_TEXT(":device", device), RL_BIND_INTEGER(":before", before));
  *ids = '\0';
  for (const cJSON *row = rows->child; row != NULL; row = row->next)
    ids += sprintf(ids, "%d ", cJSON_GetObjectItem(row, "id")->valueint);
  cJSON_Delete(rows);
}

/* Each combination of filters lists the jobs that match all of them. */
static void every_combination_of_filters_lists_the_matching_jobs(void **state) {
  fixture *f = *state;
  static const char *const kinds[] = {NULL, "train", "kernel", "none"}, *const states[] = {NULL, "failed", "completed", "queued"},
                           *const devices[] = {NULL, "cpu", "gpu0"};
  execute_random_jobs(f);
  submit(f->store, "gpu0", TIMING);
  for (int i = 0; i < 4 * 4 * 3; i++) {
    const char *kind = kinds[i % 4], *expected_state = states[i / 4 % 4], *device = devices[i / 16];
    char found[1024], sql[512], expected[1024] = "";
    sqlite3 *db = connect_to(f);
    sqlite3_stmt *row = NULL;
    list_ids(f->store, kind, expected_state, device, 55, found);
    snprintf(sql, sizeof sql,
             "SELECT coalesce(group_concat(id, ' ') || ' ', '') FROM (SELECT id FROM jobs WHERE id < 55 AND (?1 IS NULL OR "
             "kind = ?1) AND (?2 IS NULL OR state = ?2) AND (?3 IS NULL OR device = ?3) ORDER BY id DESC)");
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
    sqlite3_bind_text(row, 1, kind, -1, SQLITE_STATIC);
    sqlite3_bind_text(row, 2, expected_state, -1, SQLITE_STATIC);
    sqlite3_bind_text(row, 3, device, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    snprintf(expected, sizeof expected, "%s", (const char *)sqlite3_column_text(row, 0));
    sqlite3_finalize(row);
    sqlite3_close(db);
    assert_string_equal(found, expected);
  }
}

/* The history merges several series in the order of time, also if passes finished at the same instant. */
static void a_history_merges_several_series_by_time(void **state) {
  fixture *f = *state;
  execute_random_jobs(f);
  sqlite3 *db = connect_to(f);
  assert_int_equal(
      sqlite3_exec(db, "UPDATE passes SET finished_ns = id / 7 * 1000000000 WHERE finished_ns IS NOT NULL", NULL, NULL, NULL),
      SQLITE_OK);
  sqlite3_close(db);
  ASSERT_OK(rl_store_summarize_all(&f->store->writer, &err));
  static const char *const metrics[] = {"epoch_ms_median", "images_per_s", "launch_gap_ratio", "peak_memory_bytes"};
  for (int i = 0; i < 4 * 3; i++) {
    const char *metric = metrics[i % 4];
    const int64_t limit = i / 4 == 0 ? 5 : i / 4 == 1 ? 22 : 1000;
    char sql[512];
    cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_HISTORY, RL_BIND_TEXT(":metric", metric), RL_BIND_INTEGER(":limit", limit));
    const int count = cJSON_GetArraySize(rows);
    snprintf(sql, sizeof sql, "SELECT min(%d, count(*)) FROM v_history v, json_each(v.metrics) m WHERE m.value = '%s'",
             (int)limit, metric);
    assert_int_equal(count, query_integer(f, sql));
    assert_true(count > 3);
    for (int row = 0; row < count; row++) {
      /* The newest rows in the order of time. But if there are :limit rows, the oldest comes last, because it only shows that
       * older rows exist. rank 0: the newest row. */
      const int rank = count < limit ? count - 1 - row : row == count - 1 ? count - 1 : count - 2 - row;
      snprintf(sql, sizeof sql,
               "SELECT run_id FROM v_history v, json_each(v.metrics) m WHERE m.value = '%s' "
               "ORDER BY finished_ns DESC, pass_id DESC LIMIT 1 OFFSET %d",
               metric, rank);
      assert_int_equal(cJSON_GetObjectItem(cJSON_GetArrayItem(rows, row), "run")->valueint, query_integer(f, sql));
    }
    cJSON_Delete(rows);
  }
}

#define WITH_STORE(TEST) cmocka_unit_test_setup_teardown(TEST, open_fixture, close_fixture)

int main(void) {
  const struct CMUnitTest tests[] = {WITH_STORE(stored_summaries_equal_their_views),
                                     WITH_STORE(an_upgrade_stores_all_summaries),
                                     WITH_STORE(deleted_jobs_leave_no_summaries),
                                     WITH_STORE(lists_of_jobs_use_their_index),
                                     WITH_STORE(every_combination_of_filters_lists_the_matching_jobs),
                                     WITH_STORE(a_history_merges_several_series_by_time)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
