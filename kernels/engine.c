/* Chooses among the engines that a worker links. The daemon links workload.c without this file. */
#include <string.h>

#include "workload.h"

int rl_engine_supports(const rl_engine *engine, const void *params, rl_error *err) {
  const rl_engine_description *description = engine->description;
  if (description->supports && description->supports(params, err) < 0) return -1;
  return engine->device_supports ? engine->device_supports(params, err) : 0;
}

const rl_engine *rl_engine_find(const char *workload, const char *name, const void *params, rl_error *err) {
  rl_error unsupported = {0};
  bool automatic = strcmp(name, "auto") == 0, known = false;
  for (const rl_engine *const *each = rl_engines; *each; each++) {
    const rl_engine_description *description = (*each)->description;
    if (strcmp(description->workload, workload) != 0 || (!automatic && strcmp(description->name, name) != 0)) continue;
    known = true;
    if (automatic && description->auto_skips && description->auto_skips(params)) continue;
    if (rl_engine_supports(*each, params, &unsupported) == 0) return *each;
  }
  if (known) {
    if (err) *err = unsupported;
    return NULL;
  }
  if (automatic) rl_fail_at(err, "/engine", "no engine of this device does %s", workload);
  else rl_fail_at(err, "/engine", "engine \"%s\" does not exist on this device; use \"auto\"", name);
  return NULL;
}
