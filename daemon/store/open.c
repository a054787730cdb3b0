/* Opens and closes the store, and begins and ends its write transactions. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/stop_signal.h"
#include "store/schema.h"
#include "store/store_internal.h"

/* Creates the folder and its missing parents. */
static int make_folder(const char *folder, rl_error *err) {
  RL_CLEANUP(rl_free_text) char *path = strdup(folder);
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

/* Locks the state folder until the descriptor *lock is closed. The lock is on the folder itself, so that deleting the file
 * `lock`, which contains the process id of the lock's owner, does not release the lock. */
static int lock_folder(const char *folder, int *lock, rl_error *err) {
  RL_CLEANUP(rl_free_text) char *path = NULL;
  if (asprintf(&path, "%s/lock", folder) < 0) return rl_fail_errno(err, "cannot lock the state folder %s", folder);
  RL_CLEANUP(rl_close_descriptor) int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  RL_CLEANUP(rl_close_descriptor) int pid_file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0 || pid_file < 0) return rl_fail_errno(err, "cannot write in the state folder %s", folder);
  char owner_pid[24] = "unknown";
  if (flock(descriptor, LOCK_EX | LOCK_NB) < 0) {
    int code = errno;
    if (code != EWOULDBLOCK) return rl_fail_errno(err, "cannot lock the state folder %s", folder);
    ssize_t size = pread(pid_file, owner_pid, sizeof owner_pid - 1, 0);
    if (size > 0) owner_pid[size] = '\0';
    return rl_fail(err, RL_ERRNO, code,
                   "the state folder %s is in use by another rooflined (process %s): stop that process, or use another folder",
                   folder, owner_pid);
  }
  int length = snprintf(owner_pid, sizeof owner_pid, "%ld", (long)getpid());
  if (ftruncate(pid_file, 0) < 0 || pwrite(pid_file, owner_pid, (size_t)length, 0) != length)
    return rl_fail_errno(err, "cannot write in the state folder %s", folder);
  *lock = descriptor;
  descriptor = -1;
  return 0;
}

static int check_log_mode(rl_db *db, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  if (rl_db_query_row(db, err, "journal_mode", &row) < 0) return -1;
  const char *mode = (const char *)sqlite3_column_text(row, 0);
  if (mode != NULL && strcmp(mode, "wal") == 0) return 0;
  return rl_fail(err, RL_ERRNO, ENOTSUP, "the file system can't hold a write-ahead log: put the state folder on a local disk");
}

/* Opens the connection that writes. Checks the schema first, because the statement open_writer changes the journal mode, and a
 * file that is refused must stay unchanged. */
static int open_writer(rl_store *store, rl_error *err) {
  const rl_schema *schema = rl_current_schema();
  rl_db *db = &store->writer;
  if (rl_db_open(store->file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, rl_statements, db, err) < 0) return -1;
  int must_change = rl_schema_check(db, schema, store->lock_fd >= 0, err);
  if (must_change < 0 || rl_db_execute_named(db, "open_writer", err) < 0 || check_log_mode(db, err) < 0) return -1;
  if (must_change && rl_schema_apply(db, schema, err) < 0) return -1;
  sqlite3_busy_timeout(db->handle, (int)store->write_wait_ms);
  return rl_store_add_unstored_results_function(store, db, err);
}

/* How long a transaction waits for another program's lock (..._WRITE_WAIT_MS) and for other threads of this process
 * (THREAD_WAIT_NS). The daemon waits for other programs only briefly, because HTTP requests wait meanwhile; other programs wait
 * longer for the daemon. */
enum {
  DAEMON_WRITE_WAIT_MS = 100,
  SHARED_WRITE_WAIT_MS = 5000,
  THREAD_WAIT_NS = 1000000000,
  BEGIN_PAUSE_NS = 5000000,
  MAX_NS_BETWEEN_REFUSALS = 1000000000
};
static const int64_t START_WAIT_NS = 5000000000;

/* Opens the store. If shared is false, fails if another process holds the folder's lock. */
static int open_store(const char *folder, bool shared, rl_store **store, rl_error *err) {
  RL_CLEANUP(rl_store_cleanup) rl_store *opened = calloc(1, sizeof *opened);
  if (opened == NULL) return rl_fail_errno(err, "cannot open the state folder %s", folder);
  opened->lock_fd = -1;
  opened->write_wait_ms = shared ? SHARED_WRITE_WAIT_MS : DAEMON_WRITE_WAIT_MS;
  rl_timed_mutex_init(&opened->writer_mutex);
  rl_timed_mutex_init(&opened->check_mutex);
  pthread_mutex_init(&opened->failed_write.mutex, NULL);
  pthread_mutex_init(&opened->readers_mutex, NULL);
  pthread_mutex_init(&opened->cached_tokens_mutex, NULL);
  rl_condition_init(&opened->reader_returned);
  opened->folder = strdup(folder);
  if (opened->folder == NULL || asprintf(&opened->file, "%s/rooflined.db", folder) < 0)
    return rl_fail_errno(err, "cannot open the state folder %s", folder);
  rl_error lock_error;
  if (make_folder(folder, err) < 0) return -1;
  if (lock_folder(folder, &opened->lock_fd, &lock_error) < 0 &&
      !(shared && lock_error.domain == RL_ERRNO && lock_error.code == EWOULDBLOCK)) {
    if (err != NULL) *err = lock_error;
    return -1;
  }
  if (open_writer(opened, err) < 0) return rl_wrap(err, "%s", opened->file);
  rl_revisions_open(&opened->revisions, opened->writer.handle);
  *store = rl_take_ownership(&opened);
  return 0;
}

int rl_store_open(const char *folder, rl_store **store, rl_error *err) { return open_store(folder, false, store, err); }
int rl_store_open_shared(const char *folder, rl_store **store, rl_error *err) { return open_store(folder, true, store, err); }

void rl_store_close(rl_store *store) {
  if (store == NULL) return;
  rl_store_close_readers(store);
  rl_db_close(&store->writer);
  if (store->lock_fd >= 0) close(store->lock_fd);
  pthread_cond_destroy(&store->reader_returned);
  pthread_mutex_destroy(&store->readers_mutex);
  pthread_mutex_destroy(&store->cached_tokens_mutex);
  pthread_mutex_destroy(&store->failed_write.mutex);
  rl_timed_mutex_destroy(&store->check_mutex);
  rl_timed_mutex_destroy(&store->writer_mutex);
  free(store->file);
  free(store->folder);
  free(store);
}

static int lock_writer(rl_store *store, rl_error *err) {
  atomic_fetch_add(&store->waiting_writers, 1);
  const bool is_locked = rl_timed_mutex_lock_within(&store->writer_mutex, THREAD_WAIT_NS);
  atomic_fetch_sub(&store->waiting_writers, 1);
  if (is_locked) return 0;
  return rl_fail(err, RL_STORAGE, RL_STORAGE_LOCKED, "cannot use the database: other threads held the writer for 1 s: try again");
}

static void pause_for_lock(void) { nanosleep(&(struct timespec){.tv_nsec = BEGIN_PAUSE_NS}, NULL); }

bool rl_store_should_retry_at_start(const rl_error *err, int64_t begin_ns) {
  if (!rl_is_storage_locked(err) || rl_monotonic_ns() - begin_ns >= START_WAIT_NS || rl_stop_signal_is_pending()) return false;
  pause_for_lock();
  return true;
}

/* Tries once to begin a transaction. Unlocks the writer after a failure. */
static int try_to_begin(rl_store *store, rl_error *err) {
  sqlite3_busy_timeout(store->writer.handle, 0);
  int rc = rl_db_run(&store->writer, err, "begin");
  sqlite3_busy_timeout(store->writer.handle, (int)store->write_wait_ms);
  if (rc < 0) rl_timed_mutex_unlock(&store->writer_mutex);
  return rc;
}

/* Records that SQLite has refused a transaction because another program holds the lock. Returns the time of the first refusal
 * because of this lock. A refusal more than MAX_NS_BETWEEN_REFUSALS after the previous one is attributed to a new lock. */
static int64_t record_lock_refusal(rl_store *store) {
  const int64_t now_ns = rl_monotonic_ns();
  if (now_ns - atomic_exchange(&store->locked_until_ns, now_ns) > MAX_NS_BETWEEN_REFUSALS ||
      atomic_load(&store->locked_since_ns) == 0)
    atomic_store(&store->locked_since_ns, now_ns);
  return atomic_load(&store->locked_since_ns);
}

/* Waits for another program's lock without holding the mutex, so that threads wait concurrently. write_wait_ms counts from the
 * first refusal, which may precede this call: when a lock has lasted for that long, further transactions fail at once, so that
 * requests do not queue up. */
int rl_store_begin_transaction(rl_store *store, rl_error *err) {
  rl_error reason;
  if (lock_writer(store, err) < 0) return -1;
  while (try_to_begin(store, &reason) < 0) {
    if (!rl_is_storage_locked(&reason) || rl_monotonic_ns() - record_lock_refusal(store) >= store->write_wait_ms * 1000000) {
      if (err != NULL) *err = reason;
      return -1;
    }
    pause_for_lock();
    if (lock_writer(store, err) < 0) return -1;
  }
  atomic_store(&store->locked_since_ns, 0);
  rl_revisions_begin_transaction(&store->revisions, store->writer.handle);
  return 0;
}

/* Pauses while other writers wait. Without the pause, a thread that unlocks the mutex between two transactions would usually lock
 * it again before a waiting thread wakes. */
int rl_store_begin_bulk_transaction(rl_store *store, rl_error *err) {
  enum { PAUSE_NS = 200000, MAX_PAUSES = 500 };
  for (int i = 0; i < MAX_PAUSES && atomic_load(&store->waiting_writers) > 0; i++)
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
  return rl_store_begin_transaction(store, err);
}

int rl_store_end_transaction_changing(rl_store *store, int rc, rl_change change, rl_error *err) {
  if (rc >= 0) {
    rl_revisions_begin_commit(&store->revisions);
    if (rl_db_run(&store->writer, err, "commit") < 0) rc = -1;
    const bool wrote = rl_revisions_end_commit(&store->revisions, store->writer.handle, change);
    if (rc >= 0 && wrote) rl_store_record_write(store); /* a commit without changes succeeds on a broken disk too */
  }
  if (rc < 0 && err != NULL) rl_store_record_failed_write(store, err);
  /* SQLite may already have rolled the transaction back, for example on a full disk. */
  if (rc < 0 && !sqlite3_get_autocommit(store->writer.handle)) rl_db_run(&store->writer, NULL, "rollback");
  rl_timed_mutex_unlock(&store->writer_mutex);
  return rc;
}

int rl_store_end_transaction_changing_all(rl_store *store, int rc, rl_error *err) {
  return rl_store_end_transaction_changing(store, rc, (rl_change){.everything = true}, err);
}

uint64_t rl_store_revision(rl_store *store, rl_revision_kind kind, int64_t job_id) {
  return rl_revisions_read(&store->revisions, kind, job_id);
}

int rl_store_reset_log(rl_store *store, rl_error *err) {
  sqlite3_stmt *row = NULL;
  if (lock_writer(store, NULL) < 0) return RL_RESET_HELD_BY_WRITER;
  int rc = rl_db_query_row(&store->writer, err, "checkpoint", &row);
  bool is_busy = rc > 0 && sqlite3_column_int(row, 0) != 0;
  sqlite3_reset(row);
  /* SQLite has waited this long for the holder. */
  bool has_query = rl_store_has_query_since(store, rl_monotonic_ns() - store->write_wait_ms * 1000000);
  rl_timed_mutex_unlock(&store->writer_mutex);
  if (rc < 0) return -1;
  return !is_busy ? RL_RESET_DONE : has_query ? RL_RESET_HELD_BY_QUERY : RL_RESET_HELD_BY_PROGRAM;
}

int rl_store_file_sizes(rl_store *store, int64_t *database_bytes, int64_t *log_bytes, rl_error *err) {
  RL_CLEANUP(rl_free_text) char *log = NULL;
  struct stat database, wal = {0};
  if (asprintf(&log, "%s-wal", store->file) < 0) return rl_fail_errno(err, "cannot read the size of %s", store->file);
  if (stat(store->file, &database) < 0) return rl_fail_errno(err, "cannot read the size of %s", store->file);
  if (stat(log, &wal) < 0 && errno != ENOENT) return rl_fail_errno(err, "cannot read the size of %s", log);
  *database_bytes = (int64_t)database.st_size;
  *log_bytes = (int64_t)wal.st_size;
  return 0;
}
