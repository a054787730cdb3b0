/* Implements tuning_cache.h: entries in memory, and in a file that other processes also append to. */
#include "library/tuning_cache.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { MAX_ENTRIES = 4096, PREFIX_SIZE = 160, KEY_SIZE = 320 };

static struct entry {
  char key[KEY_SIZE]; /* "PREFIX KEY" */
  int64_t algorithm;
} entries[MAX_ENTRIES];
static int entry_count;
static char key_prefix[PREFIX_SIZE];
static long read_offset; /* bytes of the file that were read */
static bool file_is_readable;
static bool write_failed; /* an entry of this process could not be written to the file */

RL_DEFINE_CLEANUP(close_file, FILE *, fclose, NULL)

static int64_t find(const char *key) {
  for (int i = 0; i < entry_count; i++)
    if (strcmp(entries[i].key, key) == 0) return entries[i].algorithm;
  return -1;
}

/* Returns false when the key has an entry already, or the table is full. */
static bool add(const char *key, int64_t algorithm) {
  if (entry_count == MAX_ENTRIES || find(key) >= 0) return false;
  snprintf(entries[entry_count].key, KEY_SIZE, "%s", key);
  entries[entry_count++].algorithm = algorithm;
  return true;
}

static bool cache_path(char *path, size_t size) {
  const char *folder = getenv("ROOFLINED_CACHE_DIR");
  if (!folder || !*folder) return false;
  (void)mkdir(folder, 0700);
  return (size_t)snprintf(path, size, "%s/choices.tsv", folder) < size;
}

/* Reads the lines that any process has added to the file since the last call. Lines are "ALGORITHM<tab>PREFIX KEY"; other lines
 * are skipped. A last line without a newline is incomplete: a later call reads it. */
static void read_new_lines(void) {
  char path[4096], line[KEY_SIZE + 32];
  file_is_readable = false;
  if (!cache_path(path, sizeof path)) return;
  RL_CLEANUP(close_file) FILE *file = fopen(path, "ae+");
  if (!file || fseek(file, read_offset, SEEK_SET) != 0) return;
  file_is_readable = true;
  while (fgets(line, sizeof line, file)) {
    char *end, *newline = strchr(line, '\n');
    if (!newline && feof(file)) return;
    read_offset = ftell(file);
    long long algorithm = strtoll(line, &end, 10);
    if (!newline || end == line || *end != '\t' || algorithm < 0 || newline - end > KEY_SIZE) continue;
    *newline = '\0';
    add(end + 1, algorithm);
  }
}

/* Writes "PREFIX KEY" to full_key. Returns false when the text is too long. */
static bool write_full_key(const char *key, char full_key[KEY_SIZE]) {
  return snprintf(full_key, KEY_SIZE, "%s %s", key_prefix, key) < KEY_SIZE;
}

void rl_tuning_cache_set_key_prefix(const char *prefix) { snprintf(key_prefix, sizeof key_prefix, "%s", prefix); }

int64_t rl_tuning_cache_find(const char *key) {
  char full_key[KEY_SIZE];
  if (!write_full_key(key, full_key)) return -1;
  if (find(full_key) < 0) read_new_lines();
  return find(full_key);
}

void rl_tuning_cache_add(const char *key, int64_t algorithm) {
  char full_key[KEY_SIZE], path[4096], line[KEY_SIZE + 32];
  if (!write_full_key(key, full_key) || !add(full_key, algorithm) || !cache_path(path, sizeof path)) return;
  RL_CLEANUP(rl_close_descriptor) int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  int length = snprintf(line, sizeof line, "%" PRId64 "\t%s\n", algorithm, full_key);
  /* A single write, so that the lines of several processes do not mix. */
  if (file < 0 || write(file, line, (size_t)length) != length) write_failed = true;
}

bool rl_tuning_cache_is_persistent(void) {
  read_new_lines();
  return file_is_readable && !write_failed;
}

const char *rl_tuning_cache_nondeterminism_reason(void) {
  return rl_tuning_cache_is_persistent()
             ? NULL
             : "algorithms are chosen by timing and, without ROOFLINED_CACHE_DIR, kept for this process only";
}
