#include "nvrtc/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/cleanup.h"
#include "base/clock.h"

static const char ending[] = ".rln"; /* as base/cache.c knows it */
enum { LARGEST = 512 << 20 };

/* The parts with their NULs, one after the other, so that no two lists of them look the same. */
int rl_nvrtc_cache_key(const char *version, char *const *words, const char *code, size_t length, char key[RL_SHA256_SIZE],
                       rl_error *err) {
  size_t size = strlen(version) + 1 + length, used = 0;
  for (char *const *word = words; *word != NULL; word++) size += strlen(*word) + 1;
  rl_auto(rl_free_text) char *all = malloc(size);
  if (all == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the name of compiled code");
  used += (size_t)snprintf(all, size, "%s", version) + 1;
  for (char *const *word = words; *word != NULL; word++) used += (size_t)snprintf(all + used, size - used, "%s", *word) + 1;
  memcpy(all + used, code, length);
  rl_sha256(all, size, key);
  return 0;
}

static int open_folder(const char *folder, bool make) {
  if (make) (void)mkdir(folder, 0700);
  return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void file_name(const char *key, char name[RL_SHA256_SIZE + sizeof ending]) {
  snprintf(name, RL_SHA256_SIZE + sizeof ending, "%s%s", key, ending);
}

int rl_nvrtc_cache_get(const char *folder, const char *key, unsigned char **bytes, size_t *size) {
  char name[RL_SHA256_SIZE + sizeof ending];
  struct stat facts;
  file_name(key, name);
  rl_auto(rl_close_descriptor) int within = open_folder(folder, false);
  rl_auto(rl_close_descriptor) int file = within >= 0 ? openat(within, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
  if (file < 0 || fstat(file, &facts) < 0 || !S_ISREG(facts.st_mode) || facts.st_size > LARGEST) return -1;
  unsigned char *read = malloc((size_t)facts.st_size + 1);
  if (read == NULL || pread(file, read, (size_t)facts.st_size, 0) != facts.st_size) {
    free(read);
    return -1;
  }
  (void)futimens(file, NULL); /* used now */
  *bytes = read;
  *size = (size_t)facts.st_size;
  return 0;
}

/* --- writing ----------------------------------------------------------------------------------------------------------- */

void rl_nvrtc_cache_put(const char *folder, const char *key, const void *bytes, size_t size) {
  char name[RL_SHA256_SIZE + sizeof ending], early[48];
  file_name(key, name);
  snprintf(early, sizeof early, ".%.16s.%d", key, (int)getpid());
  rl_auto(rl_close_descriptor) int within = open_folder(folder, true);
  rl_auto(rl_close_descriptor) int file =
      within >= 0 ? openat(within, early, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
  if (file < 0) return;
  if (write(file, bytes, size) == (ssize_t)size && fsync(file) == 0 && renameat(within, early, within, name) == 0)
    rl_cache_prune(folder, rl_now_ns());
  else (void)unlinkat(within, early, 0);
}
