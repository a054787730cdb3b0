/* Checks whether the database can be written, without a write, because any client may ask at any rate. */
#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/store_internal.h"

enum { NEEDED_BYTES = 1 << 20, MAX_CHECK_NS = 1000000000 };
static const int64_t MEMORY_OF_FAILURE_NS = 10000000000;

/* Fails if the state folder's file system is full or read-only. The database itself can still have free pages on a full disk,
 * which the next jobs or results would use up. */
static int check_file_system(const rl_store *store, rl_error *err) {
  struct statvfs status = {0};
  int code = statvfs(store->folder, &status) < 0 ? errno : 0;
  if (code == 0 && (status.f_flag & ST_RDONLY) != 0) code = EROFS;
  if (code != 0) return rl_fail(err, RL_ERRNO, code, "the daemon can't write in its state folder: %s", strerror(code));
  if (status.f_blocks == 0) return 0; /* the file system has no limit, or does not report its size */
  const uint64_t free_blocks = geteuid() == 0 ? status.f_bfree : status.f_bavail; /* only root can use the reserved blocks */
  if (free_blocks * status.f_frsize >= NEEDED_BYTES) return 0;
  return rl_fail(err, RL_STORAGE, RL_STORAGE_FULL, "the state folder has less than %d bytes of free space", NEEDED_BYTES);
}

/* Does the same in one thread at a time, because statvfs does not return while a file system hangs. The other threads fail when
 * it has taken MAX_CHECK_NS. */
static int check_file_system_in_time(rl_store *store, rl_error *err) {
  const int64_t began_ns = atomic_load(&store->check_began_ns);
  const int64_t wait_ns = began_ns == 0 ? MAX_CHECK_NS : began_ns + MAX_CHECK_NS - rl_monotonic_ns();
  if (!rl_timed_mutex_lock_within(&store->check_mutex, wait_ns > 0 ? wait_ns : 0))
    return rl_fail(err, RL_ERRNO, ETIMEDOUT, "the file system of the state folder does not answer");
  atomic_store(&store->check_began_ns, rl_monotonic_ns());
  const int rc = check_file_system(store, err);
  atomic_store(&store->check_began_ns, 0);
  rl_timed_mutex_unlock(&store->check_mutex);
  return rc;
}

int rl_store_check_writable(rl_store *store, rl_error *err) {
  if (check_file_system_in_time(store, err) < 0) return -1;
  pthread_mutex_lock(&store->failed_write.mutex);
  const int64_t failed_ns = store->failed_write.time_ns;
  const bool is_remembered = failed_ns != 0 && rl_monotonic_ns() - failed_ns <= MEMORY_OF_FAILURE_NS;
  if (is_remembered && err != NULL) *err = store->failed_write.error;
  pthread_mutex_unlock(&store->failed_write.mutex);
  return is_remembered ? rl_wrap(err, "the last write to the database failed") : 0;
}

void rl_store_record_write(rl_store *store) {
  pthread_mutex_lock(&store->failed_write.mutex);
  store->failed_write.time_ns = 0;
  pthread_mutex_unlock(&store->failed_write.mutex);
}

void rl_store_record_failed_write(rl_store *store, const rl_error *err) {
  if (err->domain != RL_STORAGE ||
      !(err->code == RL_STORAGE_FULL || err->code == RL_STORAGE_IO || err->code == RL_STORAGE_DENIED))
    return;
  /* A disk that the check of the file system finds full needs no memory: writes succeed again as soon as there is space. */
  if (err->code == RL_STORAGE_FULL && check_file_system(store, NULL) < 0) return;
  pthread_mutex_lock(&store->failed_write.mutex);
  store->failed_write.error = *err;
  store->failed_write.time_ns = rl_monotonic_ns();
  pthread_mutex_unlock(&store->failed_write.mutex);
}
