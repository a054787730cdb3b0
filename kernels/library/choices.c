#include "library/choices.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { MAX_CHOICES = 4096, SCOPE_SIZE = 160, KEY_SIZE = 320 };

static struct choice {
  char key[KEY_SIZE]; /* "SCOPE KEY" */
  int64_t value;
} choices[MAX_CHOICES];
static int choice_count;
static char current_scope[SCOPE_SIZE];
static long read_offset; /* bytes of the file that were read */
static bool file_is_readable;
static bool write_failed; /* a choice of this process could not be written to the file */

RL_DEFINE_CLEANUP(close_file, FILE *, fclose, NULL)

static int64_t find(const char *key) {
  for (int i = 0; i < choice_count; i++)
    if (strcmp(choices[i].key, key) == 0) return choices[i].value;
  return -1;
}

/* Returns false when the key has a choice already, or the table is full. */
static bool add(const char *key, int64_t value) {
  if (choice_count == MAX_CHOICES || find(key) >= 0) return false;
  snprintf(choices[choice_count].key, KEY_SIZE, "%s", key);
  choices[choice_count++].value = value;
  return true;
}

static bool choices_path(char *path, size_t size) {
  const char *folder = getenv("ROOFLINED_CACHE_DIR");
  if (!folder || !*folder) return false;
  (void)mkdir(folder, 0700);
  return (size_t)snprintf(path, size, "%s/choices.tsv", folder) < size;
}

/* Reads the lines that any process has added to the file since the last call. Lines are "CHOICE<tab>SCOPE KEY"; other lines are
 * skipped. A last line without a newline is incomplete: a later call reads it. */
static void read_new_lines(void) {
  char path[4096], line[KEY_SIZE + 32];
  file_is_readable = false;
  if (!choices_path(path, sizeof path)) return;
  rl_auto(close_file) FILE *file = fopen(path, "ae+");
  if (!file || fseek(file, read_offset, SEEK_SET) != 0) return;
  file_is_readable = true;
  while (fgets(line, sizeof line, file)) {
    char *end, *newline = strchr(line, '\n');
    if (!newline && feof(file)) return;
    read_offset = ftell(file);
    long long value = strtoll(line, &end, 10);
    if (!newline || end == line || *end != '\t' || value < 0 || newline - end > KEY_SIZE) continue;
    *newline = '\0';
    add(end + 1, value);
  }
}

/* Writes "SCOPE KEY" to full. Returns false when the text is too long. */
static bool write_full_key(const char *key, char full[KEY_SIZE]) {
  return snprintf(full, KEY_SIZE, "%s %s", current_scope, key) < KEY_SIZE;
}

void rl_choices_set_scope(const char *scope) { snprintf(current_scope, sizeof current_scope, "%s", scope); }

int64_t rl_choices_find(const char *key) {
  char full[KEY_SIZE];
  if (!write_full_key(key, full)) return -1;
  if (find(full) < 0) read_new_lines();
  return find(full);
}

void rl_choices_add(const char *key, int64_t choice) {
  char full[KEY_SIZE], path[4096], line[KEY_SIZE + 32];
  if (!write_full_key(key, full) || !add(full, choice) || !choices_path(path, sizeof path)) return;
  rl_auto(rl_close_descriptor) int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  int length = snprintf(line, sizeof line, "%" PRId64 "\t%s\n", choice, full);
  if (file < 0 || write(file, line, (size_t)length) != length)
    write_failed = true; /* one write, so that lines of processes do not mix */
}

bool rl_choices_are_persistent(void) {
  read_new_lines();
  return file_is_readable && !write_failed;
}

const char *rl_choices_note(void) {
  return rl_choices_are_persistent()
             ? NULL
             : "algorithms are chosen by timing and, without ROOFLINED_CACHE_DIR, kept for this process only";
}
