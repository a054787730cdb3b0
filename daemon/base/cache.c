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
  MAX_LISTED = 4096 /* files in one pass; the next call sees the rest */,
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
    {".????????????????.*", 0, 0, HOUR_S},                     /* incomplete file of either kind */
    {"counters-????????????????.*", 0, 0, HOUR_S},
};

typedef struct cache_file {
  char name[NAME_SIZE];
  int64_t used_ns, bytes;
} cache_file;

static int by_age(const void *a, const void *b) {
  int64_t left = ((const cache_file *)a)->used_ns, right = ((const cache_file *)b)->used_ns;
  return (left > right) - (left < right);
}

static size_t list(DIR *folder, const char *pattern, cache_file *files) {
  struct stat facts;
  size_t count = 0;
  rewinddir(folder);
  for (struct dirent *entry; count < MAX_LISTED && (entry = readdir(folder)) != NULL;) {
    cache_file *file = &files[count];
    if (fnmatch(pattern, entry->d_name, FNM_PERIOD) != 0 || snprintf(file->name, NAME_SIZE, "%s", entry->d_name) >= NAME_SIZE ||
        fstatat(dirfd(folder), file->name, &facts, AT_SYMLINK_NOFOLLOW) < 0)
      continue;
    file->used_ns = facts.st_mtim.tv_sec * SECOND_NS + facts.st_mtim.tv_nsec;
    file->bytes = facts.st_size;
    count++;
  }
  return count;
}

static void prune(DIR *folder, const struct kind *kind, int64_t now_ns, cache_file *files) {
  int64_t left = (int64_t)list(folder, kind->pattern, files), bytes = 0;
  for (int64_t i = 0; i < left; i++) bytes += files[i].bytes;
  qsort(files, (size_t)left, sizeof *files, by_age);
  for (const cache_file *file = files; left > 0; file++, left--) {
    bool exceeds = kind->max_files > 0 && (left > kind->max_files || bytes > kind->max_bytes);
    if (!exceeds && now_ns - file->used_ns <= kind->max_unused_s * SECOND_NS) return;
    (void)unlinkat(dirfd(folder), file->name, 0);
    bytes -= file->bytes;
  }
}

void rl_cache_prune(const char *path, int64_t now_ns) {
  DIR *folder = opendir(path);
  cache_file *files = folder != NULL ? calloc(MAX_LISTED, sizeof *files) : NULL;
  for (size_t i = 0; files != NULL && i < sizeof kinds / sizeof *kinds; i++) prune(folder, &kinds[i], now_ns, files);
  free(files);
  if (folder != NULL) closedir(folder);
}
