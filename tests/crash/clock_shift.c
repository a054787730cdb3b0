/* A library for LD_PRELOAD. It adds the number of seconds in the file $CLOCK_SHIFT_FILE to the program's wall clock, to test a
 * clock that is set while the program runs. The monotonic clock stays unchanged. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *now) {
  long rc = syscall(SYS_clock_gettime, id, now);
  const char *path = getenv("CLOCK_SHIFT_FILE");
  if (rc != 0 || id != CLOCK_REALTIME || path == NULL) return (int)rc;
  char text[32] = "";
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  if (read(file, text, sizeof text - 1) > 0) now->tv_sec += strtol(text, NULL, 10);
  close(file);
  return 0;
}
