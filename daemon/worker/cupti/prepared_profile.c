/* Looks for a prepared profile in memory; if there is none, selects the metrics and opens their plan (plan_files.h). */
#include "worker/cupti/prepared_profile.h"

#include <cupti_profiler_target.h>
#include <cupti_target.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cupti/check.h"
#include "worker/cupti/plan_files.h"

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

static int compare_names(const void *name, const void *item) { return strcmp(name, *(const char *const *)item); }

size_t rl_prepared_profile_index(const rl_prepared_profile *prepared, const char *counter) {
  const char *const *found =
      bsearch(counter, prepared->counter_names, prepared->plan->metric_count, sizeof *prepared->counter_names, compare_names);
  return found != NULL ? (size_t)(found - prepared->counter_names) : prepared->plan->metric_count;
}

/* Lists the selection's counters, except those that `collected` has, and returns their number. */
static size_t list_counters(const rl_prepared_profile *collected, rl_prepared_profile *prepared) {
  size_t count = 0;
  for (size_t i = 0; i < prepared->selection.counter_count; i++) {
    const char *name = prepared->selection.items[i].name;
    if (collected == NULL || rl_prepared_profile_index(collected, name) == collected->plan->metric_count)
      prepared->counter_names[count++] = name;
  }
  return count;
}

static int prepare(rl_prepared_profile *prepared, int device_index, const rl_profile_options *profile_options,
                   rl_instruction_classes absent_classes, const rl_prepared_profile *collected, rl_error *err) {
  const char *chip = NULL;
  prepared->excludes_collected = collected != NULL;
  prepared->profile_options = *profile_options;
  prepared->absent_classes = absent_classes;
  if (rl_metric_selection_make(profile_options, absent_classes, &prepared->selection, err) < 0 ||
      read_chip(device_index, &chip, err) < 0 || rl_metric_selection_limit_to_chip(&prepared->selection, chip, err) < 0)
    return -1;
  prepared->counter_names = calloc(prepared->selection.counter_count + 1, sizeof *prepared->counter_names);
  if (prepared->counter_names == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for metrics");
  return rl_plan_files_open(chip, prepared->counter_names, list_counters(collected, prepared), &prepared->plan, err);
}

static bool matches(const rl_prepared_profile *prepared, const rl_profile_options *profile_options,
                    rl_instruction_classes absent_classes, bool excludes_collected) {
  return prepared->plan != NULL && prepared->excludes_collected == excludes_collected &&
         prepared->profile_options.sections == profile_options->sections && prepared->absent_classes == absent_classes &&
         strcmp(prepared->profile_options.metrics, profile_options->metrics) == 0;
}

int rl_prepared_profile_find(rl_prepared_profiles *cache, int device_index, const rl_profile_options *profile_options,
                             rl_instruction_classes absent_classes, const rl_prepared_profile *collected,
                             const rl_prepared_profile **found, rl_error *err) {
  rl_prepared_profile *oldest = &cache->items[0];
  for (rl_prepared_profile *item = cache->items; item < cache->items + RL_MAX_PREPARED_PROFILES; item++) {
    if (matches(item, profile_options, absent_classes, collected != NULL)) {
      item->last_use = ++cache->use_count;
      *found = item;
      return 0;
    }
    if (item->last_use < oldest->last_use) oldest = item;
  }
  clear(oldest);
  if (prepare(oldest, device_index, profile_options, absent_classes, collected, err) < 0) {
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
