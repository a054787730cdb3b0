/* Preloaded into a program, kills it when it has made its writes durable for the $SYNC_KILL_AFTER-th time: right behind a commit
 * of the database, and before anything else that belongs to it could be written. */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int counted(long rc) {
  static atomic_long count;
  const char *after = getenv("SYNC_KILL_AFTER");
  if (after != NULL && atomic_fetch_add(&count, 1) + 1 == strtol(after, NULL, 10)) kill(getpid(), SIGKILL);
  return (int)rc;
}

int fsync(int file) { return counted(syscall(SYS_fsync, file)); }
int fdatasync(int file) { return counted(syscall(SYS_fdatasync, file)); }
