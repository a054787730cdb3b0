/* Keeps in memory the jobs whose results can't be stored now, because the database can't be written. Queries read this through
 * the SQL function has_unstored_results(job). */
#include "store/store_internal.h"

void rl_store_set_has_unstored_results(rl_store *store, int64_t job_id, bool has_unstored_results) {
  int64_t old_id = has_unstored_results ? 0 : job_id, new_id = has_unstored_results ? job_id : 0;
  if (rl_store_has_unstored_results(store, job_id) == has_unstored_results) return;
  for (int i = 0; i < RL_MAX_JOBS_WITH_UNSTORED_RESULTS; i++) {
    int64_t expected = old_id;
    if (!atomic_compare_exchange_strong(&store->jobs_with_unstored_results[i], &expected, new_id)) continue;
    rl_revisions_count_change(&store->revisions, (rl_change){.job_id = job_id, .lists = true});
    return;
  }
}

bool rl_store_has_unstored_results(const rl_store *store, int64_t job_id) {
  for (int i = 0; i < RL_MAX_JOBS_WITH_UNSTORED_RESULTS; i++)
    if (atomic_load(&store->jobs_with_unstored_results[i]) == job_id) return true;
  return false;
}

static void has_unstored_results(sqlite3_context *context, int count, sqlite3_value **values) {
  (void)count;
  sqlite3_result_int(context, rl_store_has_unstored_results(sqlite3_user_data(context), sqlite3_value_int64(values[0])));
}

int rl_store_add_unstored_results_function(rl_store *store, rl_db *db, rl_error *err) {
  if (sqlite3_create_function_v2(db->handle, "has_unstored_results", 1, SQLITE_UTF8, store, has_unstored_results, NULL, NULL,
                                 NULL) == SQLITE_OK)
    return 0;
  return rl_db_fail(db, "open a reader connection", err);
}
