#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "library/tune.h"

enum { MOST_CHOICES = 512, SCOPE_SIZE = 160, KEY_SIZE = 320 };

static struct choice {
  char key[KEY_SIZE]; /* scope, space, key */
  int64_t what;
} choices[MOST_CHOICES];
static int choice_count;
static char current[SCOPE_SIZE];
static bool loaded, lasts;

RL_DEFINE_CLEANUP(close_file, FILE *, fclose, NULL)

static int64_t find(const char *key) {
  for (int i = 0; i < choice_count; i++)
    if (strcmp(choices[i].key, key) == 0) return choices[i].what;
  return -1;
}

static void add(const char *key, int64_t what) {
  if (choice_count == MOST_CHOICES || find(key) >= 0) return; /* the first one holds */
  snprintf(choices[choice_count].key, KEY_SIZE, "%s", key);
  choices[choice_count++].what = what;
}

static bool choices_path(char *path, size_t size) {
  const char *folder = getenv("ROOFLINED_CACHE_DIR");
  if (!folder || !*folder) return false;
  (void)mkdir(folder, 0700);
  return (size_t)snprintf(path, size, "%s/choices.tsv", folder) < size;
}

/* Lines are "choice TAB scope SPACE key"; what is not such a line is passed over. */
static void load(void) {
  char path[4096], line[KEY_SIZE + 32];
  loaded = true;
  if (!choices_path(path, sizeof path)) return;
  rl_auto(close_file) FILE *file = fopen(path, "ae+");
  if (!file) return;
  lasts = true;
  rewind(file);
  while (fgets(line, sizeof line, file)) {
    char *end, *newline = strchr(line, '\n');
    long long what = strtoll(line, &end, 10);
    if (!newline || end == line || *end != '\t' || what < 0 || newline - end > KEY_SIZE) continue;
    *newline = '\0';
    add(end + 1, what);
  }
}

static bool full_key(const char *key, char *full) {
  if (!loaded) load();
  return snprintf(full, KEY_SIZE, "%s %s", current, key) < KEY_SIZE;
}

void rl_tune_scope(const char *scope) { snprintf(current, sizeof current, "%s", scope); }

int64_t rl_tune_recall(const char *key) {
  char full[KEY_SIZE];
  return full_key(key, full) ? find(full) : -1;
}

void rl_tune_remember(const char *key, int64_t what) {
  char full[KEY_SIZE], path[4096], line[KEY_SIZE + 32];
  if (!full_key(key, full) || find(full) >= 0) return;
  add(full, what);
  if (!choices_path(path, sizeof path)) return;
  rl_auto(rl_close_descriptor) int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  int length = snprintf(line, sizeof line, "%" PRId64 "\t%s\n", what, full);
  if (file < 0 || write(file, line, (size_t)length) != length) lasts = false; /* one write, so lines don't mix */
}

bool rl_tune_lasts(void) {
  if (!loaded) load();
  return lasts;
}

const char *rl_tune_note(void) {
  return rl_tune_lasts() ? NULL : "algorithms are chosen by timing and, without ROOFLINED_CACHE_DIR, kept for this process alone";
}
