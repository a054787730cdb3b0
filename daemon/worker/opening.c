/* Implements opening.h. A worker locks its counter, increments it, and then looks at the other counter and its lock. If two
 * workers open the device at the same time, each finds that the other counter is locked at the begin, or that it has changed at
 * the end. */
#include "worker/opening.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct flock slot_lock(int slot) {
  return (struct flock){
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot * (off_t)sizeof(int64_t), .l_len = sizeof(int64_t)};
}

/* Reads a counter; 0 if it was never written. */
static int read_count(int file, int slot, int64_t *count) {
  *count = 0;
  return pread(file, count, sizeof *count, slot * (off_t)sizeof *count) < 0 ? -1 : 0;
}

static int increment_count(int file, int slot) {
  int64_t count;
  if (read_count(file, slot, &count) < 0) return -1;
  count++;
  return pwrite(file, &count, sizeof count, slot * (off_t)sizeof count) == (ssize_t)sizeof count ? 0 : -1;
}

static void set_overlap(rl_opening *opening) {
  snprintf(opening->reason, sizeof opening->reason, "another worker of rooflined opened the device at the same time");
}

/* Returns -1 and sets errno if the file can't be used. */
static int begin(rl_opening *opening, const char *path) {
  struct flock own_lock = slot_lock(opening->slot), other_lock = slot_lock(1 - opening->slot);
  opening->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (opening->file < 0 || fcntl(opening->file, F_SETLK, &own_lock) < 0 || increment_count(opening->file, opening->slot) < 0 ||
      read_count(opening->file, 1 - opening->slot, &opening->other_count) < 0 || fcntl(opening->file, F_GETLK, &other_lock) < 0)
    return -1;
  if (other_lock.l_type != F_UNLCK) set_overlap(opening);
  return 0;
}

rl_opening rl_opening_begin(const char *device, const char *role) {
  rl_opening opening = {.file = -1, .slot = strcmp(role, "profiled") == 0};
  const char *folder = getenv("ROOFLINED_CACHE_DIR");
  char path[4096];
  if (folder == NULL || folder[0] == '\0') return opening;
  (void)mkdir(folder, 0700);
  snprintf(path, sizeof path, "%s/opening-%s", folder, device);
  if (begin(&opening, path) < 0)
    snprintf(opening.reason, sizeof opening.reason, "can't tell whether another worker opened the device at the same time: %s",
             strerror(errno));
  return opening;
}

void rl_opening_end(rl_opening *opening) {
  int64_t count;
  if (opening->file < 0) return;
  if (opening->reason[0] == '\0' && (read_count(opening->file, 1 - opening->slot, &count) < 0 || count != opening->other_count))
    set_overlap(opening);
  close(opening->file);
  opening->file = -1;
}
