/* Choices that were timed, kept on disk from process to process (tune.h). */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "library/tune.h"

enum { MOST_CHOICES = 4096, SCOPE_SIZE = 160, KEY_SIZE = 320 };

static struct choice {
  char key[KEY_SIZE]; /* scope, space, key */
  int64_t what;
} choices[MOST_CHOICES];
static int choice_count;
static char current[SCOPE_SIZE];
static long read_to;             /* in the file */
static bool readable, unwritten; /* the file; a choice that should be in it */

RL_DEFINE_CLEANUP(close_file, FILE *, fclose, NULL)

static int64_t find(const char *key) {
  for (int i = 0; i < choice_count; i++)
    if (strcmp(choices[i].key, key) == 0) return choices[i].what;
  return -1;
}

/* Whether it is new, and there was room. */
static bool add(const char *key, int64_t what) {
  if (choice_count == MOST_CHOICES || find(key) >= 0) return false; /* the first one holds */
  snprintf(choices[choice_count].key, KEY_SIZE, "%s", key);
  choices[choice_count++].what = what;
  return true;
}

static bool choices_path(char *path, size_t size) {
  const char *folder = getenv("ROOFLINED_CACHE_DIR");
  if (!folder || !*folder) return false;
  (void)mkdir(folder, 0700);
  return (size_t)snprintf(path, size, "%s/choices.tsv", folder) < size;
}

/* What the file has got since the last time, from this process or another. Lines are "choice TAB scope SPACE key"; what is not
 * such a line is passed over, and one that is not yet complete is left for later. */
static void load(void) {
  char path[4096], line[KEY_SIZE + 32];
  readable = false;
  if (!choices_path(path, sizeof path)) return;
  rl_auto(close_file) FILE *file = fopen(path, "ae+");
  if (!file || fseek(file, read_to, SEEK_SET) != 0) return;
  readable = true;
  while (fgets(line, sizeof line, file)) {
    char *end, *newline = strchr(line, '\n');
    if (!newline && feof(file)) return;
    read_to = ftell(file);
    long long what = strtoll(line, &end, 10);
    if (!newline || end == line || *end != '\t' || what < 0 || newline - end > KEY_SIZE) continue;
    *newline = '\0';
    add(end + 1, what);
  }
}

static bool full_key(const char *key, char *full) { return snprintf(full, KEY_SIZE, "%s %s", current, key) < KEY_SIZE; }

void rl_tune_scope(const char *scope) { snprintf(current, sizeof current, "%s", scope); }

int64_t rl_tune_recall(const char *key) {
  char full[KEY_SIZE];
  if (!full_key(key, full)) return -1;
  if (find(full) < 0) load();
  return find(full);
}

void rl_tune_remember(const char *key, int64_t what) {
  char full[KEY_SIZE], path[4096], line[KEY_SIZE + 32];
  if (!full_key(key, full) || !add(full, what) || !choices_path(path, sizeof path)) return;
  rl_auto(rl_close_descriptor) int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  int length = snprintf(line, sizeof line, "%" PRId64 "\t%s\n", what, full);
  if (file < 0 || write(file, line, (size_t)length) != length) unwritten = true; /* one write, so lines don't mix */
}

bool rl_tune_lasts(void) {
  load();
  return readable && !unwritten;
}

const char *rl_tune_note(void) {
  return rl_tune_lasts() ? NULL : "algorithms are chosen by timing and, without ROOFLINED_CACHE_DIR, kept for this process alone";
}
