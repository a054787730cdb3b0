/* Tests the store's state folder, its schema, and the writing of jobs, passes, events and tokens. */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "store_fixture.h"

enum { TIMING = 1u << RL_PASS_TIMING, ALL_PASSES = (1u << RL_PASS_COUNT) - 1 };

static rl_job_state state_of(rl_store *store, int64_t id) {
  rl_job_state state = RL_JOB_QUEUED;
  ASSERT_OK(rl_store_job_state(store, id, &state, &err));
  return state;
}

/* --- the folder -------------------------------------------------------------------------------------------------------- */

static void folder_is_made_private(void **state) {
  (void)state;
  char top[] = "/tmp/rooflined-store-XXXXXX", folder[64];
  assert_non_null(mkdtemp(top));
  snprintf(folder, sizeof folder, "%s/a/b", top);
  rl_store *store = NULL;
  ASSERT_OK(rl_store_open(folder, &store, &err));
  struct stat status;
  assert_int_equal(stat(folder, &status), 0);
  assert_int_equal(status.st_mode & 0777, 0700);
  rl_store_close(store);
  rl_store_close(NULL);
  remove_folder(top);
}

static void a_folder_that_cannot_be_created_is_reported(void **state) {
  (void)state;
  rl_store *store = NULL;
  ASSERT_FAILS(rl_store_open("/dev/null/state", &store, &err), RL_ERRNO, ENOTDIR);
  assert_non_null(strstr(err.message, "/dev/null/state"));
  assert_null(store);
}

static void second_daemon_is_refused(void **state) {
  fixture *f = *state;
  rl_store *second = NULL;
  char pid[24];
  ASSERT_FAILS(rl_store_open(f->folder, &second, &err), RL_ERRNO, EWOULDBLOCK);
  assert_null(second);
  snprintf(pid, sizeof pid, "(process %ld)", (long)getpid());
  assert_non_null(strstr(err.message, pid));
  reopen_store(f); /* closing the store released the lock */
}

static void token_is_added_while_a_daemon_runs(void **state) {
  fixture *f = *state;
  rl_store *second = NULL;
  bool known = false;
  ASSERT_OK(rl_store_open_shared(f->folder, &second, &err));
  ASSERT_OK(rl_store_token_add(second, "laptop", "abc", &err));
  rl_store_close(second);
  ASSERT_OK(rl_store_has_token(f->store, "abc", &known, &err));
  assert_true(known);
  /* A database with another schema version is refused. */
  char sql[48];
  snprintf(sql, sizeof sql, "PRAGMA user_version = %d", (int)query_integer(f, "PRAGMA user_version"));
  query_integer(f, "PRAGMA user_version = 1");
  ASSERT_FAILS(rl_store_open_shared(f->folder, &second, &err), RL_INPUT, 0);
  query_integer(f, sql);
  rl_store_close(f->store);
  f->store = NULL;
  ASSERT_OK(rl_store_open_shared(f->folder, &f->store, &err)); /* no daemon runs, so this takes the lock */
  ASSERT_FAILS(rl_store_open(f->folder, &second, &err), RL_ERRNO, EWOULDBLOCK);
}

/* The user may not write to the folder. The test removes the lock file, so that the store fails at the lock, not at the
 * database. */
static void an_unwritable_folder_is_reported(void **state) {
  fixture *f = *state;
  char lock[96];
  rl_store_close(f->store);
  f->store = NULL;
  snprintf(lock, sizeof lock, "%s/lock", f->folder);
  assert_int_equal(unlink(lock), 0);
  assert_int_equal(chmod(f->folder, 0500), 0);
  uid_t user = geteuid();
  if (user == 0) assert_int_equal(chmod(f->folder, 0555) | seteuid(65534), 0);
  int rc = rl_store_open(f->folder, &f->store, &err);
  assert_int_equal(seteuid(user), 0);
  assert_int_equal(chmod(f->folder, 0700), 0);
  assert_int_equal(rc, -1);
  assert_int_equal(err.domain, RL_ERRNO);
  assert_int_equal(err.code, EACCES);
  assert_non_null(strstr(err.message, f->folder));
}

static void newer_schema_is_refused(void **state) {
  fixture *f = *state;
  rl_store_close(f->store);
  f->store = NULL;
  query_integer(f, "PRAGMA user_version = 1000");
  ASSERT_FAILS(rl_store_open(f->folder, &f->store, &err), RL_INPUT, 0);
  assert_non_null(strstr(err.message, "newer"));
}

static void damaged_file_is_refused(void **state) {
  fixture *f = *state;
  char path[96];
  rl_store_close(f->store);
  f->store = NULL;
  snprintf(path, sizeof path, "%s/rooflined.db", f->folder);
  FILE *file = fopen(path, "w");
  fputs(
      "This text is longer than the 100 bytes of an SQLite header, so that SQLite reads it as a header and refuses it as "
      "SQLITE_NOTADB.",
      file);
  fclose(file);
  ASSERT_SQLITE_FAILS(rl_store_open(f->folder, &f->store, &err), RL_STORAGE_DAMAGED, SQLITE_NOTADB);
  assert_non_null(strstr(err.message, "restore a backup"));
}

/* Closes the store and executes sql on its database. */
static void close_and_execute(fixture *f, const char *sql) {
  rl_store_close(f->store);
  f->store = NULL;
  query_integer(f, sql);
}

static void development_database_is_refused(void **state) {
  fixture *f = *state;
  close_and_execute(f, "PRAGMA application_id = 0");
  query_integer(f, "PRAGMA user_version = 11");
  ASSERT_FAILS(rl_store_open(f->folder, &f->store, &err), RL_INPUT, 0);
  assert_non_null(strstr(err.message, "development version"));
  assert_non_null(strstr(err.message, "(schema 11)"));
  assert_non_null(strstr(err.message, "move the file away"));
  assert_int_equal(query_integer(f, "PRAGMA user_version"), 11);
}

static void database_of_another_program_is_refused(void **state) {
  fixture *f = *state;
  close_and_execute(f, "PRAGMA application_id = 1684300133");
  ASSERT_FAILS(rl_store_open(f->folder, &f->store, &err), RL_INPUT, 0);
  assert_non_null(strstr(err.message, "application_id 1684300133"));
}

/* If the folder has a database with another program's tables, the file stays unchanged, including its journal mode. */
static void tables_of_another_program_are_refused(void **state) {
  fixture *f = *state;
  char path[96];
  static const char *const files[] = {"rooflined.db", "rooflined.db-wal", "rooflined.db-shm"};
  rl_store_close(f->store);
  f->store = NULL;
  for (int i = 0; i < 3; i++) {
    snprintf(path, sizeof path, "%s/%s", f->folder, files[i]);
    remove(path);
  }
  sqlite3 *db = NULL;
  snprintf(path, sizeof path, "%s/%s", f->folder, files[0]);
  assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
  assert_int_equal(sqlite3_exec(db, "CREATE TABLE birds (name TEXT); PRAGMA user_version = 12", NULL, NULL, NULL), SQLITE_OK);
  sqlite3_close(db);
  ASSERT_FAILS(rl_store_open(f->folder, &f->store, &err), RL_INPUT, 0);
  assert_non_null(strstr(err.message, "another program"));
  assert_int_equal(query_integer(f, "SELECT journal_mode = 'delete' FROM pragma_journal_mode"), 1);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM sqlite_schema"), 1);
}

/* --- the connection ---------------------------------------------------------------------------------------------------- */

static void writer_is_durable(void **state) {
  fixture *f = *state;
  static const struct {
    const char *sql;
    int value;
  } settings[] = {{"PRAGMA synchronous", 2},
                  {"PRAGMA foreign_keys", 1},
                  {"PRAGMA auto_vacuum", 2},
                  {"SELECT journal_mode = 'wal' FROM pragma_journal_mode", 1}};
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    sqlite3_stmt *row = NULL;
    assert_int_equal(sqlite3_prepare_v2(f->store->writer.handle, settings[i].sql, -1, &row, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    if (sqlite3_column_int(row, 0) != settings[i].value) fail_msg("%s: %d", settings[i].sql, sqlite3_column_int(row, 0));
    sqlite3_finalize(row);
  }
}

/* --- jobs -------------------------------------------------------------------------------------------------------------- */

static void job_is_on_disk_when_accepted(void **state) {
  fixture *f = *state;
  int64_t id = submit(f->store, "cpu", ALL_PASSES);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM passes WHERE state = 'pending'"), 6);
  assert_int_equal(
      query_integer(f, "SELECT count(*) FROM events WHERE seq = 1 AND type = 'state' AND data ->> '$.state' = 'queued'"), 1);
  reopen_store(f);
  assert_int_equal(state_of(f->store, id), RL_JOB_QUEUED);
  rl_job_state untouched = RL_JOB_FAILED;
  ASSERT_FAILS(rl_store_job_state(f->store, id + 1, &untouched, &err), RL_HTTP, 404);
  assert_int_equal(untouched, RL_JOB_FAILED);
}

static void same_key_is_the_same_job(void **state) {
  fixture *f = *state;
  rl_job_spec spec = make_spec("cpu", TIMING);
  int64_t first = 0, second = 0, third = 77;
  bool existing = true;
  ASSERT_OK(rl_store_job_insert(f->store, &spec, "key", "body1", 1, &first, &existing, &err));
  assert_false(existing);
  ASSERT_OK(
      rl_store_job_insert(f->store, &spec, "key", "body1", 1, &second, &existing, &err)); /* found even if the queue is full */
  assert_true(existing);
  assert_int_equal(first, second);
  ASSERT_FAILS(rl_store_job_insert(f->store, &spec, "key", "body2", 1, &third, &existing, &err), RL_HTTP, 422);
  assert_int_equal(third, 77);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM jobs"), 1);
}

static void full_queue_refuses_jobs(void **state) {
  fixture *f = *state;
  rl_job_spec spec = make_spec("cpu", TIMING);
  int64_t id = 0;
  bool existing;
  ASSERT_OK(rl_store_job_insert(f->store, &spec, NULL, NULL, 2, &id, &existing, &err));
  ASSERT_OK(rl_store_job_insert(f->store, &spec, NULL, NULL, 2, &id, &existing, &err));
  ASSERT_FAILS(rl_store_job_insert(f->store, &spec, NULL, NULL, 2, &id, &existing, &err), RL_HTTP, 429);
  claim(f->store, "cpu"); /* a running job does not count as queued */
  ASSERT_OK(rl_store_job_insert(f->store, &spec, NULL, NULL, 2, &id, &existing, &err));
  rl_job_counts counts = {0};
  ASSERT_OK(rl_store_count_jobs(f->store, &counts, &err));
  assert_int_equal(counts.queued, 2);
  assert_int_equal(counts.running, 1);
}

static void refused_job_leaves_nothing(void **state) {
  fixture *f = *state;
  rl_job_spec spec = make_spec("cpu", TIMING);
  strcpy(spec.runs[1].params, "{not json");
  int64_t id = 0;
  bool existing;
  ASSERT_SQLITE_FAILS(rl_store_job_insert(f->store, &spec, NULL, NULL, 10, &id, &existing, &err), RL_STORAGE_INTERNAL,
                      SQLITE_ERROR);
  assert_int_equal(
      query_integer(f, "SELECT (SELECT count(*) FROM jobs) + (SELECT count(*) FROM runs) + (SELECT count(*) FROM events)"), 0);
  submit(f->store, "cpu", TIMING); /* the writer still works */
}

static void passes_of_the_running_job_come_first(void **state) {
  fixture *f = *state;
  int64_t other = submit(f->store, "gpu0", TIMING), first = submit(f->store, "cpu", ALL_PASSES),
          second = submit(f->store, "cpu", TIMING);
  static const struct {
    rl_pass pass;
    const char *variant;
  } order[] = {{RL_PASS_TIMING, "fp32"},   {RL_PASS_TIMING, "fp16"},   {RL_PASS_ACTIVITY, "fp32"},
               {RL_PASS_ACTIVITY, "fp16"}, {RL_PASS_COUNTERS, "fp32"}, {RL_PASS_COUNTERS, "fp16"}};
  for (size_t i = 0; i < 6; i++) {
    rl_claim claimed = claim(f->store, "cpu");
    pass_records pass_data;
    bool done = true;
    assert_int_equal(claimed.job_id, first);
    assert_int_equal(claimed.pass, order[i].pass);
    assert_string_equal(claimed.run.variant, order[i].variant);
    assert_string_equal(claimed.run.workload, "mnist_cnn");
    assert_non_null(strstr(claimed.run.params, "\"batch_size\":64"));
    assert_string_equal(claimed.profile, "{\"sections\":[],\"launch\":-1}");
    assert_int_equal(claimed.time_limit_s, 60);
    fill_records(&pass_data, claimed.pass, 1);
    ASSERT_OK(rl_store_pass_commit(f->store, &claimed, &pass_data.records, NULL, &done, &err));
    assert_int_equal(done, i == 5);
  }
  assert_int_equal(state_of(f->store, first), RL_JOB_COMPLETED);
  assert_int_equal(claim(f->store, "cpu").job_id, second);
  assert_int_equal(claim(f->store, "gpu0").job_id, other);
  rl_claim none = {.job_id = 42};
  assert_int_equal(rl_store_pass_claim(f->store, "gpu1", &none, &err), 0);
  assert_int_equal(none.job_id, 42);
}

static void unfinished_passes_are_repeated(void **state) {
  fixture *f = *state;
  int64_t id = submit(f->store, "cpu", TIMING), count = 0, next = submit(f->store, "cpu", TIMING);
  execute_pass(f->store, "cpu", 1);
  rl_claim lost = claim(f->store, "cpu");
  reopen_store(f); /* as after a crash during the second pass */
  ASSERT_OK(rl_store_jobs_requeue(f->store, 2, &count, &err));
  assert_int_equal(count, 1);
  assert_int_equal(state_of(f->store, id), RL_JOB_QUEUED);
  rl_claim second = claim(f->store, "cpu");
  assert_int_equal(second.pass_id, lost.pass_id);
  ASSERT_OK(rl_store_job_finish(f->store, id, RL_JOB_INTERRUPTED, NULL, &err));
  assert_int_equal(query_integer(f, "SELECT count(*) FROM jobs WHERE finished_ns IS NOT NULL"), 0);
  ASSERT_OK(rl_store_jobs_requeue(f->store, 2, &count, &err));
  assert_int_equal(count, 1);
  assert_true(execute_pass(f->store, "cpu", 1)); /* the pass that the crash interrupted */
  assert_int_equal(state_of(f->store, id), RL_JOB_COMPLETED);
  assert_int_equal(claim(f->store, "cpu").job_id, next);
}

static void jobs_finish_once(void **state) {
  fixture *f = *state;
  int64_t id = submit(f->store, "cpu", TIMING), count = 0;
  rl_error failure;
  rl_fail(&failure, RL_CUDA, 700, "an illegal memory access");
  claim(f->store, "cpu");
  ASSERT_OK(rl_store_job_finish(f->store, id, RL_JOB_FAILED, &failure, &err));
  assert_int_equal(state_of(f->store, id), RL_JOB_FAILED);
  ASSERT_FAILS(rl_store_job_finish(f->store, id, RL_JOB_CANCELLED, NULL, &err), RL_HTTP, 409);
  ASSERT_FAILS(rl_store_job_finish(f->store, 99, RL_JOB_CANCELLED, NULL, &err), RL_HTTP, 404);
  ASSERT_OK(rl_store_jobs_requeue(f->store, 2, &count, &err));
  assert_int_equal(count, 0);
  cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_JOB, RL_BIND_INTEGER(":id", id));
  assert_text(rows, "0.problem.domain", "cuda");
  assert_number(rows, "0.problem.code", 700);
  assert_text(rows, "0.problem.message", "an illegal memory access");
  assert_number(rows, "0.passes.pending", 2);
  cJSON_Delete(rows);
}

static void worker_crashes_are_counted(void **state) {
  fixture *f = *state;
  int64_t id = submit(f->store, "cpu", TIMING);
  rl_claim first = claim(f->store, "cpu");
  bool failed = true;
  ASSERT_OK(rl_store_record_worker_crash(f->store, &first, "killed by signal 9", 2, &failed, &err));
  assert_false(failed);
  assert_int_equal(state_of(f->store, id), RL_JOB_RUNNING);
  rl_claim second = claim(f->store, "cpu");
  assert_int_equal(second.pass_id, first.pass_id);
  ASSERT_OK(rl_store_record_worker_crash(f->store, &second, "exit code 1", 2, &failed, &err));
  assert_true(failed);
  assert_int_equal(state_of(f->store, id), RL_JOB_FAILED);
  assert_int_equal(query_integer(f, "SELECT worker_deaths FROM jobs WHERE problem_message LIKE '%died 2 times%exit code 1'"), 2);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM passes WHERE state = 'pending' AND reason = 'exit code 1'"), 1);
  second.job_id = 99;
  ASSERT_FAILS(rl_store_record_worker_crash(f->store, &second, "gone", 2, &failed, &err), RL_HTTP, 404);
  assert_true(failed);
}

static void a_job_fails_after_repeated_crashes_of_the_daemon(void **state) {
  fixture *f = *state;
  int64_t id = submit(f->store, "cpu", TIMING), other = submit(f->store, "gpu0", TIMING), count = 0;
  for (int crash = 1; crash <= 3; crash++) {
    claim(f->store, "cpu");
    reopen_store(f);
    ASSERT_OK(rl_store_jobs_requeue(f->store, 3, &count, &err));
    assert_int_equal(count, crash < 3);
  }
  assert_int_equal(state_of(f->store, id), RL_JOB_FAILED);
  assert_int_equal(query_integer(f, "SELECT daemon_deaths FROM jobs WHERE problem_message LIKE '%daemon died 3 times%host%'"), 3);
  assert_int_equal(query_integer(f, "SELECT sum(worker_deaths) FROM jobs"), 0);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM events WHERE data ->> '$.state' = 'died'"), 3);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM events WHERE data ->> '$.problem.message' LIKE '%daemon died%'"), 1);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM passes WHERE state <> 'pending'"), 0);
  assert_int_equal(claim(f->store, "gpu0").job_id, other);
}

/* If the event can't be written, the change is rolled back. */
static void a_change_and_its_event_are_one_transaction(void **state) {
  fixture *f = *state;
  int64_t id = submit(f->store, "cpu", TIMING);
  bool failed;
  rl_claim claimed = claim(f->store, "cpu");
  query_integer(f, "CREATE TRIGGER silence BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'silenced'); END");
  ASSERT_SQLITE_FAILS(rl_store_job_finish(f->store, id, RL_JOB_CANCELLED, NULL, &err), RL_STORAGE_CONSTRAINT,
                      SQLITE_CONSTRAINT_TRIGGER);
  ASSERT_SQLITE_FAILS(rl_store_record_worker_crash(f->store, &claimed, "gone", 1, &failed, &err), RL_STORAGE_CONSTRAINT,
                      SQLITE_CONSTRAINT_TRIGGER);
  assert_int_equal(state_of(f->store, id), RL_JOB_RUNNING);
  assert_int_equal(query_integer(f, "SELECT worker_deaths FROM jobs"), 0);
  int64_t count = 0;
  ASSERT_SQLITE_FAILS(rl_store_jobs_requeue(f->store, 2, &count, &err), RL_STORAGE_CONSTRAINT, SQLITE_CONSTRAINT_TRIGGER);
  assert_int_equal(state_of(f->store, id), RL_JOB_RUNNING);
  query_integer(f, "DROP TRIGGER silence");
  ASSERT_OK(rl_store_jobs_requeue(f->store, 2, &count, &err));
  claim(f->store, "cpu");
  claim(f->store, "cpu"); /* the second pass of the job adds no state event */
  ASSERT_OK(
      rl_store_job_finish(f->store, id, RL_JOB_FAILED, &(rl_error){.domain = RL_CUDA, .code = 700, .message = "faulty"}, &err));
  assert_int_equal(query_integer(f,
                                 "SELECT group_concat(data ->> '$.state', ' ') = 'queued running died queued running failed' "
                                 "FROM (SELECT data FROM events ORDER BY seq)"),
                   1);
  assert_int_equal(
      query_integer(f,
                    "SELECT data = '{\"state\":\"failed\",\"problem\":{\"domain\":\"cuda\",\"code\":700,\"pointer\":\"\","
                    "\"message\":\"faulty\"}}' "
                    "FROM events WHERE seq = 6"),
      1);
}

/* --- passes ------------------------------------------------------------------------------------------------------------ */

static const char count_all_records[] =
    "SELECT (SELECT count(*) FROM epochs) + (SELECT count(*) FROM measurements) + (SELECT count(*) FROM kernels) + "
    "(SELECT count(*) "
    "FROM kernel_metrics) + (SELECT count(*) FROM phases) + "
    "(SELECT count(*) FROM instructions) + (SELECT count(*) FROM series) + (SELECT count(*) FROM samples) + "
    "(SELECT count(*) FROM names) + (SELECT count(*) FROM activity) + (SELECT count(*) FROM "
    "devices)";

static void pass_is_stored_once(void **state) {
  fixture *f = *state;
  submit(f->store, "cpu", TIMING);
  for (int run = 0; run < 2; run++) {
    rl_claim claimed = claim(f->store, "cpu");
    pass_records pass_data;
    bool done = false;
    fill_records(&pass_data, claimed.pass, 1);
    ASSERT_OK(rl_store_pass_commit(f->store, &claimed, &pass_data.records, NULL, &done, &err));
    int64_t before = query_integer(f, count_all_records);
    ASSERT_OK(rl_store_pass_commit(f->store, &claimed, &pass_data.records, NULL, &done, &err));
    assert_int_equal(query_integer(f, count_all_records), before);
    assert_int_equal(done, run == 1);
  }
  assert_int_equal(query_integer(f, "SELECT count(*) FROM devices"), 1); /* same properties, one row */
}

static void pass_is_stored_completely_or_not_at_all(void **state) {
  fixture *f = *state;
  submit(f->store, "cpu", 1u << RL_PASS_ACTIVITY);
  rl_claim claimed = claim(f->store, "cpu");
  pass_records pass_data;
  bool done = true;
  fill_records(&pass_data, claimed.pass, 1);
  pass_data.rows[3].name = 9; /* no name has this index */
  ASSERT_SQLITE_FAILS(rl_store_pass_commit(f->store, &claimed, &pass_data.records, NULL, &done, &err), RL_STORAGE_CONSTRAINT,
                      SQLITE_CONSTRAINT_FOREIGNKEY);
  assert_true(done);
  assert_int_equal(query_integer(f, count_all_records), 0);
  pass_data.rows[3].name = 0, pass_data.rows[3].kind = 99;
  ASSERT_SQLITE_FAILS(rl_store_pass_commit(f->store, &claimed, &pass_data.records, NULL, &done, &err), RL_STORAGE_CONSTRAINT,
                      SQLITE_CONSTRAINT_FOREIGNKEY);
  pass_data.rows[3].kind = RL_ACTIVITY_KERNEL, pass_data.records.kernels[1].ordinal = 0; /* the same key twice */
  ASSERT_SQLITE_FAILS(rl_store_pass_commit(f->store, &claimed, &pass_data.records, NULL, &done, &err), RL_STORAGE_CONSTRAINT,
                      SQLITE_CONSTRAINT_UNIQUE);
  pass_data.records.kernels[1].ordinal = 1;
  ASSERT_OK(rl_store_pass_commit(f->store, &claimed, &pass_data.records, NULL, &done, &err));
  assert_false(done);
}

/* Submits a job with one pass and claims it. Fills *pass_data with its records. */
static rl_claim claim_and_fill(fixture *f, rl_pass pass, pass_records *pass_data) {
  submit(f->store, "cpu", 1u << pass);
  rl_claim claimed = claim(f->store, "cpu");
  fill_records(pass_data, claimed.pass, 1);
  return claimed;
}

static void metric_needs_its_kernel(void **state) {
  fixture *f = *state;
  pass_records pass_data;
  rl_claim claimed = claim_and_fill(f, RL_PASS_COUNTERS, &pass_data);
  bool done;
  pass_data.metrics[1].ordinal = 5;
  ASSERT_SQLITE_FAILS(rl_store_pass_commit(f->store, &claimed, &pass_data.records, NULL, &done, &err), RL_STORAGE_CONSTRAINT,
                      SQLITE_CONSTRAINT_NOTNULL);
}

static void instructions_and_series_need_their_kernel(void **state) {
  fixture *f = *state;
  pass_records pass_data;
  rl_claim claimed = claim_and_fill(f, RL_PASS_COUNTERS, &pass_data);
  bool done;
  pass_data.instructions[1].ordinal = 5;
  ASSERT_SQLITE_FAILS(rl_store_pass_commit(f->store, &claimed, &pass_data.records, NULL, &done, &err), RL_STORAGE_CONSTRAINT,
                      SQLITE_CONSTRAINT_NOTNULL);
  pass_data.instructions[1].ordinal = 0, pass_data.instructions[1].offset = 0; /* the same key twice */
  ASSERT_SQLITE_FAILS(rl_store_pass_commit(f->store, &claimed, &pass_data.records, NULL, &done, &err), RL_STORAGE_CONSTRAINT,
                      SQLITE_CONSTRAINT_PRIMARYKEY);
  pass_data.instructions[1].offset = 16, pass_data.points[1].ordinal = 5;
  ASSERT_SQLITE_FAILS(rl_store_pass_commit(f->store, &claimed, &pass_data.records, NULL, &done, &err), RL_STORAGE_CONSTRAINT,
                      SQLITE_CONSTRAINT_NOTNULL);
  assert_int_equal(query_integer(f, count_all_records), 0);
}

static void phase_needs_its_kernel(void **state) {
  fixture *f = *state;
  pass_records pass_data;
  rl_claim claimed = claim_and_fill(f, RL_PASS_ACTIVITY, &pass_data);
  bool done;
  pass_data.phases[1].ordinal = 5;
  ASSERT_SQLITE_FAILS(rl_store_pass_commit(f->store, &claimed, &pass_data.records, NULL, &done, &err), RL_STORAGE_CONSTRAINT,
                      SQLITE_CONSTRAINT_NOTNULL);
  pass_data.phases[1].ordinal = 0, pass_data.phases[1].position = 0; /* the same key twice */
  ASSERT_SQLITE_FAILS(rl_store_pass_commit(f->store, &claimed, &pass_data.records, NULL, &done, &err), RL_STORAGE_CONSTRAINT,
                      SQLITE_CONSTRAINT_PRIMARYKEY);
  assert_int_equal(query_integer(f, count_all_records), 0);
}

static void unavailable_pass_completes_the_job(void **state) {
  fixture *f = *state;
  int64_t id = submit(f->store, "cpu", 1u << RL_PASS_COUNTERS);
  bool done = false;
  for (int run = 0; run < 2; run++) {
    rl_claim claimed = claim(f->store, "cpu");
    ASSERT_OK(rl_store_pass_commit(f->store, &claimed, NULL, "a CPU has no counters here", &done, &err));
  }
  assert_true(done);
  cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_JOB, RL_BIND_INTEGER(":id", id));
  assert_text(rows, "0.state", "completed");
  assert_text(rows, "0.runs.1.passes.0.state", "unavailable");
  assert_text(rows, "0.runs.1.passes.0.reason", "a CPU has no counters here");
  assert_number(rows, "0.passes.unavailable", 2);
  cJSON_Delete(rows);
}

static void stale_claim_is_refused(void **state) {
  fixture *f = *state;
  int64_t id = submit(f->store, "cpu", TIMING);
  rl_claim claimed = claim(f->store, "cpu");
  pass_records pass_data;
  bool done;
  fill_records(&pass_data, claimed.pass, 1);
  ASSERT_OK(rl_store_job_finish(f->store, id, RL_JOB_CANCELLED, NULL, &err));
  ASSERT_FAILS(rl_store_pass_commit(f->store, &claimed, &pass_data.records, NULL, &done, &err), RL_HTTP, 409);
  assert_int_equal(query_integer(f, count_all_records), 0);
  claimed.job_id = 99;
  ASSERT_FAILS(rl_store_pass_commit(f->store, &claimed, &pass_data.records, NULL, &done, &err), RL_HTTP, 404);
}

/* --- events and tokens -------------------------------------------------------------------------------------------------- */

static void events_count_from_one(void **state) {
  fixture *f = *state;
  int64_t id = submit(f->store, "cpu", TIMING), other = submit(f->store, "cpu", TIMING), seq = 0;
  for (int64_t expected = 2; expected < 5; expected++) {
    ASSERT_OK(rl_store_event_append(f->store, id, "progress", "{\"step\":1}", &seq, &err));
    assert_int_equal(seq, expected);
  }
  ASSERT_OK(rl_store_event_append(f->store, other, "progress", "{}", &seq, &err));
  assert_int_equal(seq, 2);
  ASSERT_FAILS(rl_store_event_append(f->store, 99, "progress", "{}", &seq, &err), RL_HTTP, 404);
  ASSERT_SQLITE_FAILS(rl_store_event_append(f->store, id, "progress", "{", &seq, &err), RL_STORAGE_CONSTRAINT,
                      SQLITE_CONSTRAINT_CHECK);
  ASSERT_OK(rl_store_event_append(f->store, id, "progress", "{}", &seq, &err));
  assert_int_equal(seq, 5); /* a refused event leaves no gap */
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *text = NULL;
  ASSERT_OK(rl_store_query(f->store, RL_QUERY_EVENTS,
                           RL_BINDINGS(RL_BIND_INTEGER(":job", id), RL_BIND_INTEGER(":after", 1), RL_BIND_INTEGER(":limit", 1)),
                           &cursor, &err));
  assert_int_equal(rl_cursor_next(cursor, &text, &err), 1);
  assert_non_null(strstr(text, "\"step\":1"));
  assert_int_equal(rl_cursor_integer(cursor, 1), 2);
  assert_string_equal(rl_cursor_text(cursor, 2), "progress");
  assert_int_equal(rl_cursor_next(cursor, &text, &err), 0);
}

static void tokens_are_added_counted_and_removed(void **state) {
  fixture *f = *state;
  int64_t count = 7;
  bool known = true;
  ASSERT_OK(rl_store_count_tokens(f->store, &count, &err));
  assert_int_equal(count, 0);
  ASSERT_OK(rl_store_has_token(f->store, "abc", &known, &err));
  assert_false(known);
  ASSERT_OK(rl_store_token_add(f->store, "laptop", "abc", &err));
  ASSERT_SQLITE_FAILS(rl_store_token_add(f->store, "again", "abc", &err), RL_STORAGE_CONSTRAINT, SQLITE_CONSTRAINT_PRIMARYKEY);
  ASSERT_OK(rl_store_has_token(f->store, "abc", &known, &err));
  assert_true(known);
  ASSERT_OK(rl_store_count_tokens(f->store, &count, &err));
  assert_int_equal(count, 1);
  ASSERT_OK(rl_store_token_add(f->store, "desk", "def", &err));
  ASSERT_OK(rl_store_token_add(f->store, "laptop", "ghi", &err));
  cJSON *rows = query_rows(f->store, RL_QUERY_TOKENS, NULL, 0);
  assert_int_equal(cJSON_GetArraySize(rows), 3);
  assert_text(rows, "1.name", "desk");
  cJSON_Delete(rows);
  ASSERT_OK(rl_store_token_remove(f->store, "laptop", &count, &err));
  assert_int_equal(count, 2);
  ASSERT_OK(rl_store_has_token(f->store, "abc", &known, &err));
  assert_false(known);
  ASSERT_OK(rl_store_has_token(f->store, "def", &known, &err));
  assert_true(known);
}

/* --- the lock of another program at the start ------------------------------------------------------------------------- */

enum { LOCKED_MS = 500 };

static void *unlock_later(void *other) {
  usleep(LOCKED_MS * 1000);
  query_integer_on(other, "ROLLBACK");
  return NULL;
}

static void the_start_waits_for_a_short_lock(void **state) {
  fixture *f = *state;
  sqlite3 *other = connect_to(f);
  pthread_t thread;
  int64_t count, refused = 0, begin_ns = rl_monotonic_ns();
  query_integer_on(other, "BEGIN IMMEDIATE");
  assert_int_equal(pthread_create(&thread, NULL, unlock_later, other), 0);
  for (; rl_store_jobs_requeue(f->store, 5, &count, &err) < 0; refused++)
    assert_true(rl_store_should_retry_at_start(&err, begin_ns));
  assert_true(rl_monotonic_ns() - begin_ns >= LOCKED_MS * INT64_C(1000000) && refused > 0);
  pthread_join(thread, NULL);
  sqlite3_close(other);
}

static void the_start_waits_only_for_locks_and_not_for_5_s(void **state) {
  (void)state;
  const int64_t SECOND_NS = 1000000000, now_ns = rl_monotonic_ns();
  const rl_error locked = {.domain = RL_STORAGE, .code = RL_STORAGE_LOCKED},
                 full = {.domain = RL_STORAGE, .code = RL_STORAGE_FULL}, http = {.domain = RL_HTTP, .code = RL_STORAGE_LOCKED};
  assert_false(rl_store_should_retry_at_start(&full, now_ns));
  assert_false(rl_store_should_retry_at_start(&http, now_ns));
  assert_false(rl_store_should_retry_at_start(&locked, now_ns - 5 * SECOND_NS));
  assert_true(rl_store_should_retry_at_start(&locked, now_ns - 3 * SECOND_NS));
}

static void activity_kinds_are_those_of_the_records(void **state) {
  fixture *f = *state;
  assert_int_equal(query_integer(f, "SELECT count(*) FROM activity_kinds"), RL_ACTIVITY_KIND_COUNT);
  for (int kind = 0; kind < RL_ACTIVITY_KIND_COUNT; kind++) {
    char sql[96];
    snprintf(sql, sizeof sql, "SELECT kind FROM activity_kinds WHERE name = '%s'", rl_activity_kind_names[kind]);
    assert_int_equal(query_integer(f, sql), kind);
  }
}

#define WITH_STORE(TEST) cmocka_unit_test_setup_teardown(TEST, open_fixture, close_fixture)

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(folder_is_made_private),
                                     cmocka_unit_test(a_folder_that_cannot_be_created_is_reported),
                                     WITH_STORE(second_daemon_is_refused),
                                     WITH_STORE(token_is_added_while_a_daemon_runs),
                                     WITH_STORE(an_unwritable_folder_is_reported),
                                     WITH_STORE(newer_schema_is_refused),
                                     WITH_STORE(damaged_file_is_refused),
                                     WITH_STORE(development_database_is_refused),
                                     WITH_STORE(database_of_another_program_is_refused),
                                     WITH_STORE(tables_of_another_program_are_refused),
                                     WITH_STORE(writer_is_durable),
                                     WITH_STORE(job_is_on_disk_when_accepted),
                                     WITH_STORE(same_key_is_the_same_job),
                                     WITH_STORE(full_queue_refuses_jobs),
                                     WITH_STORE(refused_job_leaves_nothing),
                                     WITH_STORE(passes_of_the_running_job_come_first),
                                     WITH_STORE(unfinished_passes_are_repeated),
                                     WITH_STORE(jobs_finish_once),
                                     WITH_STORE(worker_crashes_are_counted),
                                     WITH_STORE(a_job_fails_after_repeated_crashes_of_the_daemon),
                                     WITH_STORE(pass_is_stored_once),
                                     WITH_STORE(pass_is_stored_completely_or_not_at_all),
                                     WITH_STORE(metric_needs_its_kernel),
                                     WITH_STORE(instructions_and_series_need_their_kernel),
                                     WITH_STORE(phase_needs_its_kernel),
                                     WITH_STORE(unavailable_pass_completes_the_job),
                                     WITH_STORE(stale_claim_is_refused),
                                     WITH_STORE(a_change_and_its_event_are_one_transaction),
                                     WITH_STORE(events_count_from_one),
                                     WITH_STORE(tokens_are_added_counted_and_removed),
                                     WITH_STORE(the_start_waits_for_a_short_lock),
                                     cmocka_unit_test(the_start_waits_only_for_locks_and_not_for_5_s),
                                     WITH_STORE(activity_kinds_are_those_of_the_records)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
