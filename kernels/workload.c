/* Finds workloads by name, and checks parameters against the descriptions of engines (workload.h). The daemon links this file,
 * but no engine. */
#include "workload.h"

#include <string.h>

#include "base/fields.h"

const rl_workload *rl_workload_find(const char *name) {
  for (const rl_workload *const *workload = rl_workloads; *workload; workload++)
    if (strcmp((*workload)->name, name) == 0) return *workload;
  return NULL;
}

const char *rl_workload_engine_name(const rl_workload *workload, const void *params) {
  for (const rl_field *field = workload->fields; field->name != NULL; field++)
    if (field->type == RL_FIELD_TEXT && strcmp(field->name, "engine") == 0) return (const char *)params + field->offset;
  return "auto";
}

int rl_workload_supports(const rl_workload *workload, rl_device_kind device, const void *params, rl_error *err) {
  const char *name = rl_workload_engine_name(workload, params);
  bool is_auto = strcmp(name, "auto") == 0;
  if (workload->engines == NULL) return 0;
  rl_fail_at(err, "/engine", "no engine \"%s\" of %s runs on a %s", name, workload->name,
             device == RL_DEVICE_CPU ? "CPU" : "GPU");
  for (const rl_engine_description *const *engine = workload->engines; *engine != NULL; engine++)
    if ((*engine)->device == device && (is_auto || strcmp((*engine)->name, name) == 0) &&
        ((*engine)->supports == NULL || (*engine)->supports(params, err) >= 0))
      return 0;
  return -1;
}
