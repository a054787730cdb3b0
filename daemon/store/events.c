/* Inserts events. An event and the change that it reports are one transaction. */
#include "base/clock.h"
#include "store/store_internal.h"

/* Increments the job's number of events and returns it in *seq. */
static int next_seq(rl_db *db, int64_t job_id, int64_t *seq, rl_error *err) {
  rl_auto(rl_db_release) sqlite3_stmt *row = NULL;
  int found = rl_db_row(db, err, "event_number", &row, RL_INT(":job", job_id));
  if (found < 0) return -1;
  if (found == 0) return rl_fail(err, RL_HTTP, 404, "there is no job %lld", (long long)job_id);
  *seq = sqlite3_column_int64(row, 0);
  return 0;
}

int rl_store_add_state_event(rl_db *db, int64_t job_id, rl_job_state state, const rl_error *problem, rl_error *err) {
  static const rl_error no_problem;
  int64_t seq;
  if (next_seq(db, job_id, &seq, err) < 0) return -1;
  const char *domain = problem != NULL ? rl_domain_name(problem->domain) : NULL;
  if (problem == NULL) problem = &no_problem;
  return rl_db_run(db, err, "event_state", RL_INT(":job", job_id), RL_INT(":seq", seq), RL_INT(":now", rl_now_ns()),
                   RL_TEXT(":state", rl_job_state_names[state]), RL_TEXT(":domain", domain), RL_INT(":code", problem->code),
                   RL_TEXT(":pointer", problem->pointer), RL_TEXT(":message", problem->message));
}

int rl_store_add_pass_event(rl_db *db, const rl_claim *claim, const char *state, const char *reason, rl_error *err) {
  int64_t seq;
  if (next_seq(db, claim->job_id, &seq, err) < 0) return -1;
  return rl_db_run(db, err, "event_pass", RL_INT(":job", claim->job_id), RL_INT(":seq", seq), RL_INT(":now", rl_now_ns()),
                   RL_INT(":run", claim->run_id), RL_TEXT(":variant", claim->run.variant),
                   RL_TEXT(":pass", rl_pass_names[claim->pass]), RL_TEXT(":state", state), RL_TEXT(":reason", reason));
}

static int append(rl_db *db, int64_t job_id, const char *type, const char *data, int64_t *seq, rl_error *err) {
  if (next_seq(db, job_id, seq, err) < 0) return -1;
  return rl_db_run(db, err, "event_insert", RL_INT(":job", job_id), RL_INT(":seq", *seq), RL_INT(":now", rl_now_ns()),
                   RL_TEXT(":type", type), RL_TEXT(":data", data));
}

int rl_store_event_append(rl_store *store, int64_t job_id, const char *type, const char *data, int64_t *seq, rl_error *err) {
  int64_t number = 0;
  if (rl_store_begin(store, err) < 0) return -1;
  if (rl_store_end(store, append(&store->writer, job_id, type, data, &number, err), err) < 0) return -1;
  *seq = number;
  return 0;
}
