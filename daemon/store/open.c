/* Opens and closes the store, begins and ends transactions, and writes tokens. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "store/schema.h"
#include "store/store_internal.h"

/* Creates the folder and its missing parents. */
static int make_folder(const char *folder, rl_error *err) {
  rl_auto(rl_free_text) char *path = strdup(folder);
  if (path == NULL) return rl_fail_errno(err, "cannot create the state folder %s", folder);
  for (char *c = path + 1; *path != '\0'; c++) {
    char separator = *c;
    if (separator != '/' && separator != '\0') continue;
    *c = '\0';
    if (mkdir(path, 0700) < 0 && errno != EEXIST) return rl_fail_errno(err, "cannot create the state folder %s", folder);
    if (separator == '\0') break;
    *c = separator;
  }
  return 0;
}

/* Locks the state folder, with the process id in the lock file. Closing the descriptor *lock releases the lock. */
static int lock_folder(const char *folder, int *lock, rl_error *err) {
  rl_auto(rl_free_text) char *path = NULL;
  if (asprintf(&path, "%s/lock", folder) < 0) return rl_fail_errno(err, "cannot lock the state folder %s", folder);
  rl_auto(rl_close_descriptor) int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) return rl_fail_errno(err, "cannot write in the state folder %s", folder);
  char owner[24] = "unknown";
  if (flock(descriptor, LOCK_EX | LOCK_NB) < 0) {
    int code = errno;
    if (code != EWOULDBLOCK) return rl_fail_errno(err, "cannot lock the state folder %s", folder);
    ssize_t size = pread(descriptor, owner, sizeof owner - 1, 0);
    if (size > 0) owner[size] = '\0';
    return rl_fail(err, RL_SYS, code,
                   "the state folder %s is in use by another rooflined (process %s): stop that one, or use another folder",
                   folder, owner);
  }
  int length = snprintf(owner, sizeof owner, "%ld", (long)getpid());
  if (ftruncate(descriptor, 0) < 0 || pwrite(descriptor, owner, (size_t)length, 0) != length)
    return rl_fail_errno(err, "cannot write in the state folder %s", folder);
  *lock = descriptor;
  descriptor = -1;
  return 0;
}

static int check_log_mode(rl_db *db, rl_error *err) {
  rl_auto(rl_db_release) sqlite3_stmt *row = NULL;
  if (rl_db_row(db, err, "journal_mode", &row) < 0) return -1;
  const char *mode = (const char *)sqlite3_column_text(row, 0);
  if (mode != NULL && strcmp(mode, "wal") == 0) return 0;
  return rl_fail(err, RL_SYS, ENOTSUP, "the file system can't hold a write-ahead log: put the state folder on a local disk");
}

/* Checks the schema before the statement open_writer changes the journal mode, because a refused file must stay unchanged. */
static int open_writer(rl_store *store, rl_error *err) {
  const rl_schema *schema = rl_current_schema();
  rl_db *db = &store->writer;
  if (rl_db_open(store->file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, rl_statements, db, err) < 0) return -1;
  int must_change = rl_schema_check(db, schema, store->lock >= 0, err);
  if (must_change < 0 || rl_db_script(db, "open_writer", err) < 0 || check_log_mode(db, err) < 0) return -1;
  return must_change ? rl_schema_apply(db, schema, err) : 0;
}

/* shared: opens the store even if another process holds the folder's lock. */
static int open_store(const char *folder, bool shared, rl_store **store, rl_error *err) {
  rl_auto(rl_store_cleanup) rl_store *made = calloc(1, sizeof *made);
  if (made == NULL) return rl_fail_errno(err, "cannot open the state folder %s", folder);
  made->lock = -1;
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&made->writer_mutex, NULL);
  pthread_mutex_init(&made->readers_mutex, NULL);
  pthread_cond_init(&made->reader_returned, &monotonic);
  pthread_condattr_destroy(&monotonic);
  made->folder = strdup(folder);
  if (made->folder == NULL || asprintf(&made->file, "%s/rooflined.db", folder) < 0)
    return rl_fail_errno(err, "cannot open the state folder %s", folder);
  rl_error lock_error;
  if (make_folder(folder, err) < 0) return -1;
  if (lock_folder(folder, &made->lock, &lock_error) < 0 &&
      !(shared && lock_error.domain == RL_SYS && lock_error.code == EWOULDBLOCK)) {
    if (err != NULL) *err = lock_error;
    return -1;
  }
  if (open_writer(made, err) < 0) return rl_wrap(err, "%s", made->file);
  *store = rl_steal(&made);
  return 0;
}

int rl_store_open(const char *folder, rl_store **store, rl_error *err) { return open_store(folder, false, store, err); }
int rl_store_open_shared(const char *folder, rl_store **store, rl_error *err) { return open_store(folder, true, store, err); }

void rl_store_close(rl_store *store) {
  if (store == NULL) return;
  rl_store_close_readers(store);
  rl_db_close(&store->writer);
  if (store->lock >= 0) close(store->lock);
  pthread_cond_destroy(&store->reader_returned);
  pthread_mutex_destroy(&store->readers_mutex);
  pthread_mutex_destroy(&store->writer_mutex);
  free(store->file);
  free(store->folder);
  free(store);
}

int rl_store_begin(rl_store *store, rl_error *err) {
  pthread_mutex_lock(&store->writer_mutex);
  if (rl_db_run(&store->writer, err, "begin") == 0) return 0;
  pthread_mutex_unlock(&store->writer_mutex);
  return -1;
}

int rl_store_end(rl_store *store, int rc, rl_error *err) {
  if (rc >= 0 && rl_db_run(&store->writer, err, "commit") < 0) rc = -1;
  /* SQLite may have rolled back itself, for example on a full disk. */
  if (rc < 0 && !sqlite3_get_autocommit(store->writer.handle)) rl_db_run(&store->writer, NULL, "rollback");
  pthread_mutex_unlock(&store->writer_mutex);
  return rc;
}

int rl_store_token_add(rl_store *store, const char *name, const char *hash, rl_error *err) {
  if (rl_store_begin(store, err) < 0) return -1;
  int rc =
      rl_db_run(&store->writer, err, "token_insert", RL_TEXT(":hash", hash), RL_TEXT(":name", name), RL_INT(":now", rl_now_ns()));
  return rl_store_end(store, rc, err);
}

int rl_store_token_remove(rl_store *store, const char *name, int64_t *count, rl_error *err) {
  int64_t removed = 0;
  if (rl_store_begin(store, err) < 0) return -1;
  int rc = rl_db_run(&store->writer, err, "token_delete", RL_TEXT(":name", name));
  if (rc == 0) removed = sqlite3_changes64(store->writer.handle);
  if (rl_store_end(store, rc, err) < 0) return -1;
  *count = removed;
  return 0;
}

int rl_store_bytes(rl_store *store, int64_t *database_bytes, int64_t *log_bytes, rl_error *err) {
  rl_auto(rl_free_text) char *log = NULL;
  struct stat database, wal = {0};
  if (asprintf(&log, "%s-wal", store->file) < 0) return rl_fail_errno(err, "cannot read the size of %s", store->file);
  if (stat(store->file, &database) < 0) return rl_fail_errno(err, "cannot read the size of %s", store->file);
  if (stat(log, &wal) < 0 && errno != ENOENT) return rl_fail_errno(err, "cannot read the size of %s", log);
  *database_bytes = (int64_t)database.st_size;
  *log_bytes = (int64_t)wal.st_size;
  return 0;
}
