/* Deletes old rows. Each transaction deletes at most about BATCH rows, so that other writers and a stop of the daemon wait only
 * briefly. */
#include <stdatomic.h>
#include <stdio.h>

#include "store/store_internal.h"

enum { BATCH = 5000, KERNELS_BATCH = 5 /* each has thousands of metrics, instructions and points */ };
static const int64_t DAY_NS = INT64_C(86400000000000);

/* Rows of passes (activity) and jobs (events, jobs) that finished before these instants may be deleted. */
typedef struct horizon {
  int64_t activity_ns, events_ns, jobs_ns;
} horizon;

typedef int64_t removals[RL_REMOVED_KINDS]; /* number of deleted rows by kind */

/* Returns 1 and the first column of the first row in *id; 0 and *id 0 if there is no row. */
static int first_id(rl_db *db, const char *name, const rl_binding *bindings, int count, int64_t *id, rl_error *err) {
  rl_auto(rl_db_release) sqlite3_stmt *row = NULL;
  int found = rl_db_first(db, name, bindings, count, &row, err);
  if (found >= 0) *id = found > 0 ? sqlite3_column_int64(row, 0) : 0;
  return found;
}

/* Deletes one batch of a pass's raw rows, and after the last batch their names and spans. Returns 1 after the last batch, else 0.
 */
static int delete_activity(rl_db *db, int64_t pass, removals removed, rl_error *err) {
  if (rl_db_run(db, err, "activity_delete", RL_INT(":pass", pass), RL_INT(":batch", BATCH)) < 0) return -1;
  int64_t changes = sqlite3_changes64(db->handle);
  removed[RL_REMOVED_ACTIVITY] += changes;
  if (changes == BATCH) return 0;
  if (rl_db_run(db, err, "activity_names_delete", RL_INT(":pass", pass)) < 0 ||
      rl_db_run(db, err, "activity_spans_delete", RL_INT(":pass", pass)) < 0 ||
      rl_db_run(db, err, "activity_mark_deleted", RL_INT(":pass", pass)) < 0)
    return -1;
  return 1;
}

/* Deletes one batch of a job's events. Returns 1 after the last batch, else 0. */
static int delete_events(rl_db *db, int64_t job, removals removed, rl_error *err) {
  if (rl_db_run(db, err, "events_delete", RL_INT(":job", job), RL_INT(":batch", BATCH)) < 0) return -1;
  int64_t changes = sqlite3_changes64(db->handle);
  removed[RL_REMOVED_EVENTS] += changes;
  if (changes == BATCH) return 0;
  return rl_db_run(db, err, "events_mark_deleted", RL_INT(":job", job)) < 0 ? -1 : 1;
}

/* Deletes one batch of a job's kernels with their metrics, instructions, phases and points. Returns 1 after the last batch, else
 * 0. */
static int delete_kernels(rl_db *db, int64_t job, rl_error *err) {
  if (rl_db_run(db, err, "kernels_delete", RL_INT(":job", job), RL_INT(":batch", KERNELS_BATCH)) < 0) return -1;
  return sqlite3_changes64(db->handle) < KERNELS_BATCH;
}

/* Deletes the job, and its posted code if no other job refers to it. Returns 1. */
static int delete_job_row(rl_db *db, int64_t job, removals removed, rl_error *err) {
  char source[RL_SHA256_SIZE] = "";
  rl_auto(rl_db_release) sqlite3_stmt *row = NULL;
  int found = rl_db_row(db, err, "job_delete", &row, RL_INT(":job", job));
  const char *named = found > 0 ? (const char *)sqlite3_column_text(row, 0) : NULL;
  if (named != NULL) snprintf(source, sizeof source, "%s", named);
  if (found < 0 || (found > 0 && rl_db_step(db, row, err) < 0)) return -1;
  removed[RL_REMOVED_JOBS] += sqlite3_changes64(db->handle);
  return source[0] == '\0' || rl_db_run(db, err, "source_delete", RL_TEXT(":sha256", source)) == 0 ? 1 : -1;
}

/* Deletes one batch of a job's rows, and after the last batch the job. Returns 1 after the last batch, else 0. */
static int delete_job(rl_db *db, int64_t job, removals removed, rl_error *err) {
  int64_t pass = 0;
  int found = first_id(db, "activity_of_job", RL_BINDINGS(RL_INT(":job", job)), &pass, err);
  if (found != 0) return found < 0 ? -1 : delete_activity(db, pass, removed, err);
  int done = delete_events(db, job, removed, err);
  if (done > 0) done = delete_kernels(db, job, err);
  return done > 0 ? delete_job_row(db, job, removed, err) : done;
}

static const struct layer {     /* in the order of their deletion */
  const char *oldest_statement; /* selects the id of the oldest pass or job that may be deleted */
  int (*remove)(rl_db *db, int64_t id, removals removed, rl_error *err); /* deletes one batch */
  size_t horizon_offset;
} layers[] = {
    {"activity_oldest", delete_activity, offsetof(horizon, activity_ns)},
    {"events_oldest", delete_events, offsetof(horizon, events_ns)},
    {"job_oldest", delete_job, offsetof(horizon, jobs_ns)},
};

/* Deletes one batch from the first layer with rows to delete. Returns 1; 0 if no layer has any. *complete: whether this was the
 * last batch of a pass or job. */
static int remove_batch(rl_db *db, const horizon *limits, removals removed, bool *complete, rl_error *err) {
  for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
    int64_t id = 0, before = *(const int64_t *)((const char *)limits + layers[i].horizon_offset);
    int found = first_id(db, layers[i].oldest_statement, RL_BINDINGS(RL_INT(":before", before)), &id, err);
    if (found < 0) return -1;
    if (found == 0) continue;
    int last = layers[i].remove(db, id, removed, err);
    *complete = last > 0;
    return last < 0 ? -1 : 1;
  }
  return 0;
}

/* Returns 1 if max_bytes is a limit (not 0) and at most max_bytes are in use, else 0. */
static int is_small_enough(rl_db *db, int64_t max_bytes, rl_error *err) {
  int64_t used = 0;
  if (max_bytes == 0) return 0;
  return first_id(db, "database_bytes", NULL, 0, &used, err) < 0 ? -1 : used <= max_bytes;
}

/* Deletes batches until no layer has rows to delete, at most max_bytes (0: no limit) are in use, or *stop is true. Adds the
 * number of rows to *removed. */
static int remove_all(rl_store *store, const horizon *limits, int64_t max_bytes, const atomic_bool *stop, int64_t *removed,
                      rl_error *err) {
  bool complete = true;
  for (int more = 1; more > 0 && !atomic_load(stop);) {
    removals deleted = {0};
    if (rl_store_begin(store, err) < 0) return -1;
    int is_small = complete ? is_small_enough(&store->writer, max_bytes, err) : 0;
    more = is_small == 0 ? remove_batch(&store->writer, limits, deleted, &complete, err) : is_small > 0 ? 0 : -1;
    more = rl_store_end(store, more, err);
    if (more < 0) return -1;
    for (int i = 0; i < RL_REMOVED_KINDS; i++) {
      *removed += deleted[i];
      atomic_fetch_add(&store->removed_rows[i], deleted[i]);
    }
  }
  return 0;
}

int64_t rl_store_removed_rows(const rl_store *store, rl_removed_kind kind) { return atomic_load(&store->removed_rows[kind]); }

/* Returns free pages to the file system in steps, and truncates the write-ahead log. */
static int shrink(rl_store *store, const atomic_bool *stop, rl_error *err) {
  for (int64_t pages = 1, before = 0; pages > 0 && pages != before;) {
    if (atomic_load(stop)) return 0;
    before = pages;
    pthread_mutex_lock(&store->writer_mutex);
    int rc = rl_db_run(&store->writer, err, "vacuum");
    if (rc == 0) rc = first_id(&store->writer, "free_pages", NULL, 0, &pages, err);
    pthread_mutex_unlock(&store->writer_mutex);
    if (rc < 0) return -1;
  }
  pthread_mutex_lock(&store->writer_mutex);
  int rc = rl_db_run(&store->writer, err, "checkpoint");
  pthread_mutex_unlock(&store->writer_mutex);
  return rc;
}

int rl_store_retain(rl_store *store, const rl_retention *retention, int64_t now_ns, const atomic_bool *stop,
                    int64_t *removed_rows, rl_error *err) {
  int64_t activity_ns = retention->activity_days > 0 ? now_ns - retention->activity_days * DAY_NS : INT64_MIN;
  int64_t jobs_ns = retention->job_days > 0 ? now_ns - retention->job_days * DAY_NS : INT64_MIN;
  horizon aged = {.activity_ns = activity_ns, .events_ns = activity_ns, .jobs_ns = jobs_ns};
  horizon all = {INT64_MAX, INT64_MAX, INT64_MAX};
  int64_t removed = 0;
  if (remove_all(store, &aged, 0, stop, &removed, err) < 0) return -1;
  if (retention->max_bytes > 0 && remove_all(store, &all, retention->max_bytes, stop, &removed, err) < 0) return -1;
  if (removed > 0 && shrink(store, stop, err) < 0) return -1;
  *removed_rows = removed;
  return 0;
}
