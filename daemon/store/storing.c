/* Keeps in memory the jobs whose results can't be stored now, because the database can't be written. Queries read this through
 * the SQL function is_storing(job). */
#include "store/store_internal.h"

void rl_store_set_storing(rl_store *store, int64_t job_id, bool is_storing) {
  int64_t from = is_storing ? 0 : job_id, to = is_storing ? job_id : 0;
  if (rl_store_is_storing(store, job_id) == is_storing) return;
  for (int i = 0; i < RL_MAX_STORING_JOBS; i++) {
    int64_t expected = from;
    if (!atomic_compare_exchange_strong(&store->storing_jobs[i], &expected, to)) continue;
    rl_revisions_count(&store->revisions, (rl_change){.job_id = job_id, .lists = true});
    return;
  }
}

bool rl_store_is_storing(const rl_store *store, int64_t job_id) {
  for (int i = 0; i < RL_MAX_STORING_JOBS; i++)
    if (atomic_load(&store->storing_jobs[i]) == job_id) return true;
  return false;
}

static void is_storing(sqlite3_context *context, int count, sqlite3_value **values) {
  (void)count;
  sqlite3_result_int(context, rl_store_is_storing(sqlite3_user_data(context), sqlite3_value_int64(values[0])));
}

int rl_store_add_storing_function(rl_store *store, rl_db *db, rl_error *err) {
  if (sqlite3_create_function_v2(db->handle, "is_storing", 1, SQLITE_UTF8, store, is_storing, NULL, NULL, NULL) == SQLITE_OK)
    return 0;
  return rl_db_fail(db, "open a reader connection", err);
}
