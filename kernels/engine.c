/* What every worker shares about engines and memory. Apart from workload.c, because the daemon links the definitions of
 * workloads without any engine. */
#include <errno.h>
#include <string.h>

#include "workload.h"

const char *const rl_purpose_names[] = {"dataset", "weights", "activations", "workspace", NULL};

void rl_memory_add(rl_memory *memory, rl_purpose purpose, size_t bytes) {
  memory->bytes[purpose] += bytes;
  memory->total_bytes += bytes;
  if (memory->bytes[purpose] > memory->peak_bytes[purpose]) memory->peak_bytes[purpose] = memory->bytes[purpose];
  if (memory->total_bytes > memory->peak_total_bytes) memory->peak_total_bytes = memory->total_bytes;
}

void rl_memory_remove(rl_memory *memory, rl_purpose purpose, size_t bytes) {
  memory->bytes[purpose] -= bytes;
  memory->total_bytes -= bytes;
}

int rl_device_cancelled(const rl_device *device, rl_error *err) {
  const rl_observer *observer = device->observer;
  bool cancelled = observer && observer->cancelled && observer->cancelled(observer->context);
  return cancelled ? rl_fail(err, RL_SYS, ECANCELED, "cancelled") : 0;
}

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
  if (any)
    rl_fail_at(err, "/engine", "no engine of this device does %s", workload);
  else
    rl_fail_at(err, "/engine", "engine \"%s\" does not exist on this device; use \"auto\"", name);
  return NULL;
}
