/* Reads a run's workload, device and traced kernels, and makes the JSON of the groups of independent launches. */
#include "api/step_launches.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_members.h"

void rl_step_launches_clear(rl_step_launches *launches) {
  free(launches->kernels);
  *launches = (rl_step_launches){0};
}

static int read_kernels(rl_store *store, const rl_binding *run, rl_step_launches *launches, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *launch;
  int found;
  if (rl_store_query(store, RL_QUERY_TIMELINE_KERNELS, run, 1, &cursor, err) < 0) return -1;
  while ((found = rl_cursor_next(cursor, &launch, err)) > 0) {
    if (rl_array_reserve(&launches->kernels, launches->count, &launches->capacity, sizeof *launches->kernels, err) < 0) return -1;
    rl_traced_kernel *kernel = &launches->kernels[launches->count++];
    *kernel = (rl_traced_kernel){.executions = rl_cursor_real(cursor, 2),
                                 .total_us = rl_cursor_real(cursor, 3),
                                 .blocks = rl_cursor_real(cursor, 4),
                                 .block_threads = rl_cursor_real(cursor, 5),
                                 .occupancy_ratio = rl_cursor_real(cursor, 6)};
    snprintf(kernel->launch, sizeof kernel->launch, "%s", launch);
    snprintf(kernel->name, sizeof kernel->name, "%s", rl_cursor_text(cursor, 1));
  }
  return found;
}

RL_DEFINE_CLEANUP(free_params, void *, free, NULL)

/* Finds the independent launches of a workload with these parameters. Parameters that this version does not accept, as an older
 * version may have stored them, are a reason. */
static int find_launches(const rl_workload *workload, const char *params, const rl_device_capacity *capacity,
                         rl_step_launches *launches, rl_error *err) {
  RL_CLEANUP(free_params) void *decoded = calloc(1, workload->params_size);
  rl_independent_launches *found = &launches->found;
  rl_error parse_error = {0};
  if (decoded == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for parameters");
  workload->defaults(decoded);
  if (rl_fields_parse(workload->fields, params, strlen(params), decoded, workload->params_size, &parse_error) < 0)
    snprintf(found->reason, sizeof found->reason, "the run's parameters are of another version: %.64s", parse_error.message);
  else rl_independent_launches_find(launches->kernels, launches->count, workload, decoded, capacity, found);
  return 0;
}

static int find_in_run(rl_store *store, const rl_binding *run, rl_cursor *cursor, const rl_workload *workload,
                       rl_step_launches *launches, rl_error *err) {
  const rl_device_capacity capacity = {.multiprocessors = rl_cursor_real(cursor, 3),
                                       .multiprocessor_threads = rl_multiprocessor_threads(rl_cursor_text(cursor, 2)),
                                       .read_bytes_per_s = rl_cursor_real(cursor, 4)};
  if (read_kernels(store, run, launches, err) < 0) return -1;
  const bool has_blocks = launches->count > 0 && launches->kernels[0].blocks > 0;
  if (has_blocks) return find_launches(workload, rl_cursor_text(cursor, 1), &capacity, launches, err);
  snprintf(launches->found.reason, sizeof launches->found.reason, "%s",
           launches->count == 0 ? "the trace has no kernels" : "launches on a CPU have no blocks");
  return 0;
}

/* Reads kernels only of workloads that declare the data of their launches, because an imported trace can have 100,000 kernels. */
int rl_step_launches_read(rl_store *store, int64_t run_id, const char *incomplete_reason, rl_step_launches *launches,
                          rl_error *err) {
  const rl_binding run = RL_BIND_INTEGER(":run", run_id);
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  rl_independent_launches *found = &launches->found;
  const char *name;
  if (rl_store_query(store, RL_QUERY_TIMELINE_RUN, &run, 1, &cursor, err) < 0) return -1;
  const int rows = rl_cursor_next(cursor, &name, err);
  if (rows <= 0) return rows;
  const rl_workload *workload = launches->workload = rl_workload_find(name);
  if (incomplete_reason != NULL) snprintf(found->reason, sizeof found->reason, "%s", incomplete_reason);
  else if (workload == NULL)
    snprintf(found->reason, sizeof found->reason,
             "the trace was imported: it does not say which data its kernels read and write");
  else if (workload->launch_data == NULL) rl_independent_launches_find(NULL, 0, workload, NULL, NULL, found);
  else return find_in_run(store, &run, cursor, workload, launches, err);
  return 0;
}

/* --- JSON -------------------------------------------------------------------------------------------------------------- */

static cJSON *launch_json(const rl_step_launch *launch) {
  cJSON *object = cJSON_CreateObject();
  cJSON_AddStringToObject(object, "launch", launch->name);
  cJSON_AddStringToObject(object, "kernel", launch->kernel);
  cJSON_AddNumberToObject(object, "time_ns", round(1000 * launch->total_us));
  cJSON_AddNumberToObject(object, "blocks", launch->blocks);
  cJSON_AddNumberToObject(object, "resident_blocks", launch->resident_blocks);
  rl_json_add_number(object, "device_ratio", launch->device_ratio);
  rl_json_add_number(object, "memory_ratio", launch->memory_ratio);
  return object;
}

cJSON *rl_step_launches_json(const rl_step_launches *launches) {
  const rl_independent_launches *found = &launches->found;
  cJSON *object = cJSON_CreateObject(), *groups;
  rl_json_add_text(object, "reason", found->reason[0] != '\0' ? found->reason : NULL);
  if (found->reason[0] != '\0') {
    cJSON_AddNullToObject(object, "groups");
    return object;
  }
  groups = cJSON_AddArrayToObject(object, "groups");
  for (size_t g = 0; g < found->group_count; g++) {
    const rl_launch_group *group = &found->groups[g];
    cJSON *item = cJSON_CreateObject(), *list;
    cJSON_AddNumberToObject(item, "steps", found->steps);
    cJSON_AddNumberToObject(item, "time_ns", round(1000 * group->total_us));
    cJSON_AddNumberToObject(item, "concurrent_ns", round(1000 * group->concurrent_us));
    list = cJSON_AddArrayToObject(item, "launches");
    for (size_t i = 0; i < group->count; i++) cJSON_AddItemToArray(list, launch_json(&found->launches[group->first + i]));
    cJSON_AddItemToArray(groups, item);
  }
  return object;
}
