/* Checks whether the database can be written, without a change of its data. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/store_internal.h"

enum { NEEDED_BYTES = 1 << 20, MAX_AGE_NS = 1000000000 };
static const int64_t MEMORY_OF_FAILURE_NS = 10000000000;

/* Reserves NEEDED_BYTES in the state folder and frees them again. The database itself can still have free pages on a full disk,
 * which the next jobs or results would use up. */
static int reserve_space(const rl_store *store, rl_error *err) {
  RL_CLEANUP(rl_free_text) char *path = NULL;
  int code = ENOMEM;
  if (asprintf(&path, "%s/space-check", store->folder) < 0) return rl_fail(err, RL_ERRNO, code, "out of memory");
  RL_CLEANUP(rl_close_descriptor) int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  code = file < 0 ? errno : 0;
  if (file >= 0) {
    unlink(path);
    do code = posix_fallocate(file, 0, NEEDED_BYTES);
    while (code == EINTR);
  }
  if (code == 0 || code == EINVAL || code == EOPNOTSUPP) return 0; /* the file system can't reserve space */
  if (code == ENOSPC || code == EDQUOT)
    return rl_fail(err, RL_STORAGE, RL_STORAGE_FULL, "the state folder has less than %d bytes of free space", NEEDED_BYTES);
  return rl_fail(err, RL_ERRNO, code, "the daemon can't write in its state folder: %s", strerror(code));
}

/* Reserves space at most once a second, because any client may ask. */
static void check_space(rl_store *store) {
  const int64_t now_ns = rl_monotonic_ns();
  if (store->writable.space_checked_ns != 0 && now_ns - store->writable.space_checked_ns <= MAX_AGE_NS) return;
  store->writable.space_error = (rl_error){0};
  (void)reserve_space(store, &store->writable.space_error);
  store->writable.space_checked_ns = now_ns;
}

int rl_store_check_writable(rl_store *store, rl_error *err) {
  rl_timed_mutex_lock(&store->writable.mutex);
  check_space(store);
  const rl_error space_error = store->writable.space_error, write_error = store->writable.write_error;
  rl_timed_mutex_unlock(&store->writable.mutex);
  const int64_t failed_ns = atomic_load(&store->write_failed_ns);
  if (space_error.domain != RL_OK) {
    if (err != NULL) *err = space_error;
    return -1;
  }
  if (failed_ns == 0 || rl_monotonic_ns() - failed_ns > MEMORY_OF_FAILURE_NS) return 0;
  if (err != NULL) *err = write_error;
  return rl_wrap(err, "the last write to the database failed");
}

void rl_store_record_write(rl_store *store, const rl_error *err) {
  if (err == NULL) {
    atomic_store(&store->write_failed_ns, 0);
    return;
  }
  if (err->domain != RL_STORAGE ||
      !(err->code == RL_STORAGE_FULL || err->code == RL_STORAGE_IO || err->code == RL_STORAGE_DENIED))
    return;
  rl_timed_mutex_lock(&store->writable.mutex);
  store->writable.write_error = *err;
  rl_timed_mutex_unlock(&store->writable.mutex);
  atomic_store(&store->write_failed_ns, rl_monotonic_ns());
}
