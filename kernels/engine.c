/* Chooses among the engines that a worker links: by name, or the first that supports the parameters. The daemon does not link
 * this file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fields.h"
#include "workload.h"

int rl_engine_supports(const rl_engine *engine, const void *params, rl_error *err) {
  const rl_engine_description *description = engine->description;
  if (description->supports && description->supports(params, err) < 0) return -1;
  return engine->device_supports ? engine->device_supports(params, err) : 0;
}

const rl_engine *rl_engine_find(const char *workload, const char *name, const void *params, rl_error *err) {
  rl_error unsupported = {0};
  bool is_auto = strcmp(name, "auto") == 0, is_known = false;
  for (const rl_engine *const *each = rl_engines; *each; each++) {
    const rl_engine_description *description = (*each)->description;
    if (strcmp(description->workload, workload) != 0 || (!is_auto && strcmp(description->name, name) != 0)) continue;
    is_known = true;
    if (is_auto && description->skipped_by_auto && description->skipped_by_auto(params)) continue;
    if (rl_engine_supports(*each, params, &unsupported) == 0) return *each;
  }
  if (is_known) {
    if (err) *err = unsupported;
    return NULL;
  }
  if (is_auto) rl_fail_at(err, "/engine", "this device has no engine for the workload %s", workload);
  else rl_fail_at(err, "/engine", "engine \"%s\" does not exist on this device; use \"auto\"", name);
  return NULL;
}

/* Returns true when the device can run the engine with the workload's default parameters and at least one value of
 * multi_value_parameter. Overwrites *params. */
static bool device_supports_any_value(const rl_engine *engine, const rl_workload *workload, void *params) {
  const rl_field *choice = workload->fields;
  workload->defaults(params);
  if (!workload->multi_value_parameter) return engine->device_supports(params, NULL) == 0;
  while (strcmp(choice->name, workload->multi_value_parameter->field) != 0) choice++;
  for (int value = 0; choice->names[value]; value++) {
    memcpy((char *)params + choice->offset, &value, sizeof value);
    if (engine->device_supports(params, NULL) == 0) return true;
  }
  return false;
}

void rl_engines_list_unsupported(char *names, size_t size) {
  size_t used = 0;
  names[0] = '\0';
  for (const rl_engine *const *engine = rl_engines; *engine; engine++) {
    const rl_workload *workload = rl_workload_find((*engine)->description->workload);
    if (!(*engine)->device_supports || !workload || !workload->engines) continue;
    void *params = calloc(1, workload->params_size);
    if (params && !device_supports_any_value(*engine, workload, params) && used < size)
      used += (size_t)snprintf(names + used, size - used, "%s%s", used > 0 ? "\n" : "", (*engine)->description->name);
    free(params);
  }
}
