/* Implements cache.h. */
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

static const char extension[] = ".rln"; /* base/cache.c prunes files with this extension */
enum { MAX_FILE_BYTES = 512 << 20 };

/* Hashes version and words with their NULs, so that different lists of words never give the same bytes. */
int rl_nvrtc_cache_key(const char *version, char *const *words, const char *code, size_t length, char key[RL_SHA256_SIZE],
                       rl_error *err) {
  size_t size = strlen(version) + 1 + length, used = 0;
  for (char *const *word = words; *word != NULL; word++) size += strlen(*word) + 1;
  RL_CLEANUP(rl_free_text) char *text = malloc(size);
  if (text == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the key of compiled code");
  used += (size_t)snprintf(text, size, "%s", version) + 1;
  for (char *const *word = words; *word != NULL; word++) used += (size_t)snprintf(text + used, size - used, "%s", *word) + 1;
  memcpy(text + used, code, length);
  rl_sha256(text, size, key);
  return 0;
}

static int open_folder(const char *folder, bool create) {
  if (create) (void)mkdir(folder, 0700);
  return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void write_file_name(const char *key, char name[RL_SHA256_SIZE + sizeof extension]) {
  snprintf(name, RL_SHA256_SIZE + sizeof extension, "%s%s", key, extension);
}

int rl_nvrtc_cache_get(const char *folder, const char *key, unsigned char **bytes, size_t *size) {
  char name[RL_SHA256_SIZE + sizeof extension];
  struct stat status;
  write_file_name(key, name);
  RL_CLEANUP(rl_close_descriptor) int directory = open_folder(folder, false);
  RL_CLEANUP(rl_close_descriptor) int file = directory >= 0 ? openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
  if (file < 0 || fstat(file, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size > MAX_FILE_BYTES) return -1;
  unsigned char *contents = malloc((size_t)status.st_size + 1);
  if (contents == NULL || pread(file, contents, (size_t)status.st_size, 0) != status.st_size) {
    free(contents);
    return -1;
  }
  (void)futimens(file, NULL); /* base/cache.c prunes the least recently used files */
  *bytes = contents;
  *size = (size_t)status.st_size;
  return 0;
}

void rl_nvrtc_cache_put(const char *folder, const char *key, const void *bytes, size_t size) {
  char name[RL_SHA256_SIZE + sizeof extension], temporary_name[48];
  write_file_name(key, name);
  snprintf(temporary_name, sizeof temporary_name, ".%.16s.%d", key, (int)getpid());
  RL_CLEANUP(rl_close_descriptor) int directory = open_folder(folder, true);
  RL_CLEANUP(rl_close_descriptor)
  int file = directory >= 0 ? openat(directory, temporary_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
  if (file < 0) return;
  if (write(file, bytes, size) == (ssize_t)size && fsync(file) == 0 && renameat(directory, temporary_name, directory, name) == 0)
    rl_cache_prune(folder, rl_realtime_ns());
  else (void)unlinkat(directory, temporary_name, 0);
}
