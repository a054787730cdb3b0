/* Apart from workload.c, because the daemon links the definitions of workloads without any engine. */
#include <string.h>

#include "workload.h"

const rl_engine *rl_engine_find(const char *workload, const char *name, const void *params, rl_error *err) {
  rl_error why = {0};
  bool any = strcmp(name, "auto") == 0, known = false;
  for (const rl_engine *const *each = rl_engines; *each; each++) {
    const rl_engine *engine = *each;
    if (strcmp(engine->workload, workload) != 0 || (!any && strcmp(engine->name, name) != 0)) continue;
    known = true;
    if (engine->supports(params, &why) == 0 && !(any && engine->leaves && engine->leaves(params))) return engine;
  }
  if (known) {
    if (err) *err = why;
    return NULL;
  }
  if (any) rl_fail_at(err, "/engine", "no engine of this device does %s", workload);
  else rl_fail_at(err, "/engine", "engine \"%s\" does not exist on this device; use \"auto\"", name);
  return NULL;
}
