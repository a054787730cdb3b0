/* Runs queries on a pool of reader connections. A cursor is a reader connection and its current query. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/condition.h"
#include "store/store_internal.h"
#include "store/suites.h"

enum {
  MAX_READERS = 32,
  READER_WAIT_S = 2,
  MAX_STATEMENT_NAME = 64,
  /* Number of instructions of SQLite's virtual machine between two calls of the progress handler, about 50 µs */
  STEPS_BETWEEN_CHECKS = 1000
};

static _Thread_local const rl_query_limit *thread_limit; /* limit of the queries of the calling thread; NULL: none */

struct rl_cursor {
  rl_store *store;
  rl_db db;
  sqlite3_stmt *statement;
  int64_t acquired_ns;        /* time of rl_monotonic_ns at which the current query acquired the connection */
  LIST_ENTRY(rl_cursor) link; /* in the store's idle_readers or busy_readers */
};

static const char *const query_names[RL_QUERIES] = {
    [RL_QUERY_JOB] = "job",
    [RL_QUERY_SOURCE] = "source",
    [RL_QUERY_JOBS] = "jobs",
    [RL_QUERY_JOB_DEVICES] = "job_devices",
    [RL_QUERY_EVENTS] = "events",
    [RL_QUERY_RESULTS] = "results",
    [RL_QUERY_KERNELS] = "kernels",
    [RL_QUERY_TIMELINE] = "timeline",
    [RL_QUERY_EXPORT_RUNS] = "export_runs",
    [RL_QUERY_EXPORT_MEASUREMENTS] = "export_measurements",
    [RL_QUERY_TIMELINE_PASS] = "timeline_pass",
    [RL_QUERY_TIMELINE_NAMES] = "timeline_names",
    [RL_QUERY_TIMELINE_VALUES] = "timeline_values",
    [RL_QUERY_TIMELINE_PHASES] = "timeline_phases",
    [RL_QUERY_TIMELINE_KERNELS] = "timeline_kernels",
    [RL_QUERY_TIMELINE_RUN] = "timeline_run",
    [RL_QUERY_TIMELINE_COPIES] = "timeline_copies",
    [RL_QUERY_TIMELINE_EVENTS] = "timeline_events",
    [RL_QUERY_TIMELINE_ROWS] = "timeline_rows",
    [RL_QUERY_TIMELINE_INTERVALS] = "timeline_intervals",
    [RL_QUERY_TIMELINE_END] = "timeline_end",
    [RL_QUERY_COMPARISON] = "comparison",
    [RL_QUERY_EXPLAINED_RUN] = "explained_run",
    [RL_QUERY_EXPLAINED_KERNELS] = "explained_kernels",
    [RL_QUERY_HISTORY] = "history",
    [RL_QUERY_REPORT_RUN] = "report_run",
    [RL_QUERY_REPORT_KERNELS] = "report_kernels",
    [RL_QUERY_REPORT_METRICS] = "report_metrics",
    [RL_QUERY_COMPARE_KERNELS] = "compare_kernels",
    [RL_QUERY_KERNEL_WITH_COUNTERS] = "kernel_with_counters",
    [RL_QUERY_CEILINGS] = "ceilings",
    [RL_QUERY_TOKENS] = "tokens",
    [RL_QUERY_UPLOADS] = "uploads",
    [RL_QUERY_SUITE_RUNS_ACTIVE] = "suite_runs_active",
    [RL_QUERY_SUITE_RUN_COLUMNS] = "suite_run_columns",
    [RL_QUERY_SUITE_RUN_JOBS] = "suite_run_jobs",
    [RL_QUERY_SUITE_RUN_VALUES] = "suite_run_values",
    [RL_QUERY_SUITE_EARLIER_RUNS] = "suite_earlier_runs",
    [RL_QUERY_SUITE_METRIC_MARKS] = "suite_metric_marks",
    [RL_QUERY_SUITE_JOB_VALUES] = "suite_job_values",
    [RL_QUERY_SUITE_JOB_PROBLEM] = "suite_job_problem",
    [RL_QUERY_SUITE_CANARIES] = "suite_canaries",
    [RL_QUERY_SUITE_RUN_DURATION] = "suite_run_duration",
    [RL_QUERY_SUITE_JOB_DURATION] = "suite_job_duration",
    [RL_QUERY_KIND_DURATION] = "kind_duration",
    [RL_QUERY_SUITE_PROFILE_RUN] = "suite_profile_run",
    [RL_QUERY_SUITE_PROFILE_KERNELS] = "suite_profile_kernels",
    [RL_QUERY_SUITE_LAST_RUN] = "suite_last_run",
    [RL_QUERY_SUITE_RUN_LIST] = "suite_run_list",
    [RL_QUERY_SUITE_RUN_STATUS] = "suite_run_status",
    [RL_QUERY_SUITE_EVENTS] = "suite_events",
    [RL_QUERY_SUITE_RUN] = "suite_run",
    [RL_QUERY_SUITE_BASELINES] = "suite_baselines",
    [RL_QUERY_SUITE_HISTORY] = "suite_history",
};

/* Parameters that choose the statement of a query. Such a query has a statement for each combination of these parameters, which
 * executes the query when exactly they are bound: jobs, jobs_kind, jobs_kind_state, ... */
enum { MAX_CHOOSING_PARAMETERS = 6 };
static const char *const statement_choosing_parameters[RL_QUERIES][MAX_CHOOSING_PARAMETERS] = {
    [RL_QUERY_JOBS] = {":kind", ":state", ":device", ":search", ":in_suite", ":in_no_suite"},
    [RL_QUERY_HISTORY] = {":repetitions_of"},
};

static bool is_bound(const char *name, const rl_binding *bindings, int count) {
  for (int i = 0; i < count; i++)
    if (strcmp(bindings[i].name, name) == 0) return !rl_binding_is_null(&bindings[i]);
  return false;
}

/* Writes the name of the statement that executes the query with these bindings. */
static void write_statement_name(rl_query query, const rl_binding *bindings, int count, char name[static MAX_STATEMENT_NAME]) {
  int length = snprintf(name, MAX_STATEMENT_NAME, "%s", query_names[query]);
  for (int i = 0; i < MAX_CHOOSING_PARAMETERS && statement_choosing_parameters[query][i] != NULL; i++)
    if (is_bound(statement_choosing_parameters[query][i], bindings, count))
      length +=
          snprintf(name + length, (size_t)(MAX_STATEMENT_NAME - length), "_%s", statement_choosing_parameters[query][i] + 1);
}

static void free_cursor(rl_cursor *cursor) {
  rl_db_close(&cursor->db);
  free(cursor);
}

rl_db *rl_cursor_connection(rl_cursor *cursor) { return &cursor->db; }

RL_DEFINE_CLEANUP(cursor_cleanup, rl_cursor *, free_cursor, NULL)

void rl_store_limit_queries(const rl_query_limit *limit) { thread_limit = limit; }

/* SQLite calls this progress handler every STEPS_BETWEEN_CHECKS steps. Returns 1 to interrupt the query. */
static int check_limit(void *context) {
  (void)context;
  return thread_limit != NULL && thread_limit->is_exceeded(thread_limit->context);
}

void rl_store_limit_connection(rl_db *db) { sqlite3_progress_handler(db->handle, STEPS_BETWEEN_CHECKS, check_limit, NULL); }

static rl_cursor *open_reader(rl_store *store, rl_error *err) {
  RL_CLEANUP(cursor_cleanup) rl_cursor *cursor = calloc(1, sizeof *cursor);
  if (cursor == NULL) {
    rl_fail_errno(err, "cannot open a reader connection");
    return NULL;
  }
  cursor->store = store;
  if (rl_db_open(store->file, SQLITE_OPEN_READONLY, rl_statements, &cursor->db, err) < 0 ||
      rl_db_execute_named(&cursor->db, "open_reader", err) < 0 ||
      rl_store_add_unstored_results_function(store, &cursor->db, err) < 0)
    return NULL;
  rl_store_limit_connection(&cursor->db);
  return rl_take_ownership(&cursor);
}

/* The caller holds readers_mutex. */
static void add_to_busy_readers(rl_cursor *cursor) {
  cursor->acquired_ns = rl_monotonic_ns();
  LIST_INSERT_HEAD(&cursor->store->busy_readers, cursor, link);
}

rl_cursor *rl_store_acquire_reader(rl_store *store, rl_error *err) {
  const struct timespec deadline = rl_condition_deadline(READER_WAIT_S * INT64_C(1000000000));
  pthread_mutex_lock(&store->readers_mutex);
  int wait_result = 0;
  while (LIST_EMPTY(&store->idle_readers) && store->reader_count >= MAX_READERS && wait_result != ETIMEDOUT)
    wait_result = pthread_cond_timedwait(&store->reader_returned, &store->readers_mutex, &deadline);
  rl_cursor *cursor = LIST_FIRST(&store->idle_readers);
  bool may_open = cursor == NULL && store->reader_count < MAX_READERS;
  if (cursor != NULL) {
    LIST_REMOVE(cursor, link);
    add_to_busy_readers(cursor);
  }
  if (may_open) store->reader_count++;
  pthread_mutex_unlock(&store->readers_mutex);
  if (cursor != NULL) return cursor;
  if (!may_open) {
    rl_fail(err, RL_LIMIT, RL_LIMIT_BUSY, "%d readers are using the database: try again later", MAX_READERS);
    return NULL;
  }
  cursor = open_reader(store, err);
  pthread_mutex_lock(&store->readers_mutex);
  if (cursor != NULL) {
    add_to_busy_readers(cursor);
  } else {
    store->reader_count--;
    pthread_cond_signal(&store->reader_returned);
  }
  pthread_mutex_unlock(&store->readers_mutex);
  return cursor;
}

bool rl_store_has_query_since(rl_store *store, int64_t time_ns) {
  const rl_cursor *cursor;
  pthread_mutex_lock(&store->readers_mutex);
  LIST_FOREACH (cursor, &store->busy_readers, link)
    if (cursor->acquired_ns <= time_ns) break;
  pthread_mutex_unlock(&store->readers_mutex);
  return cursor != NULL;
}

static int start_query(rl_store *store, const char *name, const rl_binding *bindings, int count, rl_cursor **cursor,
                       rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *acquired = rl_store_acquire_reader(store, err);
  if (acquired == NULL) return -1;
  if (rl_db_prepare(&acquired->db, name, bindings, count, &acquired->statement, err) < 0) return -1;
  *cursor = rl_take_ownership(&acquired);
  return 0;
}

int rl_store_query(rl_store *store, rl_query query, const rl_binding *bindings, int count, rl_cursor **cursor, rl_error *err) {
  char name[MAX_STATEMENT_NAME];
  write_statement_name(query, bindings, count, name);
  return start_query(store, name, bindings, count, cursor, err);
}

int rl_cursor_next(rl_cursor *cursor, const char **json, rl_error *err) {
  if (cursor->statement == NULL) return 0; /* the query has ended; stepping it again would restart the statement */
  int rc = rl_db_step(&cursor->db, cursor->statement, err);
  if (rc <= 0) {
    cursor->statement = NULL;
    return rc;
  }
  const char *text = (const char *)sqlite3_column_text(cursor->statement, 0);
  if (text == NULL) return rl_db_fail(&cursor->db, "read a row", err);
  *json = text;
  return 1;
}

int64_t rl_cursor_integer(rl_cursor *cursor, int column) { return sqlite3_column_int64(cursor->statement, column); }
double rl_cursor_real(rl_cursor *cursor, int column) {
  return sqlite3_column_type(cursor->statement, column) == SQLITE_NULL ? NAN : sqlite3_column_double(cursor->statement, column);
}
const char *rl_cursor_text(rl_cursor *cursor, int column) { return (const char *)sqlite3_column_text(cursor->statement, column); }

void rl_cursor_close(rl_cursor *cursor) {
  if (cursor == NULL) return;
  rl_store *store = cursor->store;
  sqlite3_reset(cursor->statement);
  cursor->statement = NULL;
  pthread_mutex_lock(&store->readers_mutex);
  LIST_REMOVE(cursor, link);
  LIST_INSERT_HEAD(&store->idle_readers, cursor, link);
  pthread_cond_signal(&store->reader_returned);
  pthread_mutex_unlock(&store->readers_mutex);
}

int rl_store_find_job_by_key(rl_store *store, const char *key, const char *body_sha256, int64_t *id, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = rl_store_acquire_reader(store, err);
  return cursor != NULL ? rl_store_read_job_by_key(&cursor->db, key, body_sha256, id, err) : -1;
}

int rl_store_suite_find_run_by_key(rl_store *store, const char *key, const char *suite, const char *body_sha256, int64_t *id,
                                   rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = rl_store_acquire_reader(store, err);
  return cursor != NULL ? rl_store_read_suite_run_by_key(&cursor->db, key, suite, body_sha256, id, err) : -1;
}

int rl_store_job_status(rl_store *store, int64_t job_id, rl_job_status *status, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = rl_store_acquire_reader(store, err);
  return cursor != NULL ? rl_store_read_status(&cursor->db, job_id, status, err) : -1;
}

int rl_store_job_state(rl_store *store, int64_t job_id, rl_job_state *state, rl_error *err) {
  rl_job_status status;
  if (rl_store_job_status(store, job_id, &status, err) < 0) return -1;
  *state = status.state;
  return 0;
}

/* Sets *found to whether the statement yields a row. Returns 0 or -1. */
static int has_row(rl_store *store, const char *name, rl_binding binding, bool *found, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  if (start_query(store, name, &binding, 1, &cursor, err) < 0) return -1;
  int rc = rl_db_step(&cursor->db, cursor->statement, err);
  if (rc >= 0) *found = rc > 0;
  return rc < 0 ? -1 : 0;
}

int rl_store_are_ceilings_due(rl_store *store, int64_t pass_id, bool *due, rl_error *err) {
  return has_row(store, "ceilings_due", (rl_binding)RL_BIND_INTEGER(":pass", pass_id), due, err);
}

int rl_store_has_run(rl_store *store, int64_t run_id, bool *found, rl_error *err) {
  return has_row(store, "run_exists", (rl_binding)RL_BIND_INTEGER(":run", run_id), found, err);
}

int rl_store_job_of_run(rl_store *store, int64_t run_id, int64_t *job_id, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  if (start_query(store, "run_job", RL_BINDINGS(RL_BIND_INTEGER(":run", run_id)), &cursor, err) < 0) return -1;
  int found = rl_db_step(&cursor->db, cursor->statement, err);
  if (found < 0) return -1;
  if (found == 0) return rl_fail(err, RL_HTTP, 404, "Run %lld not found.", (long long)run_id);
  *job_id = sqlite3_column_int64(cursor->statement, 0);
  return 0;
}

int rl_store_count_jobs(rl_store *store, rl_job_counts *counts, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = rl_store_acquire_reader(store, err);
  return cursor != NULL ? rl_store_read_counts(&cursor->db, counts, err) : -1;
}

int rl_store_configuration_of_run(rl_store *store, int64_t run_id, int64_t *configuration_id, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  if (start_query(store, "run_configuration", RL_BINDINGS(RL_BIND_INTEGER(":run", run_id)), &cursor, err) < 0) return -1;
  int found = rl_db_step(&cursor->db, cursor->statement, err);
  if (found < 0) return -1;
  *configuration_id = found > 0 ? sqlite3_column_int64(cursor->statement, 0) : 0;
  return 0;
}

/* Sets *value to the first column of the statement's only row. */
static int read_integer(rl_store *store, const char *name, const rl_binding *bindings, int count, int64_t *value, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  if (start_query(store, name, bindings, count, &cursor, err) < 0) return -1;
  if (rl_db_step(&cursor->db, cursor->statement, err) < 0) return -1;
  *value = sqlite3_column_int64(cursor->statement, 0);
  return 0;
}

int rl_store_count_activity_rows(rl_store *store, int64_t pass_id, int64_t *count, rl_error *err) {
  return read_integer(store, "activity_stored_counts", RL_BINDINGS(RL_BIND_INTEGER(":pass", pass_id)), count, err);
}

int rl_store_count_tokens(rl_store *store, int64_t *count, rl_error *err) {
  return read_integer(store, "token_count", NULL, 0, count, err);
}

int rl_store_find_token(rl_store *store, const char *hash, bool *known, rl_error *err) {
  return has_row(store, "token_exists", (rl_binding)RL_BIND_TEXT(":hash", hash), known, err);
}

void rl_store_close_readers(rl_store *store) {
  while (!LIST_EMPTY(&store->idle_readers)) {
    rl_cursor *cursor = LIST_FIRST(&store->idle_readers);
    LIST_REMOVE(cursor, link);
    free_cursor(cursor);
  }
}
