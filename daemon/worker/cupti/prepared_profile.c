/* Looks for a plan in memory, then in a file of $ROOFLINED_CACHE_DIR, and makes one only if both lack it. A file's name is a hash
 * of the chip, the versions of driver and CUPTI, and the names of the counters. */
#include "worker/cupti/prepared_profile.h"

#include <cuda_runtime_api.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>
#include <cupti_version.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cache.h"
#include "base/clock.h"
#include "base/log.h"
#include "worker/cupti/check.h"

static void clear(rl_prepared_profile *prepared) {
  rl_counter_plan_close(prepared->plan);
  rl_metric_selection_clear(&prepared->selection);
  free(prepared->counter_names);
  *prepared = (rl_prepared_profile){0};
}

static int read_chip(int device_index, const char **name, rl_error *err) {
  CUpti_Profiler_Initialize_Params start = {CUpti_Profiler_Initialize_Params_STRUCT_SIZE};
  CUpti_Device_GetChipName_Params chip = {CUpti_Device_GetChipName_Params_STRUCT_SIZE};
  chip.deviceIndex = (size_t)device_index;
  if (rl_cupti_check(cuptiProfilerInitialize(&start), "cuptiProfilerInitialize", err) < 0 ||
      rl_cupti_check(cuptiDeviceGetChipName(&chip), "cuptiDeviceGetChipName", err) < 0)
    return -1;
  *name = chip.pChipName;
  return 0;
}

static uint64_t fnv1a(uint64_t hash, const char *text) {
  for (; *text != '\0'; text++) hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
  return hash;
}

static void format_key(const char *chip, char *key, size_t size) {
  int driver = 0;
  uint32_t cupti = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || cuptiGetVersion(&cupti) != CUPTI_SUCCESS) cupti = 0;
  snprintf(key, size, "%s driver %d CUPTI %u", chip, driver, cupti);
}

/* Formats the path of the plan's file; false when it is too long. */
static bool format_path(const rl_prepared_profile *prepared, const char *folder, const char *key, char *path, size_t size) {
  uint64_t hash = fnv1a(fnv1a(UINT64_C(0xcbf29ce484222325), key), "\n");
  for (size_t i = 0; i < prepared->selection.counter_count; i++) hash = fnv1a(fnv1a(hash, prepared->counter_names[i]), "\n");
  return (size_t)snprintf(path, size, "%s/counters-%016llx", folder, (unsigned long long)hash) < size;
}

static void save_plan(const rl_prepared_profile *prepared, const char *folder, const char *key, const char *path) {
  rl_error why = {0};
  (void)mkdir(folder, 0700);
  if (rl_counter_plan_save(prepared->plan, prepared->counter_names, key, path, &why) < 0)
    rl_log(RL_LOG_WARNING, "cannot save a counter plan: %s", why.message);
  rl_cache_prune(folder, rl_realtime_ns());
}

/* Loads the plan from its file, or makes and saves it. */
static int make_plan(rl_prepared_profile *prepared, const char *chip, rl_error *err) {
  char key[256], path[4352];
  rl_error why = {0};
  size_t count = prepared->selection.counter_count;
  const char *folder = getenv("ROOFLINED_CACHE_DIR");
  format_key(chip, key, sizeof key);
  bool has_cache = folder != NULL && folder[0] != '\0' && format_path(prepared, folder, key, path, sizeof path);
  if (has_cache && rl_counter_plan_load(chip, prepared->counter_names, count, key, path, &prepared->plan, &why) == 0) {
    (void)utimensat(AT_FDCWD, path, NULL, 0); /* rl_cache_prune removes the least recently used files */
    return 0;
  }
  if (rl_counter_plan_open(chip, prepared->counter_names, count, &prepared->plan, err) < 0) return -1;
  if (has_cache) save_plan(prepared, folder, key, path);
  return 0;
}

static int prepare(rl_prepared_profile *prepared, int device_index, const rl_profile_options *profile_options,
                   rl_instruction_classes absent_classes, rl_error *err) {
  const char *chip = NULL;
  prepared->profile_options = *profile_options;
  prepared->absent_classes = absent_classes;
  if (rl_metric_selection_make(profile_options, absent_classes, &prepared->selection, err) < 0 ||
      read_chip(device_index, &chip, err) < 0 || rl_metric_selection_limit_to_chip(&prepared->selection, chip, err) < 0)
    return -1;
  prepared->counter_names = calloc(prepared->selection.counter_count + 1, sizeof *prepared->counter_names);
  if (prepared->counter_names == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for metrics");
  for (size_t i = 0; i < prepared->selection.counter_count; i++) prepared->counter_names[i] = prepared->selection.items[i].name;
  return make_plan(prepared, chip, err);
}

static bool matches(const rl_prepared_profile *prepared, const rl_profile_options *profile_options,
                    rl_instruction_classes absent_classes) {
  return prepared->plan != NULL && prepared->profile_options.sections == profile_options->sections &&
         prepared->absent_classes == absent_classes && strcmp(prepared->profile_options.metrics, profile_options->metrics) == 0;
}

int rl_prepared_profile_find(rl_prepared_profiles *cache, int device_index, const rl_profile_options *profile_options,
                             rl_instruction_classes absent_classes, const rl_prepared_profile **found, rl_error *err) {
  rl_prepared_profile *oldest = &cache->items[0];
  for (rl_prepared_profile *item = cache->items; item < cache->items + RL_MAX_PREPARED_PROFILES; item++) {
    if (matches(item, profile_options, absent_classes)) {
      item->last_use = ++cache->use_count;
      *found = item;
      return 0;
    }
    if (item->last_use < oldest->last_use) oldest = item;
  }
  clear(oldest);
  if (prepare(oldest, device_index, profile_options, absent_classes, err) < 0) {
    clear(oldest);
    return -1;
  }
  oldest->last_use = ++cache->use_count;
  *found = oldest;
  return 0;
}

void rl_prepared_profiles_close(rl_prepared_profiles *cache) {
  for (size_t i = 0; i < RL_MAX_PREPARED_PROFILES; i++) clear(&cache->items[i]);
}
