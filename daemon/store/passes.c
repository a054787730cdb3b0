/* Claims passes, commits their records, and counts the crashes that happen during a pass. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "store/store_internal.h"

/* --- claim ------------------------------------------------------------------------------------------------------------- */

/* Copies a text column, truncated to the buffer; NULL becomes "". */
static void copy_text(char *to, size_t size, sqlite3_stmt *row, int column) {
  const char *text = (const char *)sqlite3_column_text(row, column);
  size_t length = text != NULL ? strnlen(text, size - 1) : 0;
  memcpy(to, text != NULL ? text : "", length);
  to[length] = '\0';
}

static int next_pass(rl_db *db, const char *device, rl_claim *claim, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  int found = rl_db_query_row(db, err, "pass_next", &row, RL_BIND_TEXT(":device", device));
  if (found <= 0) return found;
  *claim = (rl_claim){.job_id = sqlite3_column_int64(row, 0),
                      .run_id = sqlite3_column_int64(row, 1),
                      .pass_id = sqlite3_column_int64(row, 2),
                      .pass = (rl_pass)sqlite3_column_int(row, 3),
                      .time_limit_s = sqlite3_column_int64(row, 7),
                      .fresh_worker = sqlite3_column_int(row, 10) != 0};
  copy_text(claim->run.workload, sizeof claim->run.workload, row, 4);
  copy_text(claim->run.variant, sizeof claim->run.variant, row, 5);
  copy_text(claim->run.params, sizeof claim->run.params, row, 6);
  copy_text(claim->profile, sizeof claim->profile, row, 8);
  copy_text(claim->worker_build, sizeof claim->worker_build, row, 11);
  const char *source = (const char *)sqlite3_column_text(row, 9);
  if (source == NULL) return 1;
  claim->source_json = strdup(source);
  return claim->source_json != NULL ? 1 : rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for posted code");
}

/* Executes an UPDATE ... RETURNING statement on a job, with the parameters :job and :now. Returns 1 if the statement has changed
 * the job, else 0. */
static int update_returning(rl_db *db, const char *name, int64_t job_id, int64_t now, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  int changed = rl_db_query_row(db, err, name, &row, RL_BIND_INTEGER(":job", job_id), RL_BIND_INTEGER(":now", now));
  return changed > 0 && rl_db_step(db, row, err) < 0 ? -1 : changed;
}

static int claim_pass(rl_db *db, const char *device, rl_claim *claim, rl_error *err) {
  int found = next_pass(db, device, claim, err);
  if (found <= 0) return found;
  int64_t now = rl_realtime_ns();
  if (rl_db_run(db, err, "pass_start", RL_BIND_INTEGER(":pass", claim->pass_id), RL_BIND_INTEGER(":now", now)) < 0) return -1;
  int started = update_returning(db, "job_start", claim->job_id, now, err);
  if (started > 0) started = rl_store_add_state_event(db, claim->job_id, RL_JOB_RUNNING, NULL, err);
  return started < 0 ? -1 : 1;
}

int rl_store_pass_claim(rl_store *store, const char *device, rl_claim *claim, rl_error *err) {
  rl_claim claimed = {0};
  if (rl_store_begin_transaction(store, err) < 0) return -1;
  int rc = claim_pass(&store->writer, device, &claimed, err);
  rc = rl_store_end_transaction_changing(store, rc, (rl_change){.job_id = claimed.job_id, .lists = true}, err);
  if (rc > 0) *claim = claimed;
  else rl_claim_clear(&claimed);
  return rc;
}

/* --- commit ------------------------------------------------------------------------------------------------------------ */

/* Computes and stores the floors of the pass from its ceilings, and marks times as suspect if they are shorter than their floor,
 * and samples also if the device was throttled. */
static int mark_suspect_times(rl_db *db, int64_t pass, rl_error *err) {
  static const char *const steps[] = {"floors_insert",   "shares_insert",      "epochs_suspect",
                                      "samples_suspect", "pass_suspect_cause", "samples_throttled"};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
    if (rl_db_run(db, err, steps[i], RL_BIND_INTEGER(":pass", pass)) < 0) return -1;
  return 0;
}

int rl_store_restore_floors(rl_db *db, rl_error *err) {
  for (int64_t pass = 0;;) {
    sqlite3_stmt *row = NULL;
    int found = rl_db_query_row(db, err, "floors_outdated", &row, RL_BIND_INTEGER(":after", pass));
    if (found <= 0) return found;
    pass = sqlite3_column_int64(row, 0);
    sqlite3_reset(row);
    if (rl_db_run(db, err, "floors_delete", RL_BIND_INTEGER(":pass", pass)) < 0 || mark_suspect_times(db, pass, err) < 0)
      return -1;
  }
}

int rl_store_check_claim(rl_db *db, const rl_claim *claim, bool *job_done, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  int found = rl_db_query_row(db, err, "pass_state", &row, RL_BIND_INTEGER(":job", claim->job_id),
                              RL_BIND_INTEGER(":run", claim->run_id), RL_BIND_INTEGER(":pass", claim->pass_id));
  if (found < 0) return -1;
  if (found == 0)
    return rl_fail(err, RL_HTTP, 404, "Pass %lld of job %lld not found.", (long long)claim->pass_id, (long long)claim->job_id);
  const char *pass = (const char *)sqlite3_column_text(row, 0), *job = (const char *)sqlite3_column_text(row, 1);
  if (pass == NULL || job == NULL) return rl_db_fail(db, "read the state of a pass", err);
  *job_done = strcmp(job, "completed") == 0;
  if (strcmp(pass, "completed") == 0 || strcmp(pass, "unavailable") == 0) return 0;
  if (strcmp(pass, "running") == 0 && strcmp(job, "running") == 0) return 1;
  return rl_fail(err, RL_HTTP, 409, "job %lld is %s and its pass %lld is %s: the worker's records are not stored",
                 (long long)claim->job_id, job, (long long)claim->pass_id, pass);
}

/* Maximum size in memory of the kernels and records that one transaction stores: about 260 instructions or 3,100 metrics. */
enum { KERNEL_SLICE_BYTES = 1 << 20 };

/* Inserts the kernels from *position on and makes all kernels of the pass visible to queries. */
static int commit_kernels(rl_db *db, const rl_claim *claim, const rl_records *records, rl_kernel_position *position,
                          rl_error *err) {
  bool is_first = position->kind == 0;
  if (is_first && rl_db_run(db, err, "kernels_discard", RL_BIND_INTEGER(":pass", claim->pass_id)) < 0) return -1;
  if (rl_store_insert_kernels(db, claim, records, SIZE_MAX, position, err) < 0) return -1;
  return rl_db_run(db, err, "kernels_commit", RL_BIND_INTEGER(":pass", claim->pass_id));
}

static int commit_pass(rl_db *db, const rl_claim *claim, const rl_records *records, const char *reason,
                       rl_kernel_position *position, bool *job_done, rl_error *err) {
  int is_running = rl_store_check_claim(db, claim, job_done, err);
  if (is_running <= 0) return is_running;
  int64_t now = rl_realtime_ns();
  if (rl_store_insert_records(db, claim, records, err) < 0 || commit_kernels(db, claim, records, position, err) < 0 ||
      rl_db_run(db, err, "pass_finish", RL_BIND_INTEGER(":pass", claim->pass_id), RL_BIND_TEXT(":reason", reason),
                RL_BIND_INTEGER(":now", now), RL_BIND_TEXT_OR_NULL(":commit", records->metadata.commit),
                RL_BIND_TEXT_OR_NULL(":properties", records->metadata.device_properties)) < 0 ||
      (claim->pass == RL_PASS_TIMING && (rl_db_run(db, err, "pass_ceilings", RL_BIND_INTEGER(":pass", claim->pass_id)) < 0 ||
                                         mark_suspect_times(db, claim->pass_id, err) < 0)) ||
      rl_store_summarize_run(db, claim->run_id, err) < 0 ||
      rl_store_add_pass_event(db, claim, reason != NULL ? "unavailable" : "completed", reason, err) < 0)
    return -1;
  int completed = update_returning(db, "job_complete", claim->job_id, now, err);
  *job_done = completed > 0;
  if (completed <= 0) return completed;
  return rl_store_summarize_job(db, claim->job_id, err) < 0
             ? -1
             : rl_store_add_state_event(db, claim->job_id, RL_JOB_COMPLETED, NULL, err);
}

static int commit_transaction(rl_store *store, const rl_claim *claim, const rl_records *records, const char *reason,
                              rl_kernel_position *position, bool *job_done, rl_error *err) {
  if (rl_store_begin_transaction(store, err) < 0) return -1;
  int rc = commit_pass(&store->writer, claim, records, reason, position, job_done, err);
  return rl_store_end_transaction_changing(store, rc, (rl_change){.job_id = claim->job_id, .lists = true, .ceilings = true}, err);
}

/* Deletes the kernels of a pass that is not committed, in short transactions. */
static int discard_kernels(rl_store *store, int64_t pass, rl_error *err) {
  enum { BATCH_KERNELS = 2 };
  int64_t deleted = BATCH_KERNELS;
  while (deleted == BATCH_KERNELS) {
    if (rl_store_begin_bulk_transaction(store, err) < 0) return -1;
    int rc = rl_db_run(&store->writer, err, "kernels_discard", RL_BIND_INTEGER(":pass", pass),
                       RL_BIND_INTEGER(":batch", BATCH_KERNELS));
    deleted = sqlite3_changes64(store->writer.handle);
    if (rl_store_end_transaction_changing(store, rc, (rl_change){0}, err) < 0) return -1;
  }
  return 0;
}

/* Inserts one slice of kernels from *position on. Returns 1 after the last slice or if the pass is already committed, else 0.
 * Called inside a transaction. */
static int insert_kernel_slice(rl_db *db, const rl_claim *claim, const rl_records *records, rl_kernel_position *position,
                               rl_error *err) {
  bool job_done;
  int is_running = rl_store_check_claim(db, claim, &job_done, err);
  if (is_running <= 0) return is_running < 0 ? -1 : 1;
  return rl_store_insert_kernels(db, claim, records, KERNEL_SLICE_BYTES, position, err);
}

/* If the kernels exceed KERNEL_SLICE_BYTES, inserts all of them in short transactions. Each transaction lets writers that already
 * wait go first. Otherwise does nothing: the last transaction inserts the kernels. */
static int store_kernel_slices(rl_store *store, const rl_claim *claim, const rl_records *records, rl_kernel_position *position,
                               rl_error *err) {
  if (rl_store_kernel_bytes(records) <= KERNEL_SLICE_BYTES) return 0;
  if (discard_kernels(store, claim->pass_id, err) < 0) return -1;
  for (int rc = 0; rc == 0;) {
    if (rl_store_begin_bulk_transaction(store, err) < 0) return -1;
    rc = insert_kernel_slice(&store->writer, claim, records, position, err);
    if (rl_store_end_transaction_changing(store, rc, (rl_change){0}, err) < 0) return -1;
    if (rc < 0) return -1;
  }
  return 0;
}

int rl_store_pass_commit(rl_store *store, const rl_claim *claim, const rl_records *records, const char *reason, bool *job_done,
                         rl_error *err) {
  static const rl_records no_records;
  rl_kernel_position position = {0};
  bool done = false;
  if (records == NULL) records = &no_records;
  int rc = store_kernel_slices(store, claim, records, &position, err);
  if (rc == 0) rc = commit_transaction(store, claim, records, reason, &position, &done, err);
  /* If this fails too, the next commit of the pass or the next start of the daemon discards the kernels. */
  if (rc < 0 && position.kind != 0) discard_kernels(store, claim->pass_id, NULL);
  if (rc < 0) return -1;
  *job_done = done;
  return 0;
}

/* --- crashes ----------------------------------------------------------------------------------------------------------- */

/* The process that died during a pass, and the statement that counts this death. A job survives more deaths of the daemon than of
 * its worker, because a job rarely causes deaths of the daemon. */
typedef struct crash_kind {
  const char *process;
  const char *count_statement;
} crash_kind;
static const crash_kind worker_crash = {"worker", "job_count_worker_death"}, daemon_crash = {"daemon", "job_count_daemon_death"};

/* Increments the number of deaths of this process in the job, sets *deaths to the new number, and sets the pass to pending. */
static int count_crash(rl_db *db, crash_kind kind, const rl_claim *claim, const char *reason, int64_t *deaths, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  int found = rl_db_query_row(db, err, kind.count_statement, &row, RL_BIND_INTEGER(":job", claim->job_id));
  if (found < 0) return -1;
  if (found == 0) return rl_fail(err, RL_HTTP, 404, "Job %lld not found.", (long long)claim->job_id);
  *deaths = sqlite3_column_int64(row, 0);
  if (rl_db_step(db, row, err) < 0) return -1;
  return rl_db_run(db, err, "pass_retry", RL_BIND_INTEGER(":pass", claim->pass_id), RL_BIND_INTEGER(":job", claim->job_id),
                   RL_BIND_TEXT(":reason", reason));
}

/* Counts the death, adds an event and sets the pass to pending. If the number of deaths has reached max_deaths, fails the job and
 * sets *job_failed. */
static int record_crash(rl_db *db, crash_kind kind, const rl_claim *claim, const char *reason, int64_t max_deaths,
                        bool *job_failed, rl_error *err) {
  rl_error problem;
  int64_t deaths = 0;
  if (count_crash(db, kind, claim, reason, &deaths, err) < 0 || rl_store_add_pass_event(db, claim, "died", reason, err) < 0)
    return -1;
  *job_failed = deaths >= max_deaths;
  if (!*job_failed) return 0;
  rl_fail(&problem, RL_WIRE, 0, "the %s died %lld times during this job, the last time: %s", kind.process, (long long)deaths,
          reason);
  return rl_store_set_final_state(db, claim->job_id, RL_JOB_FAILED, &problem, err);
}

int rl_store_record_worker_crash(rl_store *store, const rl_claim *claim, const char *reason, int64_t max_deaths, bool *job_failed,
                                 rl_error *err) {
  bool failed = false;
  if (rl_store_begin_transaction(store, err) < 0) return -1;
  int rc = record_crash(&store->writer, worker_crash, claim, reason, max_deaths, &failed, err);
  if (rl_store_end_transaction_changing(store, rc, (rl_change){.job_id = claim->job_id, .lists = true}, err) < 0) return -1;
  *job_failed = failed;
  return 0;
}

/* Finds a pass whose state is `running` because the daemon crashed. Returns 1 and fills the ids, the pass and the variant of
 * *claim; returns 0 if there is none. */
static int next_crashed_pass(rl_db *db, rl_claim *claim, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  int found = rl_db_query_row(db, err, "pass_running_at_start", &row);
  if (found <= 0) return found;
  *claim = (rl_claim){.job_id = sqlite3_column_int64(row, 0),
                      .run_id = sqlite3_column_int64(row, 1),
                      .pass_id = sqlite3_column_int64(row, 2),
                      .pass = (rl_pass)sqlite3_column_int(row, 3)};
  copy_text(claim->run.variant, sizeof claim->run.variant, row, 4);
  return 1;
}

int rl_store_record_daemon_crashes(rl_db *db, int64_t max_deaths, rl_error *err) {
  rl_claim claim;
  bool failed;
  int found;
  while ((found = next_crashed_pass(db, &claim, err)) > 0)
    if (record_crash(db, daemon_crash, &claim, "the daemon or the host went down in the middle of the pass", max_deaths, &failed,
                     err) < 0)
      return -1;
  return found;
}
