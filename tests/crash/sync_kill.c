/* A library for LD_PRELOAD. It kills the program immediately after a commit of the database: after as many calls of fsync or
 * fdatasync as $SYNC_KILL_AFTER states. */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int count_sync(long rc) {
  static atomic_long count;
  const char *after = getenv("SYNC_KILL_AFTER");
  if (after != NULL && atomic_fetch_add(&count, 1) + 1 == strtol(after, NULL, 10)) kill(getpid(), SIGKILL);
  return (int)rc;
}

int fsync(int file) { return count_sync(syscall(SYS_fsync, file)); }
int fdatasync(int file) { return count_sync(syscall(SYS_fdatasync, file)); }
