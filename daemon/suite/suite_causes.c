/* Implements suite_causes.h. Reads the profiles of the suite run and of its baseline from the store, compares them with
 * analyze/regression_causes.h, and prints the causes as JSON. */
#include "suite/suite_causes.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/regression_causes.h"
#include "base/json_members.h"

/* A profile as analyze/regression_causes.h reads it, and the memory of its texts. */
typedef struct profile {
  rl_regression_run run;
  rl_regression_kernel *kernels;
  char **texts;
  size_t text_count;
  cJSON **metrics; /* JSON array with the metrics of each kernel, which owns the names of the metrics */
  size_t metrics_count;
} profile;

static int fail_memory(rl_error *err) { return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for the causes of a verdict"); }

static void clear_profile(profile *loaded) {
  for (size_t i = 0; i < loaded->run.kernel_count; i++) free((void *)loaded->kernels[i].metrics.items);
  for (size_t i = 0; i < loaded->text_count; i++) free(loaded->texts[i]);
  for (size_t i = 0; i < loaded->metrics_count; i++) cJSON_Delete(loaded->metrics[i]);
  free(loaded->kernels);
  free(loaded->texts);
  free(loaded->metrics);
}

/* Sets *text to a copy of the column's text, which the profile owns; to NULL if the column is NULL. */
static int keep_text(profile *loaded, rl_cursor *cursor, int column, const char **text, rl_error *err) {
  const char *value = rl_cursor_text(cursor, column);
  *text = NULL;
  if (value == NULL) return 0;
  char **grown = realloc(loaded->texts, (loaded->text_count + 1) * sizeof *grown);
  if (grown == NULL) return fail_memory(err);
  loaded->texts = grown;
  grown[loaded->text_count] = strdup(value);
  if (grown[loaded->text_count] == NULL) return fail_memory(err);
  *text = grown[loaded->text_count++];
  return 0;
}

static int read_metrics(profile *loaded, const char *text, rl_metric_values *values, rl_error *err) {
  cJSON *array = cJSON_Parse(text != NULL ? text : "[]"),
        **grown = realloc(loaded->metrics, (loaded->metrics_count + 1) * sizeof *grown);
  if (array == NULL || grown == NULL) {
    cJSON_Delete(array);
    return fail_memory(err);
  }
  loaded->metrics = grown;
  grown[loaded->metrics_count++] = array;
  size_t count = (size_t)cJSON_GetArraySize(array), used = 0;
  rl_metric_value *items = calloc(count + 1, sizeof *items);
  if (items == NULL) return fail_memory(err);
  const cJSON *pair;
  cJSON_ArrayForEach (pair, array)
    items[used++] =
        (rl_metric_value){cJSON_GetStringValue(cJSON_GetArrayItem(pair, 0)), cJSON_GetArrayItem(pair, 1)->valuedouble, NULL};
  rl_metric_values_sort(items, used);
  *values = (rl_metric_values){items, used};
  return 0;
}

static int add_kernel(rl_cursor *cursor, profile *loaded, rl_error *err) {
  rl_regression_kernel *grown = realloc(loaded->kernels, (loaded->run.kernel_count + 1) * sizeof *grown);
  if (grown == NULL) return fail_memory(err);
  loaded->kernels = grown;
  rl_regression_kernel *kernel = &grown[loaded->run.kernel_count++];
  *kernel = (rl_regression_kernel){.launches = rl_cursor_integer(cursor, 3),
                                   .total_us = rl_cursor_real(cursor, 4),
                                   .registers_per_thread = rl_cursor_real(cursor, 6),
                                   .static_shared_bytes = rl_cursor_real(cursor, 7),
                                   .dynamic_shared_bytes = rl_cursor_real(cursor, 8),
                                   .theoretical_occupancy_ratio = rl_cursor_real(cursor, 9)};
  for (int i = 0; i < 3; i++) {
    kernel->grid[i] = rl_cursor_integer(cursor, 10 + i);
    kernel->block[i] = rl_cursor_integer(cursor, 13 + i);
  }
  if (!isfinite(kernel->total_us)) kernel->total_us = 0;
  if (keep_text(loaded, cursor, 0, &kernel->name, err) < 0 || keep_text(loaded, cursor, 1, &kernel->launch, err) < 0 ||
      keep_text(loaded, cursor, 2, &kernel->phase, err) < 0 || keep_text(loaded, cursor, 5, &kernel->code_sha256, err) < 0)
    return -1;
  return read_metrics(loaded, rl_cursor_text(cursor, 16), &kernel->metrics, err);
}

static int read_kernels(rl_store *store, int64_t run_id, profile *loaded, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *name;
  int found;
  if (rl_store_query(store, RL_QUERY_SUITE_PROFILE_KERNELS, RL_BINDINGS(RL_BIND_INTEGER(":run", run_id)), &cursor, err) < 0)
    return -1;
  while ((found = rl_cursor_next(cursor, &name, err)) > 0)
    if (add_kernel(cursor, loaded, err) < 0) return -1;
  loaded->run.kernels = loaded->kernels;
  return found;
}

static int read_conditions(rl_cursor *cursor, profile *loaded, rl_error *err) {
  rl_regression_run *run = &loaded->run;
  const struct {
    const char **text;
    int column;
  } texts[] = {{&run->engine, 1},        {&run->params, 2},    {&run->dataset_sha256, 3}, {&run->worker_commit, 4},
               {&run->driver, 5},        {&run->libraries, 6}, {&run->device_uuid, 7},    {&run->throttle_reasons, 12},
               {&run->posted_sha256, 13}};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (keep_text(loaded, cursor, texts[i].column, texts[i].text, err) < 0) return -1;
  run->total_us = rl_cursor_real(cursor, 8);
  run->sm_clock_mhz = rl_cursor_real(cursor, 9);
  run->memory_clock_mhz = rl_cursor_real(cursor, 10);
  run->power_w = rl_cursor_real(cursor, 11);
  return 0;
}

/* Reads a profile. Returns 1; returns 0 if the suite run has no profile of this job and variant. */
static int read_profile(rl_store *store, const rl_suite_profile *wanted, profile *loaded, rl_error *err) {
  int64_t run_id;
  {
    RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
    const char *id;
    if (rl_store_query(store, RL_QUERY_SUITE_PROFILE_RUN,
                       RL_BINDINGS(RL_BIND_INTEGER(":run", wanted->run), RL_BIND_TEXT(":role", wanted->role),
                                   RL_BIND_TEXT(":job_name", wanted->job_name), RL_BIND_TEXT(":variant", wanted->variant)),
                       &cursor, err) < 0)
      return -1;
    int found = rl_cursor_next(cursor, &id, err);
    if (found <= 0) return found;
    run_id = rl_cursor_integer(cursor, 0);
    if (read_conditions(cursor, loaded, err) < 0) return -1;
  }
  if (read_kernels(store, run_id, loaded, err) < 0) return -1;
  return loaded->run.kernel_count > 0;
}

static cJSON *cause_json(const rl_regression_cause *cause) {
  cJSON *item = cJSON_CreateObject();
  cJSON_AddStringToObject(item, "class", rl_regression_cause_class_name(cause->class_));
  rl_json_add_text(item, "subject", cause->subject);
  rl_json_add_number(item, "difference_us", cause->difference_us);
  rl_json_add_number(item, "share_ratio", cause->share_ratio);
  cJSON *evidence = cJSON_AddArrayToObject(item, "evidence");
  for (size_t i = 0; i < cause->evidence_count; i++) {
    cJSON *evidence_object = cJSON_CreateObject();
    cJSON_AddStringToObject(evidence_object, "property", cause->evidence[i].property);
    cJSON_AddStringToObject(evidence_object, "baseline", cause->evidence[i].baseline);
    cJSON_AddStringToObject(evidence_object, "current", cause->evidence[i].current);
    cJSON_AddItemToArray(evidence, evidence_object);
  }
  cJSON_AddStringToObject(item, "text", cause->text);
  return item;
}

static int print_causes(const rl_regression_causes *causes, char **json, rl_error *err) {
  cJSON *array = cJSON_CreateArray();
  for (size_t i = 0; i < causes->count; i++) cJSON_AddItemToArray(array, cause_json(&causes->items[i]));
  *json = cJSON_PrintUnformatted(array);
  cJSON_Delete(array);
  return *json != NULL ? 0 : fail_memory(err);
}

char *rl_suite_print_dropped_blocks(const rl_suite_series *blocks) {
  rl_regression_cause cause = {.class_ = RL_REGRESSION_DEVICE, .difference_us = NAN, .share_ratio = NAN, .evidence_count = 1};
  rl_regression_evidence *evidence = cause.evidence;
  snprintf(evidence->property, sizeof evidence->property, "dropped_blocks");
  snprintf(evidence->baseline, sizeof evidence->baseline, "unknown");
  snprintf(evidence->current, sizeof evidence->current, "%zu of %zu", blocks->dropped_count, blocks->count);
  snprintf(cause.text, sizeof cause.text, "%zu of %zu blocks were dropped: %.120s.%s%.160s%s", blocks->dropped_count,
           blocks->count, blocks->first_dropped_reason,
           blocks->other_processes[0] != '\0' ? " Other processes used the device: " : "", blocks->other_processes,
           blocks->other_processes[0] != '\0' ? "." : "");
  if (blocks->other_processes[0] != '\0') {
    evidence = &cause.evidence[cause.evidence_count++];
    snprintf(evidence->property, sizeof evidence->property, "other_processes");
    snprintf(evidence->baseline, sizeof evidence->baseline, "unknown");
    snprintf(evidence->current, sizeof evidence->current, "%.*s", RL_REGRESSION_VALUE_SIZE - 1, blocks->other_processes);
  }
  char *json = NULL;
  rl_error ignored;
  return print_causes(&(rl_regression_causes){.items = &cause, .count = 1}, &json, &ignored) < 0 ? NULL : json;
}

/* Returns whether a metric depends on times. Memory, accuracy and losses do not. */
static bool depends_on_time(const char *metric) {
  static const char *const parts[] = {"_ms", "_us", "_per_s", "launch"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (strstr(metric, parts[i]) != NULL) return true;
  return false;
}

/* If the metric is the time of a launch or of an epoch, sets the run's total time to the metric's median. The difference of the
 * total times is divided between the causes. */
static void set_total(const char *metric, double median, rl_regression_run *run) {
  run->is_kernel_time = strncmp(metric, "time_cold_us_", 13) == 0 || strncmp(metric, "time_warm_us_", 13) == 0;
  if (run->is_kernel_time) run->total_us = median;
  if (strncmp(metric, "epoch_ms_", 9) == 0) run->total_us = 1000 * median;
}

int rl_suite_find_causes(rl_store *store, const char *metric, const rl_suite_profile *baseline_profile,
                         const rl_suite_profile *current_profile, char **json, rl_error *err) {
  profile baseline = {0}, current = {0};
  rl_regression_causes causes = {0};
  *json = NULL;
  int found = depends_on_time(metric) ? read_profile(store, baseline_profile, &baseline, err) : 0;
  if (found > 0) found = read_profile(store, current_profile, &current, err);
  if (found > 0) {
    set_total(metric, baseline_profile->median, &baseline.run);
    set_total(metric, current_profile->median, &current.run);
    baseline.run.other_processes = baseline_profile->other_processes;
    current.run.other_processes = current_profile->other_processes;
  }
  int rc = found < 0 ? -1 : 0;
  if (found > 0) rc = rl_regression_causes_find(&baseline.run, &current.run, &causes, err);
  if (rc == 0) rc = print_causes(&causes, json, err);
  rl_regression_causes_clear(&causes);
  clear_profile(&baseline);
  clear_profile(&current);
  return rc;
}
