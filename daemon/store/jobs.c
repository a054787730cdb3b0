/* Inserts, finishes and labels jobs, reads their states, queues interrupted jobs again when the daemon starts, and stores the
 * logs of runs. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/store_internal.h"

int rl_store_read_job_by_key(rl_db *db, const char *key, const char *body_sha256, int64_t *id, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  int found = rl_db_query_row(db, err, "job_by_key", &row, RL_BIND_TEXT(":key", key));
  if (found <= 0) return found;
  const char *earlier_sha256 = (const char *)sqlite3_column_text(row, 1);
  if (earlier_sha256 == NULL || body_sha256 == NULL || strcmp(earlier_sha256, body_sha256) != 0)
    return rl_fail(err, RL_HTTP, 422, "this Idempotency-Key was used with another request, for job %lld: use a new key",
                   (long long)sqlite3_column_int64(row, 0));
  *id = sqlite3_column_int64(row, 0);
  return 1;
}

int rl_store_read_counts(rl_db *db, rl_job_counts *counts, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  if (rl_db_query_row(db, err, "jobs_count", &row) < 0) return -1;
  *counts = (rl_job_counts){sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1)};
  return 0;
}

/* Executes an INSERT ... RETURNING id statement and reads the id. */
static int insert_returning(rl_db *db, const char *name, const rl_binding *bindings, int count, int64_t *id, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  if (rl_db_query_row_bound(db, name, bindings, count, &row, err) < 0) return -1;
  *id = sqlite3_column_int64(row, 0);
  return rl_db_step(db, row, err);
}

static int insert_run(rl_db *db, const rl_job_spec *spec, int64_t job, int ordinal, rl_error *err) {
  const rl_run_spec *run = &spec->runs[ordinal];
  int64_t id = 0;
  if (insert_returning(
          db, "run_insert",
          RL_BINDINGS(RL_BIND_INTEGER(":job", job), RL_BIND_INTEGER(":ordinal", ordinal),
                      RL_BIND_TEXT(":workload", run->workload), RL_BIND_TEXT(":variant", run->variant),
                      RL_BIND_TEXT(":params", run->params), RL_BIND_TEXT_OR_NULL(":nondefault_params", run->nondefault_params)),
          &id, err) < 0)
    return -1;
  for (int pass = 0; pass < RL_PASS_COUNT; pass++)
    if ((spec->passes & (1u << pass)) != 0 &&
        rl_db_run(db, err, "pass_insert", RL_BIND_INTEGER(":job", job), RL_BIND_INTEGER(":run", id),
                  RL_BIND_INTEGER(":ordinal", pass), RL_BIND_TEXT(":name", rl_pass_names[pass])) < 0)
      return -1;
  return 0;
}

static int insert_job(rl_db *db, const rl_job_spec *spec, const char *key, const char *body_sha256, int64_t queue_limit,
                      int64_t *id, bool *existing, rl_error *err) {
  int found = key != NULL ? rl_store_read_job_by_key(db, key, body_sha256, id, err) : 0;
  *existing = found > 0;
  if (found != 0) return found < 0 ? -1 : 0;
  rl_job_counts counts = {0};
  if (rl_store_read_counts(db, &counts, err) < 0) return -1;
  if (counts.queued >= queue_limit)
    return rl_fail(err, RL_HTTP, 429, "the queue is full (%lld jobs wait): try again later", (long long)counts.queued);
  if (spec->source_json != NULL && rl_db_run(db, err, "source_insert", RL_BIND_TEXT(":sha256", spec->source_sha256),
                                             RL_BIND_TEXT(":text", spec->source_json)) < 0)
    return -1;
  if (insert_returning(
          db, "job_insert",
          RL_BINDINGS(RL_BIND_TEXT(":kind", spec->kind), RL_BIND_TEXT(":device", spec->device),
                      RL_BIND_TEXT(":request", spec->request), RL_BIND_TEXT_OR_NULL(":profile", spec->profile),
                      RL_BIND_TEXT_OR_NULL(":source", spec->source_sha256), RL_BIND_INTEGER(":deadline_s", spec->time_limit_s),
                      RL_BIND_INTEGER(":now", rl_realtime_ns()), RL_BIND_TEXT(":key", key),
                      RL_BIND_TEXT(":body_sha256", body_sha256), RL_BIND_TEXT(":origin", spec->automatic ? "daemon" : "client")),
          id, err) < 0)
    return -1;
  for (int i = 0; i < spec->run_count; i++)
    if (insert_run(db, spec, *id, i, err) < 0) return -1;
  return rl_store_summarize_job(db, *id, err) < 0 ? -1 : rl_store_add_state_event(db, *id, RL_JOB_QUEUED, NULL, err);
}

int rl_store_job_insert(rl_store *store, const rl_job_spec *spec, const char *key, const char *body_sha256, int64_t queue_limit,
                        int64_t *id, bool *existing, rl_error *err) {
  int64_t inserted_id = 0;
  bool found = false;
  if (rl_store_begin_transaction(store, err) < 0) return -1;
  int rc = insert_job(&store->writer, spec, key, body_sha256, queue_limit, &inserted_id, &found, err);
  if (rl_store_end_transaction_changing(store, rc, (rl_change){.job_id = inserted_id, .lists = true}, err) < 0) return -1;
  *id = inserted_id;
  *existing = found;
  return 0;
}

/* Stores the log of a run and sets *job_id to the run's job. If there is no such run, stores nothing and leaves *job_id
 * unchanged. */
static int store_log(rl_db *db, int64_t run_id, const char *text, int64_t *job_id, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  int found = rl_db_query_row(db, err, "run_job", &row, RL_BIND_INTEGER(":run", run_id));
  if (found > 0) *job_id = sqlite3_column_int64(row, 0);
  return found < 0 ? -1 : rl_db_run(db, err, "run_log", RL_BIND_INTEGER(":run", run_id), RL_BIND_TEXT(":log", text));
}

int rl_store_set_run_log(rl_store *store, int64_t run_id, const char *text, rl_error *err) {
  int64_t job_id = 0;
  if (rl_store_begin_transaction(store, err) < 0) return -1;
  int rc = store_log(&store->writer, run_id, text, &job_id, err);
  return rl_store_end_transaction_changing(store, rc, (rl_change){.job_id = job_id}, err);
}

int rl_store_jobs_requeue(rl_store *store, int64_t max_deaths, int64_t *count, rl_error *err) {
  rl_db *db = &store->writer;
  int64_t requeued = 0;
  if (rl_store_begin_transaction(store, err) < 0) return -1;
  int rc = rl_store_record_daemon_crashes(db, max_deaths, err);
  if (rc == 0) rc = rl_db_run(db, err, "kernels_discard_uncommitted");
  if (rc == 0) rc = rl_db_run(db, err, "events_add_queued", RL_BIND_INTEGER(":now", rl_realtime_ns()));
  if (rc == 0) rc = rl_db_run(db, err, "jobs_requeue");
  if (rc == 0) requeued = sqlite3_changes64(db->handle);
  if (rl_store_end_transaction_changing_all(store, rc, err) < 0) return -1;
  *count = requeued;
  return 0;
}

static int parse_state(const char *name) {
  for (int i = 0; name != NULL && rl_job_state_names[i] != NULL; i++)
    if (strcmp(name, rl_job_state_names[i]) == 0) return i;
  return -1;
}

int rl_store_read_status(rl_db *db, int64_t job_id, rl_job_status *status, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  int found = rl_db_query_row(db, err, "job_status", &row, RL_BIND_INTEGER(":job", job_id));
  if (found < 0) return -1;
  if (found == 0) return rl_fail(err, RL_HTTP, 404, "Job %lld not found.", (long long)job_id);
  const char *kind = (const char *)sqlite3_column_text(row, 0);
  int state = parse_state((const char *)sqlite3_column_text(row, 1));
  if (kind == NULL || state < 0) return rl_db_fail(db, "read a job", err);
  *status = (rl_job_status){.state = (rl_job_state)state,
                            .created_ns = sqlite3_column_int64(row, 2),
                            .started_ns = sqlite3_column_int64(row, 3),
                            .finished_ns = sqlite3_column_int64(row, 4),
                            .events = sqlite3_column_int64(row, 5)};
  snprintf(status->kind, sizeof status->kind, "%s", kind);
  return 0;
}

int rl_store_set_final_state(rl_db *db, int64_t job_id, rl_job_state state, const rl_error *problem, rl_error *err) {
  rl_job_status current;
  if (rl_store_read_status(db, job_id, &current, err) < 0) return -1;
  if (rl_job_is_final(current.state))
    return rl_fail(err, RL_HTTP, 409, "job %lld is already %s", (long long)job_id, rl_job_state_names[current.state]);
  if (rl_db_run(db, err, "job_reset_running_passes", RL_BIND_INTEGER(":job", job_id)) < 0 ||
      rl_db_run(db, err, "job_finish", RL_BIND_INTEGER(":job", job_id), RL_BIND_TEXT(":state", rl_job_state_names[state]),
                RL_BIND_INTEGER(":now", rl_realtime_ns()),
                RL_BIND_TEXT(":domain", problem != NULL ? rl_domain_name(problem->domain) : NULL),
                RL_BIND_INTEGER(":code", problem != NULL ? problem->code : 0),
                RL_BIND_TEXT(":message", problem != NULL ? problem->message : NULL)) < 0 ||
      rl_store_summarize_job(db, job_id, err) < 0)
    return -1;
  return rl_store_add_state_event(db, job_id, state, problem, err);
}

int rl_store_job_finish(rl_store *store, int64_t job_id, rl_job_state state, const rl_error *problem, rl_error *err) {
  if (rl_store_begin_transaction(store, err) < 0) return -1;
  int rc = rl_store_set_final_state(&store->writer, job_id, state, problem, err);
  return rl_store_end_transaction_changing(store, rc, (rl_change){.job_id = job_id, .lists = true}, err);
}

static int set_labels(rl_db *db, int64_t job_id, const char *patch, rl_error *err) {
  rl_job_status current;
  if (rl_store_read_status(db, job_id, &current, err) < 0 ||
      rl_db_run(db, err, "job_label", RL_BIND_INTEGER(":job", job_id), RL_BIND_TEXT(":patch", patch)) < 0)
    return -1;
  return rl_store_summarize_job(db, job_id, err);
}

int rl_store_job_set_labels(rl_store *store, int64_t job_id, const char *patch, rl_error *err) {
  if (rl_store_begin_transaction(store, err) < 0) return -1;
  int rc = set_labels(&store->writer, job_id, patch, err);
  return rl_store_end_transaction_changing(store, rc, (rl_change){.job_id = job_id, .lists = true}, err);
}
