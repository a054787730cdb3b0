/* Inserts the events of jobs. An event and the change that it reports are in one transaction. */
#include "base/clock.h"
#include "store/store_internal.h"

/* rl_store_event_append changes none of the kinds of data that have a revision. */
static const rl_change no_change;

/* Increments the job's number of events and sets *seq to the new number. */
static int increment_event_count(rl_db *db, int64_t job_id, int64_t *seq, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  int found = rl_db_query_row(db, err, "event_number", &row, RL_BIND_INTEGER(":job", job_id));
  if (found < 0) return -1;
  if (found == 0) return rl_fail(err, RL_HTTP, 404, "Job %lld not found.", (long long)job_id);
  *seq = sqlite3_column_int64(row, 0);
  return 0;
}

int rl_store_add_state_event(rl_db *db, int64_t job_id, rl_job_state state, const rl_error *problem, rl_error *err) {
  static const rl_error no_problem;
  int64_t seq;
  if (increment_event_count(db, job_id, &seq, err) < 0) return -1;
  const char *domain = problem != NULL ? rl_domain_name(problem->domain) : NULL;
  if (problem == NULL) problem = &no_problem;
  return rl_db_run(db, err, "event_state", RL_BIND_INTEGER(":job", job_id), RL_BIND_INTEGER(":seq", seq),
                   RL_BIND_INTEGER(":now", rl_realtime_ns()), RL_BIND_TEXT(":state", rl_job_state_names[state]),
                   RL_BIND_TEXT(":domain", domain), RL_BIND_INTEGER(":code", problem->code),
                   RL_BIND_TEXT(":pointer", problem->json_pointer), RL_BIND_TEXT(":message", problem->message));
}

int rl_store_add_pass_event(rl_db *db, const rl_claim *claim, const char *state, const char *reason, rl_error *err) {
  int64_t seq;
  if (increment_event_count(db, claim->job_id, &seq, err) < 0) return -1;
  return rl_db_run(db, err, "event_pass", RL_BIND_INTEGER(":job", claim->job_id), RL_BIND_INTEGER(":seq", seq),
                   RL_BIND_INTEGER(":now", rl_realtime_ns()), RL_BIND_INTEGER(":run", claim->run_id),
                   RL_BIND_TEXT(":variant", claim->run.variant), RL_BIND_TEXT(":pass", rl_pass_names[claim->pass]),
                   RL_BIND_TEXT(":state", state), RL_BIND_TEXT(":reason", reason));
}

static int append_event(rl_db *db, int64_t job_id, const char *type, const char *data, int64_t *seq, rl_error *err) {
  rl_job_status status;
  if (rl_store_read_status(db, job_id, &status, err) < 0) return -1;
  if (rl_job_is_final(status.state))
    return rl_fail(err, RL_HTTP, 409, "job %lld is already %s", (long long)job_id, rl_job_state_names[status.state]);
  if (increment_event_count(db, job_id, seq, err) < 0) return -1;
  return rl_db_run(db, err, "event_insert", RL_BIND_INTEGER(":job", job_id), RL_BIND_INTEGER(":seq", *seq),
                   RL_BIND_INTEGER(":now", rl_realtime_ns()), RL_BIND_TEXT(":type", type), RL_BIND_TEXT(":data", data));
}

int rl_store_event_append(rl_store *store, int64_t job_id, const char *type, const char *data, int64_t *seq, rl_error *err) {
  int64_t number = 0;
  if (rl_store_begin_transaction(store, err) < 0) return -1;
  int rc = append_event(&store->writer, job_id, type, data, &number, err);
  if (rl_store_end_transaction_changing(store, rc, no_change, err) < 0) return -1;
  *seq = number;
  return 0;
}
