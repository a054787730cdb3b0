/* Copies one snapshot of the database with SQLite's online backup, even while the daemon writes. Writes the copy to FILE.partial
 * and links the complete copy to FILE, so that FILE is never an incomplete database. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "store/store_internal.h"

static const rl_embedded no_statements[] = {{0}};

static int copy_pages(rl_db *from, rl_db *to, rl_error *err) {
  sqlite3_backup *backup = sqlite3_backup_init(to->handle, "main", from->handle, "main");
  if (backup == NULL) return rl_db_fail(to, "write the backup", err);
  sqlite3_backup_step(backup, -1); /* -1: all pages; sqlite3_backup_finish returns the result */
  return sqlite3_backup_finish(backup) == SQLITE_OK ? 0 : rl_db_fail(to, "write the backup", err);
}

/* Copies `database` to the empty file `partial`. */
static int write_backup(const char *database, const char *partial, rl_error *err) {
  rl_db from = {0}, to = {0};
  int rc = rl_db_open(database, SQLITE_OPEN_READWRITE, no_statements, &from, err);
  if (rc == 0) rc = rl_db_open(partial, SQLITE_OPEN_READWRITE, no_statements, &to, err);
  if (rc == 0) rc = copy_pages(&from, &to, err);
  rl_db_close(&to);
  rl_db_close(&from);
  return rc;
}

int rl_store_backup(const char *folder, const char *file, rl_error *err) {
  RL_CLEANUP(rl_free_text) char *database = NULL;
  RL_CLEANUP(rl_free_text) char *partial = NULL;
  if (asprintf(&database, "%s/rooflined.db", folder) < 0 || asprintf(&partial, "%s.partial", file) < 0)
    return rl_fail_errno(err, "cannot write %s", file);
  if (access(database, F_OK) < 0) return rl_fail_errno(err, "there is no database %s", database);
  if (access(file, F_OK) == 0) return rl_fail(err, RL_ERRNO, EEXIST, "%s exists already: name a new file", file);
  if (unlink(partial) < 0 && errno != ENOENT) return rl_fail_errno(err, "cannot replace %s", partial);
  RL_CLEANUP(rl_close_descriptor) int descriptor = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return rl_fail_errno(err, "cannot create %s", partial);
  int rc = write_backup(database, partial, err);
  if (rc == 0 && (fsync(descriptor) < 0 || link(partial, file) < 0)) rc = rl_fail_errno(err, "cannot write %s", file);
  unlink(partial);
  return rc;
}
