/* Deletes old rows (retention). Each transaction deletes at most about BATCH_ROWS rows, so that other writers and a daemon that
 * stops wait only briefly. */
#include <stdatomic.h>
#include <stdio.h>

#include "store/store_internal.h"

enum { BATCH_ROWS = RL_DELETE_ROWS, BATCH_KERNELS = 5 /* each has thousands of metrics, instructions and points */ };
static const int64_t DAY_NS = INT64_C(86400000000000);

/* Instants in ns since 1970. Retention may delete activity rows of passes that finished before activity_ns, events of jobs and
 * suite runs that finished before events_ns, whole suite runs that finished before suite_runs_ns, and whole jobs that finished
 * before jobs_ns. INT64_MIN: it deletes none of them. */
typedef struct deletion_limits {
  int64_t activity_ns, events_ns, suite_runs_ns, jobs_ns;
} deletion_limits;

typedef int64_t removed_counts[RL_RETENTION_ROW_KIND_COUNT]; /* number of deleted rows by kind */

/* Executes a statement. Sets *id to the first column of its first row and returns 1; if the statement returns no row, sets *id to
 * 0 and returns 0. */
static int first_integer(rl_db *db, const char *name, const rl_binding *bindings, int count, int64_t *id, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  int found = rl_db_query_row_bound(db, name, bindings, count, &row, err);
  if (found >= 0) *id = found > 0 ? sqlite3_column_int64(row, 0) : 0;
  return found;
}

/* Deletes one batch of a pass's activity rows. The first batch also hides the other rows from queries. Returns 1 after the last
 * batch, else 0. */
static int delete_activity(rl_db *db, int64_t pass, removed_counts removed, rl_error *err) {
  int64_t row_count = 0;
  if (rl_db_run(db, err, "activity_hide", RL_BIND_INTEGER(":pass", pass)) < 0) return -1;
  int rc = rl_store_delete_activity_batch(db, pass, &row_count, err);
  removed[RL_REMOVED_ACTIVITY] += row_count;
  return rc;
}

/* Deletes one batch of a job's events. Returns 1 after the last batch, else 0. */
static int delete_events(rl_db *db, int64_t job, removed_counts removed, rl_error *err) {
  if (rl_db_run(db, err, "events_delete", RL_BIND_INTEGER(":job", job), RL_BIND_INTEGER(":batch", BATCH_ROWS)) < 0) return -1;
  int64_t changes = sqlite3_changes64(db->handle);
  removed[RL_REMOVED_EVENTS] += changes;
  if (changes == BATCH_ROWS) return 0;
  return rl_db_run(db, err, "events_mark_deleted", RL_BIND_INTEGER(":job", job)) < 0 ? -1 : 1;
}

/* Deletes one batch of a suite run's events. Returns 1 after the last batch, else 0. */
static int delete_suite_events(rl_db *db, int64_t run, removed_counts removed, rl_error *err) {
  if (rl_db_run(db, err, "suite_events_delete", RL_BIND_INTEGER(":run", run), RL_BIND_INTEGER(":batch", BATCH_ROWS)) < 0)
    return -1;
  int64_t changes = sqlite3_changes64(db->handle);
  removed[RL_REMOVED_EVENTS] += changes;
  if (changes == BATCH_ROWS) return 0;
  return rl_db_run(db, err, "suite_events_mark_deleted", RL_BIND_INTEGER(":run", run)) < 0 ? -1 : 1;
}

/* Deletes one batch of a job's kernels with their metrics, instructions, phases and points. Returns 1 after the last batch, else
 * 0. */
static int delete_kernels(rl_db *db, int64_t job, rl_error *err) {
  if (rl_db_run(db, err, "kernels_delete", RL_BIND_INTEGER(":job", job), RL_BIND_INTEGER(":batch", BATCH_KERNELS)) < 0) return -1;
  return sqlite3_changes64(db->handle) < BATCH_KERNELS;
}

/* Deletes the job, and its posted code if no other job refers to the code. Returns 1. */
static int delete_job_row(rl_db *db, int64_t job, removed_counts removed, rl_error *err) {
  char source[RL_SHA256_SIZE] = "";
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  int found = rl_db_query_row(db, err, "job_delete", &row, RL_BIND_INTEGER(":job", job));
  const char *source_hash = found > 0 ? (const char *)sqlite3_column_text(row, 0) : NULL;
  if (source_hash != NULL) snprintf(source, sizeof source, "%s", source_hash);
  if (found < 0 || (found > 0 && rl_db_step(db, row, err) < 0)) return -1;
  removed[RL_REMOVED_JOBS] += sqlite3_changes64(db->handle);
  return source[0] == '\0' || rl_db_run(db, err, "source_delete", RL_BIND_TEXT(":sha256", source)) == 0 ? 1 : -1;
}

/* Deletes one batch of a job's rows, and after the last batch the job. Returns 1 after the last batch, else 0. */
static int delete_job(rl_db *db, int64_t job, removed_counts removed, rl_error *err) {
  int64_t pass = 0;
  int found = first_integer(db, "activity_of_job", RL_BINDINGS(RL_BIND_INTEGER(":job", job)), &pass, err);
  if (found != 0) return found < 0 ? -1 : delete_activity(db, pass, removed, err);
  int done = delete_events(db, job, removed, err);
  if (done > 0) done = delete_kernels(db, job, err);
  return done > 0 ? delete_job_row(db, job, removed, err) : done;
}

/* Deletes one batch of a suite run's events, and after the last batch the suite run with all its values, so that no suite run
 * lacks a part of its values. Returns 1 after the last batch, else 0. */
static int delete_suite_run(rl_db *db, int64_t run, removed_counts removed, rl_error *err) {
  int done = delete_suite_events(db, run, removed, err);
  if (done <= 0) return done;
  if (rl_db_run(db, err, "suite_run_unlist", RL_BIND_INTEGER(":run", run)) < 0 ||
      rl_db_run(db, err, "suite_run_delete", RL_BIND_INTEGER(":run", run)) < 0)
    return -1;
  removed[RL_REMOVED_SUITE_RUNS] += sqlite3_changes64(db->handle);
  return 1;
}

static const struct retention_step {   /* executed in this order */
  const char *select_oldest_statement; /* returns the id of the oldest pass, suite run or job whose rows may be deleted */
  int (*delete_one_batch)(rl_db *db, int64_t id, removed_counts removed, rl_error *err);
  size_t limit_offset;
} retention_steps[] = {
    {"activity_oldest", delete_activity, offsetof(deletion_limits, activity_ns)},
    {"events_oldest", delete_events, offsetof(deletion_limits, events_ns)},
    {"suite_events_oldest", delete_suite_events, offsetof(deletion_limits, events_ns)},
    {"suite_run_oldest", delete_suite_run, offsetof(deletion_limits, suite_runs_ns)},
    {"job_oldest", delete_job, offsetof(deletion_limits, jobs_ns)},
};

/* Deletes one batch of activity rows that are already hidden; if there are none, deletes a batch of the first step that has rows
 * to delete. Returns 1, or 0 if no rows were left to delete. Sets *complete to whether this was the last batch of a pass, suite
 * run or job. */
static int delete_batch(rl_db *db, const deletion_limits *limits, removed_counts removed, bool *complete, rl_error *err) {
  int64_t hidden_pass = 0;
  int is_hidden = first_integer(db, "activity_hidden", NULL, 0, &hidden_pass, err);
  if (is_hidden > 0) {
    int last = delete_activity(db, hidden_pass, removed, err);
    *complete = last > 0;
    return last < 0 ? -1 : 1;
  }
  if (is_hidden < 0) return -1;
  for (size_t i = 0; i < sizeof retention_steps / sizeof *retention_steps; i++) {
    int64_t id = 0, before = *(const int64_t *)((const char *)limits + retention_steps[i].limit_offset);
    if (before == INT64_MIN) continue;
    int found =
        first_integer(db, retention_steps[i].select_oldest_statement, RL_BINDINGS(RL_BIND_INTEGER(":before", before)), &id, err);
    if (found < 0) return -1;
    if (found == 0) continue;
    int last = retention_steps[i].delete_one_batch(db, id, removed, err);
    *complete = last > 0;
    return last < 0 ? -1 : 1;
  }
  return 0;
}

/* Returns 1 if max_bytes is not 0 and the database uses at most max_bytes, else 0. */
static int is_within_max_bytes(rl_db *db, int64_t max_bytes, rl_error *err) {
  int64_t used = 0;
  if (max_bytes == 0) return 0;
  return first_integer(db, "database_bytes", NULL, 0, &used, err) < 0 ? -1 : used <= max_bytes;
}

/* Deletes batches until no step has rows to delete, the database uses at most max_bytes (0: no limit), or *stop is true. Adds the
 * number of deleted rows to *removed. */
static int delete_until_within(rl_store *store, const deletion_limits *limits, int64_t max_bytes, const atomic_bool *stop,
                               int64_t *removed, rl_error *err) {
  bool complete = true;
  for (int more = 1; more > 0 && !atomic_load(stop);) {
    removed_counts deleted = {0};
    if (rl_store_begin_bulk_transaction(store, err) < 0) return -1;
    int is_within = complete ? is_within_max_bytes(&store->writer, max_bytes, err) : 0;
    more = is_within == 0 ? delete_batch(&store->writer, limits, deleted, &complete, err) : is_within > 0 ? 0 : -1;
    more = rl_store_end_transaction_changing_all(store, more, err);
    if (more < 0) return -1;
    for (int i = 0; i < RL_RETENTION_ROW_KIND_COUNT; i++) {
      *removed += deleted[i];
      atomic_fetch_add(&store->removed_rows[i], deleted[i]);
    }
  }
  return 0;
}

/* Deletes the oldest data until the database uses at most max_bytes. Deletes nothing if the data that is never deleted takes more
 * than that by the estimate needed_bytes, because the database would stay too large without the other data. */
static int shrink(rl_store *store, int64_t max_bytes, const atomic_bool *stop, int64_t *removed, rl_error *err) {
  const deletion_limits no_age_limits = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
  int64_t needed = 0;
  rl_timed_mutex_lock(&store->writer_mutex);
  int rc = is_within_max_bytes(&store->writer, max_bytes, err);
  if (rc == 0) rc = first_integer(&store->writer, "needed_bytes", NULL, 0, &needed, err) < 0 ? -1 : needed > max_bytes;
  rl_timed_mutex_unlock(&store->writer_mutex);
  return rc == 0 ? delete_until_within(store, &no_age_limits, max_bytes, stop, removed, err) : rc < 0 ? -1 : 0;
}

int rl_store_excess_bytes(rl_store *store, int64_t max_bytes, int64_t *bytes, rl_error *err) {
  int64_t used = 0;
  rl_timed_mutex_lock(&store->writer_mutex);
  int rc = first_integer(&store->writer, "database_bytes", NULL, 0, &used, err);
  rl_timed_mutex_unlock(&store->writer_mutex);
  *bytes = max_bytes > 0 && used > max_bytes ? used - max_bytes : 0;
  return rc < 0 ? -1 : 0;
}

int64_t rl_store_removed_rows(const rl_store *store, rl_retention_row_kind kind) {
  return atomic_load(&store->removed_rows[kind]);
}

/* Returns free pages to the file system in steps, and empties the write-ahead log unless the log is in use. */
static int return_free_pages(rl_store *store, const atomic_bool *stop, rl_error *err) {
  for (int64_t pages = 1, before = 0; pages > 0 && pages != before;) {
    if (atomic_load(stop)) return 0;
    before = pages;
    rl_timed_mutex_lock(&store->writer_mutex);
    int rc = rl_db_run(&store->writer, err, "vacuum");
    if (rc == 0) rc = first_integer(&store->writer, "free_pages", NULL, 0, &pages, err);
    rl_timed_mutex_unlock(&store->writer_mutex);
    if (rc < 0) return -1;
  }
  return rl_store_reset_log(store, err) < 0 ? -1 : 0;
}

int rl_store_apply_retention(rl_store *store, const rl_retention *retention, int64_t now_ns, const atomic_bool *stop,
                             int64_t *removed_rows, rl_error *err) {
  int64_t activity_ns = retention->activity_days > 0 ? now_ns - retention->activity_days * DAY_NS : INT64_MIN;
  int64_t jobs_ns = retention->job_days > 0 ? now_ns - retention->job_days * DAY_NS : INT64_MIN;
  const deletion_limits age_limits = {
      .activity_ns = activity_ns, .events_ns = activity_ns, .suite_runs_ns = INT64_MIN, .jobs_ns = jobs_ns};
  int64_t removed = 0;
  if (delete_until_within(store, &age_limits, 0, stop, &removed, err) < 0) return -1;
  if (retention->max_bytes > 0 && shrink(store, retention->max_bytes, stop, &removed, err) < 0) return -1;
  if (removed > 0 && return_free_pages(store, stop, err) < 0) return -1;
  *removed_rows = removed;
  return 0;
}
