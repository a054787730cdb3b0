/* Runs queries on a pool of reader connections. A cursor is a connection together with its current query. */
#include <errno.h>
#include <time.h>

#include "store/store_internal.h"

enum { READERS_MAX = 32, READER_WAIT_S = 2 };

struct rl_cursor {
  rl_store *store;
  rl_db db;
  sqlite3_stmt *row;
  rl_cursor *next; /* in the list of idle cursors */
};

static const char *const query_names[RL_QUERIES] = {
    [RL_QUERY_JOB] = "job",
    [RL_QUERY_SOURCE] = "source",
    [RL_QUERY_JOBS] = "jobs",
    [RL_QUERY_EVENTS] = "events",
    [RL_QUERY_RESULTS] = "results",
    [RL_QUERY_KERNELS] = "kernels",
    [RL_QUERY_TIMELINE] = "timeline",
    [RL_QUERY_TRACE] = "trace",
    [RL_QUERY_COMPARISON] = "comparison",
    [RL_QUERY_HISTORY] = "history",
    [RL_QUERY_REPORT_RUN] = "report_run",
    [RL_QUERY_REPORT_KERNELS] = "report_kernels",
    [RL_QUERY_REPORT_METRICS] = "report_metrics",
    [RL_QUERY_COMPARE_KERNELS] = "compare_kernels",
    [RL_QUERY_COUNTED_KERNEL] = "counted_kernel",
    [RL_QUERY_CEILINGS] = "ceilings",
    [RL_QUERY_TOKENS] = "tokens",
};

static void free_cursor(rl_cursor *cursor) {
  rl_db_close(&cursor->db);
  free(cursor);
}

RL_DEFINE_CLEANUP(cursor_cleanup, rl_cursor *, free_cursor, NULL)

static rl_cursor *open_reader(rl_store *store, rl_error *err) {
  rl_auto(cursor_cleanup) rl_cursor *cursor = calloc(1, sizeof *cursor);
  if (cursor == NULL) {
    rl_fail_errno(err, "cannot open a reader connection");
    return NULL;
  }
  cursor->store = store;
  if (rl_db_open(store->file, SQLITE_OPEN_READONLY, rl_statements, &cursor->db, err) < 0 ||
      rl_db_script(&cursor->db, "open_reader", err) < 0)
    return NULL;
  return rl_steal(&cursor);
}

/* Returns an idle reader, a new one, or one that is returned within READER_WAIT_S. NULL with RL_HTTP 503 after that time. */
static rl_cursor *take_reader(rl_store *store, rl_error *err) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += READER_WAIT_S;
  pthread_mutex_lock(&store->readers_mutex);
  int waited = 0;
  while (store->idle == NULL && store->readers >= READERS_MAX && waited != ETIMEDOUT)
    waited = pthread_cond_timedwait(&store->reader_returned, &store->readers_mutex, &until);
  rl_cursor *cursor = store->idle;
  bool may_open = cursor == NULL && store->readers < READERS_MAX;
  if (cursor != NULL) store->idle = cursor->next;
  if (may_open) store->readers++;
  pthread_mutex_unlock(&store->readers_mutex);
  if (cursor != NULL) return cursor;
  if (!may_open) {
    rl_fail(err, RL_HTTP, 503, "%d readers are using the database: try again later", READERS_MAX);
    return NULL;
  }
  cursor = open_reader(store, err);
  if (cursor == NULL) {
    pthread_mutex_lock(&store->readers_mutex);
    store->readers--;
    pthread_cond_signal(&store->reader_returned);
    pthread_mutex_unlock(&store->readers_mutex);
  }
  return cursor;
}

static int start_query(rl_store *store, const char *name, const rl_binding *bindings, int count, rl_cursor **cursor,
                       rl_error *err) {
  rl_auto(rl_cursor_cleanup) rl_cursor *taken = take_reader(store, err);
  if (taken == NULL) return -1;
  if (rl_db_start(&taken->db, name, bindings, count, &taken->row, err) < 0) return -1;
  *cursor = rl_steal(&taken);
  return 0;
}

int rl_store_query(rl_store *store, rl_query query, const rl_binding *bindings, int count, rl_cursor **cursor, rl_error *err) {
  return start_query(store, query_names[query], bindings, count, cursor, err);
}

int rl_cursor_next(rl_cursor *cursor, const char **json, rl_error *err) {
  if (cursor->row == NULL) return 0; /* at the end; another step would restart the statement */
  int rc = rl_db_step(&cursor->db, cursor->row, err);
  if (rc <= 0) {
    cursor->row = NULL;
    return rc;
  }
  const char *text = (const char *)sqlite3_column_text(cursor->row, 0);
  if (text == NULL) return rl_db_fail(&cursor->db, "read a row", err);
  *json = text;
  return 1;
}

int64_t rl_cursor_integer(rl_cursor *cursor, int column) { return sqlite3_column_int64(cursor->row, column); }
const char *rl_cursor_text(rl_cursor *cursor, int column) { return (const char *)sqlite3_column_text(cursor->row, column); }

void rl_cursor_close(rl_cursor *cursor) {
  if (cursor == NULL) return;
  rl_store *store = cursor->store;
  sqlite3_reset(cursor->row);
  cursor->row = NULL;
  pthread_mutex_lock(&store->readers_mutex);
  cursor->next = store->idle;
  store->idle = cursor;
  pthread_cond_signal(&store->reader_returned);
  pthread_mutex_unlock(&store->readers_mutex);
}

int rl_store_job_by_key(rl_store *store, const char *key, const char *body_sha256, int64_t *id, rl_error *err) {
  rl_auto(rl_cursor_cleanup) rl_cursor *cursor = take_reader(store, err);
  return cursor != NULL ? rl_store_read_key(&cursor->db, key, body_sha256, id, err) : -1;
}

int rl_store_job_status(rl_store *store, int64_t job_id, rl_job_status *status, rl_error *err) {
  rl_auto(rl_cursor_cleanup) rl_cursor *cursor = take_reader(store, err);
  return cursor != NULL ? rl_store_read_status(&cursor->db, job_id, status, err) : -1;
}

int rl_store_job_state(rl_store *store, int64_t job_id, rl_job_state *state, rl_error *err) {
  rl_job_status status;
  if (rl_store_job_status(store, job_id, &status, err) < 0) return -1;
  *state = status.state;
  return 0;
}

/* *found: whether the statement yields a row. */
static int has_row(rl_store *store, const char *name, rl_binding binding, bool *found, rl_error *err) {
  rl_auto(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  if (start_query(store, name, &binding, 1, &cursor, err) < 0) return -1;
  int rc = rl_db_step(&cursor->db, cursor->row, err);
  if (rc >= 0) *found = rc > 0;
  return rc < 0 ? -1 : 0;
}

int rl_store_ceilings_due(rl_store *store, int64_t pass_id, bool *due, rl_error *err) {
  return has_row(store, "ceilings_due", (rl_binding)RL_INT(":pass", pass_id), due, err);
}

int rl_store_has_run(rl_store *store, int64_t run_id, bool *found, rl_error *err) {
  return has_row(store, "run_exists", (rl_binding)RL_INT(":run", run_id), found, err);
}

int rl_store_jobs_count(rl_store *store, rl_job_counts *counts, rl_error *err) {
  rl_auto(rl_cursor_cleanup) rl_cursor *cursor = take_reader(store, err);
  return cursor != NULL ? rl_store_read_counts(&cursor->db, counts, err) : -1;
}

int rl_store_token_count(rl_store *store, int64_t *count, rl_error *err) {
  rl_auto(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  if (start_query(store, "token_count", NULL, 0, &cursor, err) < 0) return -1;
  if (rl_db_step(&cursor->db, cursor->row, err) < 0) return -1;
  *count = sqlite3_column_int64(cursor->row, 0);
  return 0;
}

int rl_store_token_known(rl_store *store, const char *hash, bool *known, rl_error *err) {
  return has_row(store, "token_exists", (rl_binding)RL_TEXT(":hash", hash), known, err);
}

void rl_store_close_readers(rl_store *store) {
  while (store->idle != NULL) {
    rl_cursor *cursor = store->idle;
    store->idle = cursor->next;
    free_cursor(cursor);
  }
}
