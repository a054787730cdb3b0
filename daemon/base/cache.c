/* Implements cache.h. A table lists the kinds of files and the limits of each kind. */
#include "base/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  NAME_SIZE = 80,
  MAX_LISTED = 4096, /* maximum number of files of a kind that one call examines; later calls examine the other files */
  MIB = 1 << 20,
  HOUR_S = 3600,
  DAY_S = 86400
};
static const int64_t SECOND_NS = 1000000000;

static const struct kind {
  const char *pattern;
  int64_t max_files, max_bytes; /* 0: no limit */
  int64_t max_unused_s;
} kinds[] = {
    {"*.rln", 512, 512 * MIB, 90 * DAY_S},                     /* compiled code */
    {"counters-????????????????", 256, 256 * MIB, 90 * DAY_S}, /* counter plans */
    {".????????????????.*", 0, 0, HOUR_S},                     /* incomplete files of both kinds */
    {"counters-????????????????.*", 0, 0, HOUR_S},
};

typedef struct cache_file {
  char name[NAME_SIZE];
  int64_t modified_ns, bytes;
} cache_file;

static int compare_modification_times(const void *a, const void *b) {
  int64_t left = ((const cache_file *)a)->modified_ns, right = ((const cache_file *)b)->modified_ns;
  return (left > right) - (left < right);
}

/* Lists at most MAX_LISTED files of the folder whose names match the pattern. Returns their number. */
static size_t list_files(DIR *folder, const char *pattern, cache_file *files) {
  struct stat status;
  size_t count = 0;
  rewinddir(folder);
  for (struct dirent *entry; count < MAX_LISTED && (entry = readdir(folder)) != NULL;) {
    cache_file *file = &files[count];
    if (fnmatch(pattern, entry->d_name, FNM_PERIOD) != 0 || snprintf(file->name, NAME_SIZE, "%s", entry->d_name) >= NAME_SIZE ||
        fstatat(dirfd(folder), file->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
      continue;
    file->modified_ns = status.st_mtim.tv_sec * SECOND_NS + status.st_mtim.tv_nsec;
    file->bytes = status.st_size;
    count++;
  }
  return count;
}

/* Deletes the least recently modified files of a kind until the kind is within its limits. files: buffer of MAX_LISTED
 * entries. */
static void prune_kind(DIR *folder, const struct kind *kind, int64_t now_ns, cache_file *files) {
  int64_t remaining = (int64_t)list_files(folder, kind->pattern, files), bytes = 0;
  for (int64_t i = 0; i < remaining; i++) bytes += files[i].bytes;
  qsort(files, (size_t)remaining, sizeof *files, compare_modification_times);
  for (const cache_file *file = files; remaining > 0; file++, remaining--) {
    bool exceeds = kind->max_files > 0 && (remaining > kind->max_files || bytes > kind->max_bytes);
    if (!exceeds && now_ns - file->modified_ns <= kind->max_unused_s * SECOND_NS) return;
    (void)unlinkat(dirfd(folder), file->name, 0);
    bytes -= file->bytes;
  }
}

void rl_cache_prune(const char *path, int64_t now_ns) {
  DIR *folder = opendir(path);
  cache_file *files = folder != NULL ? calloc(MAX_LISTED, sizeof *files) : NULL;
  for (size_t i = 0; files != NULL && i < sizeof kinds / sizeof *kinds; i++) prune_kind(folder, &kinds[i], now_ns, files);
  free(files);
  if (folder != NULL) closedir(folder);
}
