/* Commits the passes of the spill files (supervisor/spill.h), to which the supervisor of the last daemon wrote results that the
 * database did not accept. After it had written such a file, the last daemon may still have stored some of the pass's activity
 * rows, because the database accepted writes again. These rows are skipped, so that no row is stored twice. */
#include "recovery.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "supervisor/spill.h"

static int commit_once(rl_store *store, rl_spilled_pass *pass, rl_error *err) {
  bool job_done;
  int64_t stored_rows;
  if (rl_store_count_activity_rows(store, pass->claim.pass_id, &stored_rows, err) < 0 ||
      rl_spilled_pass_remove_stored_rows(pass, stored_rows, err) < 0)
    return -1;
  const char *reason = pass->is_unavailable ? pass->failure.message : NULL;
  if (pass->log != NULL && rl_store_set_run_log(store, pass->claim.run_id, pass->log, err) < 0) return -1;
  return rl_store_pass_commit(store, &pass->claim, &pass->records, reason, &job_done, err);
}

static int commit(rl_store *store, rl_spilled_pass *pass, rl_error *err) {
  int64_t begin_ns = rl_monotonic_ns();
  while (commit_once(store, pass, err) < 0)
    if (!rl_store_should_retry_at_start(err, begin_ns)) return -1;
  return 0;
}

/* Returns whether a later attempt to commit the pass may succeed. If so, the file is kept and the daemon does not start. A later
 * attempt can't succeed after RL_HTTP (the job has ended or was deleted), RL_WIRE (activity rows between the last row in the
 * database and the first row in the file are lost) and RL_STORAGE_CONSTRAINT (the records violate a constraint of the schema). */
static bool is_temporary(const rl_error *err) {
  return err->domain != RL_HTTP && err->domain != RL_WIRE && !(err->domain == RL_STORAGE && err->code == RL_STORAGE_CONSTRAINT);
}

static int recover_file(const char *path, rl_store *store, rl_error *err) {
  RL_CLEANUP(rl_spill_cleanup) rl_spill *spill = NULL;
  rl_spilled_pass pass = {0};
  if (rl_spill_open_existing(path, &spill, err) < 0) return -1;
  int found = rl_spill_read(spill, &pass, err);
  if (found == 0) return 0;
  if (found < 0) {
    rl_log(RL_LOG_WARNING, "%s: %s; its pass runs again", path, err->message);
    return rl_spill_clear(spill, err);
  }
  int rc = commit(store, &pass, err);
  if (rc >= 0)
    rl_log(RL_LOG_INFO, "job %lld: the results of its %s pass are stored from %s", (long long)pass.claim.job_id,
           rl_pass_names[pass.claim.pass], path);
  else if (!is_temporary(err)) rl_log(RL_LOG_WARNING, "%s: %s; the results are dropped", path, err->message);
  rl_spilled_pass_clear(&pass);
  if (rc < 0 && is_temporary(err)) return rl_wrap(err, "%s", path);
  return rl_spill_clear(spill, err);
}

int rl_recover_spilled_passes(const char *folder, rl_store *store, rl_error *err) {
  RL_CLEANUP(rl_free_text) char *pattern = NULL;
  glob_t found = {0};
  int rc = 0;
  if (asprintf(&pattern, "%s/" RL_SPILL_PREFIX "*", folder) < 0) return rl_fail_errno(err, "can't look for spill files");
  if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc && rc == 0; i++) rc = recover_file(found.gl_pathv[i], store, err);
  globfree(&found);
  return rc;
}
