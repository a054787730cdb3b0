/* Implements store/suites.h. The state of a suite run is queued, then running, then a final state. A transaction that changes
 * a run stores the change, its event and the run's item in the list of suite runs. */
#include "store/suites.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/store_internal.h"

static const rl_change suites_changed = {.suites = true};

static int store_listing(rl_db *db, int64_t run_id, rl_error *err) {
  return rl_db_run(db, err, "suite_listing_store", RL_BIND_INTEGER(":run", run_id));
}

/* --- events ------------------------------------------------------------------------------------------------------------ */

static int increment_event_count(rl_db *db, int64_t run_id, rl_error *err) {
  return rl_db_run(db, err, "suite_event_number", RL_BIND_INTEGER(":run", run_id));
}

static int add_state_event(rl_db *db, int64_t run_id, rl_error *err) {
  if (increment_event_count(db, run_id, err) < 0) return -1;
  return rl_db_run(db, err, "suite_event_state", RL_BIND_INTEGER(":run", run_id), RL_BIND_INTEGER(":now", rl_realtime_ns()));
}

static int add_job_event(rl_db *db, int64_t run_id, const rl_suite_step *step, rl_error *err) {
  if (increment_event_count(db, run_id, err) < 0) return -1;
  return rl_db_run(db, err, "suite_event_job", RL_BIND_INTEGER(":run", run_id), RL_BIND_TEXT(":role", step->role),
                   RL_BIND_INTEGER(":block", step->block), RL_BIND_TEXT(":job_name", step->job_name),
                   RL_BIND_INTEGER(":now", rl_realtime_ns()));
}

static int add_verdict_event(rl_db *db, int64_t run_id, const char *metric, rl_error *err) {
  if (increment_event_count(db, run_id, err) < 0) return -1;
  return rl_db_run(db, err, "suite_event_verdict", RL_BIND_INTEGER(":run", run_id), RL_BIND_TEXT(":metric", metric),
                   RL_BIND_INTEGER(":now", rl_realtime_ns()));
}

/* --- runs -------------------------------------------------------------------------------------------------------------- */

int rl_store_read_suite_run_by_key(rl_db *db, const char *key, const char *suite, const char *body_sha256, int64_t *id,
                                   rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  int found = rl_db_query_row(db, err, "suite_run_by_key", &row, RL_BIND_TEXT(":key", key));
  if (found <= 0) return found;
  const char *earlier_suite = (const char *)sqlite3_column_text(row, 1), *earlier = (const char *)sqlite3_column_text(row, 2);
  bool is_same_suite = strcmp(earlier_suite, suite) == 0;
  if (!is_same_suite || earlier == NULL || body_sha256 == NULL || strcmp(earlier, body_sha256) != 0)
    return rl_fail(err, RL_HTTP, 422, "this Idempotency-Key was used %s, for suite run %lld: use a new key",
                   is_same_suite ? "with another body" : "with another suite", (long long)sqlite3_column_int64(row, 0));
  *id = sqlite3_column_int64(row, 0);
  return 1;
}

static int check_limit(rl_db *db, int64_t limit, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  if (rl_db_query_row(db, err, "suite_runs_count", &row) < 0) return -1;
  if (sqlite3_column_int64(row, 0) < limit) return 0;
  return rl_fail(err, RL_HTTP, 429, "%lld suite runs have not ended: try again later", (long long)sqlite3_column_int64(row, 0));
}

static int insert_run(rl_db *db, const rl_suite_run_spec *spec, const char *key, const char *body_sha256, int64_t *id,
                      rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  if (rl_db_query_row(db, err, "suite_run_insert", &row, RL_BIND_TEXT(":suite", spec->suite),
                      RL_BIND_TEXT(":definition", spec->definition), RL_BIND_TEXT(":definition_sha256", spec->definition_sha256),
                      RL_BIND_TEXT(":jobs_sha256", spec->jobs_sha256), RL_BIND_TEXT(":device", spec->device),
                      RL_BIND_TEXT(":against", spec->against),
                      {":against_run", spec->against_run_id != 0 ? RL_SQL_INTEGER : RL_SQL_NULL, .integer = spec->against_run_id},
                      RL_BIND_TEXT(":against_request", spec->against_request),
                      {":order_seed", spec->against_request != NULL ? RL_SQL_INTEGER : RL_SQL_NULL, .integer = spec->order_seed},
                      RL_BIND_INTEGER(":now", rl_realtime_ns()), RL_BIND_REAL(":planned_s", spec->planned_s),
                      RL_BIND_TEXT(":planned_basis", spec->planned_basis), RL_BIND_INTEGER(":planned_jobs", spec->planned_jobs),
                      RL_BIND_TEXT(":key", key), RL_BIND_TEXT(":body_sha256", body_sha256)) < 0)
    return -1;
  *id = sqlite3_column_int64(row, 0);
  if (rl_db_step(db, row, err) < 0 || add_state_event(db, *id, err) < 0) return -1;
  return store_listing(db, *id, err);
}

int rl_store_suite_run_insert(rl_store *store, const rl_suite_run_spec *spec, const char *key, const char *body_sha256,
                              int64_t limit, int64_t *id, bool *existing, rl_error *err) {
  rl_db *db = &store->writer;
  int64_t inserted = 0;
  if (rl_store_begin_transaction(store, err) < 0) return -1;
  int found = key != NULL ? rl_store_read_suite_run_by_key(db, key, spec->suite, body_sha256, &inserted, err) : 0;
  int rc = found < 0 ? -1 : 0;
  if (found == 0) rc = check_limit(db, limit, err) < 0 ? -1 : insert_run(db, spec, key, body_sha256, &inserted, err);
  if (rl_store_end_transaction_changing(store, rc, suites_changed, err) < 0) return -1;
  *id = inserted;
  *existing = found > 0;
  return 0;
}

static int read_state(rl_db *db, int64_t run_id, char state[16], rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  int found = rl_db_query_row(db, err, "suite_run_state", &row, RL_BIND_INTEGER(":run", run_id));
  if (found < 0) return -1;
  if (found == 0) return rl_fail(err, RL_HTTP, 404, "Suite run %lld not found.", (long long)run_id);
  snprintf(state, 16, "%s", (const char *)sqlite3_column_text(row, 0));
  return 0;
}

bool rl_store_suite_state_is_final(const char *state) { return strcmp(state, "queued") != 0 && strcmp(state, "running") != 0; }

/* Fails with RL_SUITE_ENDED unless the run is queued or running. */
static int check_active(rl_db *db, int64_t run_id, rl_error *err) {
  char state[16];
  if (read_state(db, run_id, state, err) < 0) return -1;
  if (!rl_store_suite_state_is_final(state)) return 0;
  return rl_fail(err, RL_SUITE, RL_SUITE_ENDED, "suite run %lld is already %s", (long long)run_id, state);
}

int rl_store_suite_run_start(rl_store *store, int64_t run_id, rl_error *err) {
  rl_db *db = &store->writer;
  if (rl_store_begin_transaction(store, err) < 0) return -1;
  int rc = rl_db_run(db, err, "suite_run_start", RL_BIND_INTEGER(":run", run_id), RL_BIND_INTEGER(":now", rl_realtime_ns()));
  if (rc == 0 && sqlite3_changes64(db->handle) > 0) rc = add_state_event(db, run_id, err);
  if (rc == 0) rc = store_listing(db, run_id, err);
  return rl_store_end_transaction_changing(store, rc, suites_changed, err);
}

static int insert_verdicts(rl_db *db, int64_t run_id, const rl_suite_outcome *outcome, rl_error *err) {
  for (int i = 0; i < outcome->verdict_count; i++) {
    const rl_suite_verdict *verdict = &outcome->verdicts[i];
    if (rl_db_run(db, err, "suite_verdict_insert", RL_BIND_INTEGER(":run", run_id), RL_BIND_TEXT(":metric", verdict->metric),
                  RL_BIND_TEXT(":verdict", verdict->verdict), RL_BIND_INTEGER(":method_version", outcome->method_version),
                  RL_BIND_TEXT(":judgement", verdict->judgement),
                  RL_BIND_TEXT(":causes", verdict->causes != NULL ? verdict->causes : "[]")) < 0 ||
        add_verdict_event(db, run_id, verdict->metric, err) < 0)
      return -1;
  }
  return 0;
}

static int finish_run(rl_db *db, int64_t run_id, const rl_suite_outcome *outcome, rl_error *err) {
  if (check_active(db, run_id, err) < 0) return -1;
  if (rl_db_run(db, err, "suite_run_finish", RL_BIND_INTEGER(":run", run_id), RL_BIND_TEXT(":state", outcome->state),
                RL_BIND_TEXT(":verdict", outcome->verdict), RL_BIND_TEXT(":reason", outcome->reason),
                RL_BIND_TEXT(":quarantine_reason", outcome->quarantine_reason),
                RL_BIND_TEXT(":baseline_runs", outcome->baseline_runs), RL_BIND_INTEGER(":now", rl_realtime_ns())) < 0 ||
      rl_db_run(db, err, "suite_jobs_cancel", RL_BIND_INTEGER(":run", run_id)) < 0 ||
      insert_verdicts(db, run_id, outcome, err) < 0 || add_state_event(db, run_id, err) < 0)
    return -1;
  return store_listing(db, run_id, err);
}

int rl_store_suite_run_finish(rl_store *store, int64_t run_id, const rl_suite_outcome *outcome, rl_error *err) {
  int64_t event_count = 0, given_up_count = 0;
  if (rl_store_begin_transaction(store, err) < 0) return -1;
  int rc = finish_run(&store->writer, run_id, outcome, err);
  if (rc == 0 && store->webhook_added != NULL)
    rc = rl_store_add_webhook_events(&store->writer, run_id, &event_count, &given_up_count, err);
  if (rl_store_end_transaction_changing(store, rc, suites_changed, err) < 0) return -1;
  rl_store_announce_webhook_events(store, event_count, given_up_count);
  return 0;
}

int rl_store_suite_run_state(rl_store *store, int64_t run_id, char state[16], int64_t *event_count, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *found_state;
  if (rl_store_query(store, RL_QUERY_SUITE_RUN_STATUS, RL_BINDINGS(RL_BIND_INTEGER(":run", run_id)), &cursor, err) < 0) return -1;
  int found = rl_cursor_next(cursor, &found_state, err);
  if (found < 0) return -1;
  if (found == 0) return rl_fail(err, RL_HTTP, 404, "Suite run %lld not found.", (long long)run_id);
  snprintf(state, 16, "%s", found_state);
  *event_count = rl_cursor_integer(cursor, 1);
  return 0;
}

/* --- jobs -------------------------------------------------------------------------------------------------------------- */

int rl_store_suite_job_insert(rl_store *store, int64_t run_id, const rl_suite_step *step, int64_t job_id, rl_error *err) {
  rl_db *db = &store->writer;
  if (rl_store_begin_transaction(store, err) < 0) return -1;
  int rc = check_active(db, run_id, err);
  if (rc == 0)
    rc = rl_db_run(db, err, "suite_job_insert", RL_BIND_INTEGER(":run", run_id), RL_BIND_TEXT(":role", step->role),
                   RL_BIND_INTEGER(":block", step->block), RL_BIND_TEXT(":job_name", step->job_name),
                   RL_BIND_INTEGER(":job", job_id));
  if (rc == 0 && sqlite3_changes64(db->handle) > 0) rc = add_job_event(db, run_id, step, err);
  if (rc == 0) rc = rl_store_summarize_job(db, job_id, err);
  return rl_store_end_transaction_changing(store, rc, (rl_change){.suites = true, .lists = true, .job_id = job_id}, err);
}

static int insert_values(rl_db *db, int64_t run_id, const rl_suite_step *step, const rl_suite_value *values, int count,
                         rl_error *err) {
  for (int i = 0; i < count; i++)
    if (rl_db_run(db, err, "suite_value_insert", RL_BIND_INTEGER(":run", run_id), RL_BIND_TEXT(":metric", values[i].metric),
                  RL_BIND_TEXT(":role", step->role), RL_BIND_INTEGER(":block", step->block),
                  RL_BIND_REAL(":value", values[i].value), RL_BIND_REAL(":cycles", values[i].cycles),
                  RL_BIND_TEXT_OR_NULL(":dropped_reason", values[i].dropped_reason),
                  RL_BIND_TEXT_OR_NULL(":other_processes", values[i].other_processes)) < 0)
      return -1;
  return 0;
}

static int finish_job(rl_db *db, int64_t run_id, const rl_suite_step *step, int64_t job_id, const char *state,
                      const char *dropped_reason, const rl_suite_value *values, int count, rl_error *err) {
  if (rl_db_run(db, err, "suite_job_finish", RL_BIND_INTEGER(":run", run_id), RL_BIND_TEXT(":role", step->role),
                RL_BIND_INTEGER(":block", step->block), RL_BIND_TEXT(":job_name", step->job_name), RL_BIND_TEXT(":state", state),
                RL_BIND_TEXT(":drop_reason", dropped_reason)) < 0)
    return -1;
  if (sqlite3_changes64(db->handle) == 0) return 0; /* the end of this job is already recorded */
  const bool is_baseline_job = strncmp(step->role, "baseline", strlen("baseline")) == 0;
  if (insert_values(db, run_id, step, values, count, err) < 0 || add_job_event(db, run_id, step, err) < 0) return -1;
  if (!is_baseline_job &&
      rl_db_run(db, err, "suite_conditions_store", RL_BIND_INTEGER(":run", run_id), RL_BIND_INTEGER(":job", job_id)) < 0)
    return -1;
  return store_listing(db, run_id, err);
}

int rl_store_suite_job_finish(rl_store *store, int64_t run_id, const rl_suite_step *step, int64_t job_id, const char *state,
                              const char *dropped_reason, const rl_suite_value *values, int count, rl_error *err) {
  if (rl_store_begin_transaction(store, err) < 0) return -1;
  int rc = finish_job(&store->writer, run_id, step, job_id, state, dropped_reason, values, count, err);
  return rl_store_end_transaction_changing(store, rc, suites_changed, err);
}

static int find_orphan(rl_db *db, int64_t *job_id, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  int found = rl_db_query_row_bound(db, "suite_orphaned_job", NULL, 0, &row, err);
  if (found > 0) *job_id = sqlite3_column_int64(row, 0);
  return found;
}

int rl_store_suite_find_orphaned_job(rl_store *store, int64_t *job_id, rl_error *err) {
  if (rl_store_begin_transaction(store, err) < 0) return -1;
  return rl_store_end_transaction_changing(store, find_orphan(&store->writer, job_id, err), (rl_change){0}, err);
}

/* --- baselines --------------------------------------------------------------------------------------------------------- */

static int fail_not_eligible(rl_error *err, const char *reason) {
  rl_fail_at(err, "/run", "%s", reason);
  err->domain = RL_SUITE;
  err->code = RL_SUITE_NOT_ELIGIBLE;
  return -1;
}

static int check_eligible(rl_db *db, const char *suite, int64_t run_id, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  char reason[sizeof err->message];
  int found = rl_db_query_row(db, err, "baseline_candidate", &row, RL_BIND_INTEGER(":run", run_id));
  if (found < 0) return -1;
  if (found == 0 || strcmp((const char *)sqlite3_column_text(row, 0), suite) != 0) {
    rl_fail_at(err, "/run", "suite %s has no run %lld", suite, (long long)run_id);
    err->domain = RL_HTTP;
    err->code = 404;
    return -1;
  }
  const char *state = (const char *)sqlite3_column_text(row, 1), *quarantine = (const char *)sqlite3_column_text(row, 2);
  if (strcmp(state, "completed") != 0)
    snprintf(reason, sizeof reason, "suite run %lld is %s, not completed", (long long)run_id, state);
  else if (quarantine != NULL)
    snprintf(reason, sizeof reason, "suite run %lld is quarantined: %s", (long long)run_id, quarantine);
  else return 0;
  return fail_not_eligible(err, reason);
}

static int insert_baseline(rl_db *db, const char *suite, const char *name, int64_t run_id, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  if (check_eligible(db, suite, run_id, err) < 0) return -1;
  int inserted = rl_db_query_row(db, err, "baseline_insert", &row, RL_BIND_TEXT(":suite", suite), RL_BIND_TEXT(":name", name),
                                 RL_BIND_INTEGER(":run", run_id), RL_BIND_INTEGER(":now", rl_realtime_ns()));
  if (inserted < 0) return -1;
  if (inserted > 0) return rl_db_step(db, row, err);
  rl_fail_at(err, "/name", "suite %s already has a baseline %s, and baselines are immutable: use another name", suite, name);
  err->domain = RL_SUITE;
  err->code = RL_SUITE_BASELINE_EXISTS;
  return -1;
}

int rl_store_baseline_check(rl_store *store, const char *suite, int64_t run_id, rl_error *err) {
  if (rl_store_begin_transaction(store, err) < 0) return -1;
  return rl_store_end_transaction_changing(store, check_eligible(&store->writer, suite, run_id, err), (rl_change){0}, err);
}

int rl_store_baseline_insert(rl_store *store, const char *suite, const char *name, int64_t run_id, rl_error *err) {
  if (rl_store_begin_transaction(store, err) < 0) return -1;
  return rl_store_end_transaction_changing(store, insert_baseline(&store->writer, suite, name, run_id, err), suites_changed, err);
}

static int find_baseline(rl_db *db, const char *suite, const char *name, int64_t *run_id, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  int found = rl_db_query_row(db, err, "baseline_run", &row, RL_BIND_TEXT(":suite", suite), RL_BIND_TEXT(":name", name));
  if (found > 0) *run_id = sqlite3_column_int64(row, 0);
  return found;
}

int rl_store_baseline_run(rl_store *store, const char *suite, const char *name, int64_t *run_id, rl_error *err) {
  if (rl_store_begin_transaction(store, err) < 0) return -1;
  return rl_store_end_transaction_changing(store, find_baseline(&store->writer, suite, name, run_id, err), (rl_change){0}, err);
}
