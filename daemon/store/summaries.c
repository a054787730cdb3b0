/* Stores the summary and the history of a run, and a job's item in the list of jobs, so that queries need not compute them. Views
 * in schema/sql/views.sql define the computations. */
#include "store/store_internal.h"

/* Executed in this order: history_store reads the summary, and its rows refer to a configuration and a series. */
static const char *const run_statements[] = {"run_summary_store", "configuration_insert", "history_series_insert",
                                             "history_store"};
enum { RUN_STATEMENTS = sizeof run_statements / sizeof *run_statements };

int rl_store_summarize_run(rl_db *db, int64_t run_id, rl_error *err) {
  for (int i = 0; i < RUN_STATEMENTS; i++)
    if (rl_db_run(db, err, run_statements[i], RL_BIND_INTEGER(":run", run_id)) < 0) return -1;
  return 0;
}

int rl_store_summarize_job(rl_db *db, int64_t job_id, rl_error *err) {
  return rl_db_run(db, err, "job_listing_store", RL_BIND_INTEGER(":job", job_id));
}

int rl_store_summarize_all(rl_db *db, rl_error *err) {
  if (rl_store_restore_floors(db, err) < 0) return -1; /* summaries depend on suspect times */
  for (int i = 0; i < RUN_STATEMENTS; i++)
    if (rl_db_run(db, err, run_statements[i]) < 0) return -1;
  return rl_db_run(db, err, "job_listing_store") < 0 ? -1 : rl_db_run(db, err, "suite_listing_store");
}
