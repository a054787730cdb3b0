/* Copies the rows of a trace into a new database. The statements of schema/sql/nsys read the rows from the store's database,
 * which is attached. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "store/store_internal.h"

extern const rl_embedded rl_nsys_statements[]; /* schema/sql/nsys */

/* Executed in this order, because a statement can read rows that earlier statements have written. */
static const char *const statements[] = {
    "nsys_strings", "nsys_short_strings", "nsys_short_names", "nsys_kernels",   "nsys_copies",  "nsys_sets",   "nsys_calls",
    "nsys_ranges",  "nsys_domains",       "nsys_overheads",   "nsys_processes", "nsys_details", "nsys_device", "nsys_conditions"};

/* Writes all tables in one transaction, so that all rows come from one snapshot of the store's database. */
static int copy_trace(rl_db *db, const char *store_file, int64_t run, rl_error *err) {
  if (rl_db_execute_named(db, "nsys_tables", err) < 0 ||
      rl_db_run(db, err, "nsys_attach", RL_BIND_TEXT(":file", store_file)) < 0 ||
      rl_db_execute(db, "BEGIN", "write an export", err) < 0 || rl_db_run(db, err, "nsys_pass", RL_BIND_INTEGER(":run", run)) < 0)
    return -1;
  for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
    if (rl_db_run_bound(db, statements[i], NULL, 0, err) < 0) return -1;
  return rl_db_execute(db, "COMMIT", "write an export", err);
}

int rl_store_write_nsys(rl_store *store, int64_t run, int *descriptor, rl_error *err) {
  RL_CLEANUP(rl_free_text) char *path = NULL;
  if (asprintf(&path, "%s/export-XXXXXX", store->folder) < 0) return rl_fail_errno(err, "cannot write an export");
  RL_CLEANUP(rl_close_descriptor) int file = mkostemp(path, O_CLOEXEC);
  if (file < 0) return rl_fail_errno(err, "cannot create a file in %s", store->folder);
  rl_db db;
  int rc = rl_db_open(path, SQLITE_OPEN_READWRITE, rl_nsys_statements, &db, err);
  unlink(path); /* the file exists as long as the descriptor or the connection is open, so a crash leaves no file */
  if (rc < 0) return -1;
  rl_store_limit_connection(&db);
  rc = copy_trace(&db, store->file, run, err);
  rl_db_close(&db);
  if (rc < 0) return -1;
  *descriptor = file;
  file = -1;
  return 0;
}
