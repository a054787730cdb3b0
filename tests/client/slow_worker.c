/* A library for LD_PRELOAD. In a worker, it delays each reading of the monotonic clock, so that every measured time is longer by
 * the delay. The file $SLOW_WORKER_FILE contains the delay in µs; it is read when the worker starts. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long delay_us;

__attribute__((constructor)) static void read_delay(void) {
  char text[32] = "";
  const char *path = getenv("SLOW_WORKER_FILE");
  if (path == NULL || strstr(program_invocation_short_name, "worker") == NULL) return;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  if (read(file, text, sizeof text - 1) > 0) delay_us = strtol(text, NULL, 10);
  close(file);
}

int clock_gettime(clockid_t id, struct timespec *now) {
  const struct timespec delay = {.tv_sec = delay_us / 1000000, .tv_nsec = delay_us % 1000000 * 1000};
  if (id == CLOCK_MONOTONIC && delay_us > 0) syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &delay, NULL);
  return (int)syscall(SYS_clock_gettime, id, now);
}
