#include "worker/cupti/collection.h"

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
#include "worker/cupti/result.h"

static void clear(rl_collection *collection) {
  rl_counter_plan_close(collection->plan);
  rl_wanted_clear(&collection->wanted);
  free(collection->counters);
  *collection = (rl_collection){0};
}

static int chip_of(int device_index, const char **name, rl_error *err) {
  CUpti_Profiler_Initialize_Params start = {CUpti_Profiler_Initialize_Params_STRUCT_SIZE};
  CUpti_Device_GetChipName_Params chip = {CUpti_Device_GetChipName_Params_STRUCT_SIZE};
  chip.deviceIndex = (size_t)device_index;
  if (rl_cupti_check(cuptiProfilerInitialize(&start), "cuptiProfilerInitialize", err) != 0 ||
      rl_cupti_check(cuptiDeviceGetChipName(&chip), "cuptiDeviceGetChipName", err) != 0)
    return -1;
  *name = chip.pChipName;
  return 0;
}

/* --- plans that are kept in files -------------------------------------------------------------------------------------- */

static uint64_t hash(uint64_t so_far, const char *text) { /* FNV-1a */
  for (; *text != '\0'; text++) so_far = (so_far ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
  return so_far;
}

static void key_of(const char *chip, char *key, size_t size) {
  int driver = 0;
  uint32_t cupti = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || cuptiGetVersion(&cupti) != CUPTI_SUCCESS) cupti = 0;
  snprintf(key, size, "%s driver %d CUPTI %u", chip, driver, cupti);
}

/* false: there is no room for it. */
static bool path_of(const rl_collection *collection, const char *folder, const char *key, char *path, size_t size) {
  uint64_t of_names = hash(hash(UINT64_C(0xcbf29ce484222325), key), "\n");
  for (size_t i = 0; i < collection->wanted.counters; i++) of_names = hash(hash(of_names, collection->counters[i]), "\n");
  return (size_t)snprintf(path, size, "%s/counters-%016llx", folder, (unsigned long long)of_names) < size;
}

static void keep_plan(const rl_collection *collection, const char *folder, const char *key, const char *path) {
  rl_error why = {0};
  (void)mkdir(folder, 0700);
  if (rl_counter_plan_save(collection->plan, collection->counters, key, path, &why) != 0)
    rl_log(RL_LOG_WARNING, "can't keep a counter plan: %s", why.message);
  rl_cache_prune(folder, rl_now_ns());
}

static int make_plan(rl_collection *collection, const char *chip, rl_error *err) {
  char key[256], path[4352];
  rl_error why = {0};
  size_t count = collection->wanted.counters;
  const char *folder = getenv("ROOFLINED_CACHE_DIR");
  key_of(chip, key, sizeof key);
  bool kept = folder != NULL && folder[0] != '\0' && path_of(collection, folder, key, path, sizeof path);
  if (kept && rl_counter_plan_load(chip, collection->counters, count, key, path, &collection->plan, &why) == 0) {
    (void)utimensat(AT_FDCWD, path, NULL, 0); /* used now */
    return 0;
  }
  if (rl_counter_plan_open(chip, collection->counters, count, &collection->plan, err) != 0) return -1;
  if (kept) keep_plan(collection, folder, key, path);
  return 0;
}

/* --- the few that are kept in memory ----------------------------------------------------------------------------------- */

static int make(rl_collection *collection, int device_index, const rl_profile *profile, rl_absences absent, rl_error *err) {
  const char *chip = NULL;
  collection->profile = *profile;
  collection->absent = absent;
  if (rl_wanted_make(profile, absent, &collection->wanted, err) != 0 || chip_of(device_index, &chip, err) != 0 ||
      rl_wanted_limit_to_chip(&collection->wanted, chip, err) != 0)
    return -1;
  collection->counters = calloc(collection->wanted.counters + 1, sizeof *collection->counters);
  if (collection->counters == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for metrics");
  for (size_t i = 0; i < collection->wanted.counters; i++) collection->counters[i] = collection->wanted.items[i].name;
  return make_plan(collection, chip, err);
}

static bool is_of(const rl_collection *collection, const rl_profile *profile, rl_absences absent) {
  return collection->plan != NULL && collection->profile.sections == profile->sections && collection->absent == absent &&
         strcmp(collection->profile.metrics, profile->metrics) == 0;
}

int rl_collection_find(rl_collections *collections, int device_index, const rl_profile *profile, rl_absences absent,
                       const rl_collection **found, rl_error *err) {
  rl_collection *oldest = &collections->items[0];
  for (rl_collection *item = collections->items; item < collections->items + RL_COLLECTIONS; item++) {
    if (is_of(item, profile, absent)) {
      item->used = ++collections->uses;
      *found = item;
      return 0;
    }
    if (item->used < oldest->used) oldest = item;
  }
  clear(oldest);
  if (make(oldest, device_index, profile, absent, err) != 0) {
    clear(oldest);
    return -1;
  }
  oldest->used = ++collections->uses;
  *found = oldest;
  return 0;
}

void rl_collections_close(rl_collections *collections) {
  for (size_t i = 0; i < RL_COLLECTIONS; i++) clear(&collections->items[i]);
}
