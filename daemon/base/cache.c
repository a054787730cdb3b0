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
  LISTED_MOST = 4096 /* of more, the rest is for the next time */,
  MIB = 1 << 20,
  HOUR_S = 3600,
  DAY_S = 86400
};
static const int64_t SECOND_NS = 1000000000;

static const struct kind {
  const char *pattern;
  int64_t files, bytes, unused_s; /* at most; 0: any number */
} kinds[] = {
    {"*.rln", 512, 512 * MIB, 90 * DAY_S},                     /* compiled code */
    {"counters-????????????????", 256, 256 * MIB, 90 * DAY_S}, /* plans: which counters are collected in which passes */
    {".????????????????.*", 0, 0, HOUR_S},                     /* of either, before it got its name */
    {"counters-????????????????.*", 0, 0, HOUR_S},
};

typedef struct kept {
  char name[NAME_SIZE];
  int64_t used_ns, bytes;
} kept;

static int by_age(const void *a, const void *b) {
  int64_t left = ((const kept *)a)->used_ns, right = ((const kept *)b)->used_ns;
  return (left > right) - (left < right);
}

static size_t list(DIR *folder, const char *pattern, kept *files) {
  struct stat facts;
  size_t count = 0;
  rewinddir(folder);
  for (struct dirent *entry; count < LISTED_MOST && (entry = readdir(folder)) != NULL;) {
    kept *file = &files[count];
    if (fnmatch(pattern, entry->d_name, FNM_PERIOD) != 0 || snprintf(file->name, NAME_SIZE, "%s", entry->d_name) >= NAME_SIZE ||
        fstatat(dirfd(folder), file->name, &facts, AT_SYMLINK_NOFOLLOW) < 0)
      continue;
    file->used_ns = facts.st_mtim.tv_sec * SECOND_NS + facts.st_mtim.tv_nsec;
    file->bytes = facts.st_size;
    count++;
  }
  return count;
}

static void prune(DIR *folder, const struct kind *kind, int64_t now_ns, kept *files) {
  int64_t left = (int64_t)list(folder, kind->pattern, files), bytes = 0;
  for (int64_t i = 0; i < left; i++) bytes += files[i].bytes;
  qsort(files, (size_t)left, sizeof *files, by_age);
  for (const kept *file = files; left > 0; file++, left--) {
    bool many = kind->files > 0 && (left > kind->files || bytes > kind->bytes);
    if (!many && now_ns - file->used_ns <= kind->unused_s * SECOND_NS) return;
    (void)unlinkat(dirfd(folder), file->name, 0);
    bytes -= file->bytes;
  }
}

void rl_cache_prune(const char *path, int64_t now_ns) {
  DIR *folder = opendir(path);
  kept *files = folder != NULL ? calloc(LISTED_MOST, sizeof *files) : NULL;
  for (size_t i = 0; files != NULL && i < sizeof kinds / sizeof *kinds; i++) prune(folder, &kinds[i], now_ns, files);
  free(files);
  if (folder != NULL) closedir(folder);
}
