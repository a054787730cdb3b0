/* Implements plan_files.h: names, loads and saves the files, and prunes the cache. */
#include "worker/cupti/plan_files.h"

#include <cupti_version.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/clock.h"
#include "base/log.h"

enum { KEY_SIZE = 128, FILE_PATH_SIZE = PATH_MAX + 64 };

typedef struct plan_key {
  const char *chip, *const *names;
  size_t count;
  char text[KEY_SIZE]; /* chip and version of CUPTI */
} plan_key;

static plan_key make_key(const char *chip, const char *const *names, size_t count) {
  plan_key key = {.chip = chip, .names = names, .count = count};
  uint32_t cupti = 0;
  if (cuptiGetVersion(&cupti) != CUPTI_SUCCESS) cupti = 0;
  snprintf(key.text, sizeof key.text, "%s CUPTI %u", chip, cupti);
  return key;
}

static uint64_t fnv1a(uint64_t hash, const char *text) {
  for (; *text != '\0'; text++) hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
  return hash;
}

/* Formats the path of the plan's file; false when it is too long. */
static bool format_path(const plan_key *key, const char *folder, char path[FILE_PATH_SIZE]) {
  uint64_t hash = fnv1a(fnv1a(UINT64_C(0xcbf29ce484222325), key->text), "\n");
  for (size_t i = 0; i < key->count; i++) hash = fnv1a(fnv1a(hash, key->names[i]), "\n");
  return snprintf(path, FILE_PATH_SIZE, "%s/counters-%016llx", folder, (unsigned long long)hash) < FILE_PATH_SIZE;
}

static bool load(const plan_key *key, const char *folder, rl_counter_plan **plan) {
  char path[FILE_PATH_SIZE];
  rl_error why = {0};
  if (!format_path(key, folder, path) || rl_counter_plan_load(key->chip, key->names, key->count, key->text, path, plan, &why) < 0)
    return false;
  (void)utimensat(AT_FDCWD, path, NULL, 0); /* marks the file as used: rl_cache_prune removes the least recently used */
  return true;
}

static int save(const plan_key *key, const char *folder, const rl_counter_plan *plan, rl_error *err) {
  char path[FILE_PATH_SIZE];
  if (!format_path(key, folder, path)) return rl_fail(err, RL_INPUT, 0, "the path %s is too long", folder);
  return rl_counter_plan_save(plan, key->names, key->text, path, err);
}

static void save_in_cache(const plan_key *key, const char *folder, const rl_counter_plan *plan) {
  rl_error why = {0};
  (void)mkdir(folder, 0700);
  if (save(key, folder, plan, &why) < 0) rl_log(RL_LOG_WARNING, "cannot save a counter plan: %s", why.message);
  rl_cache_prune(folder, rl_realtime_ns());
}

static bool load_shipped(const plan_key *key, rl_counter_plan **plan) {
  char program[PATH_MAX], folder[FILE_PATH_SIZE];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (length < 0) return false;
  program[length] = '\0';
  return snprintf(folder, sizeof folder, "%s/../" RL_SHIPPED_PLANS_FOLDER "/%s", dirname(program), key->chip) <
             (int)sizeof folder &&
         load(key, folder, plan);
}

int rl_plan_files_open(const char *chip, const char *const *names, size_t count, rl_counter_plan **plan, rl_error *err) {
  const plan_key key = make_key(chip, names, count);
  const char *cache = getenv("ROOFLINED_CACHE_DIR");
  const bool has_cache = cache != NULL && cache[0] != '\0';
  if (count == 0) return rl_counter_plan_open(chip, names, count, plan, err);
  if (load_shipped(&key, plan) || (has_cache && load(&key, cache, plan))) return 0;
  if (rl_counter_plan_open(chip, names, count, plan, err) < 0) return -1;
  if (has_cache) save_in_cache(&key, cache, *plan);
  return 0;
}

int rl_plan_files_save(const char *folder, const char *chip, const char *const *names, const rl_counter_plan *plan,
                       rl_error *err) {
  const plan_key key = make_key(chip, names, plan->metric_count);
  return save(&key, folder, plan, err);
}
