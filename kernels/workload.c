#include "workload.h"

#include <string.h>

const rl_workload *rl_workload_find(const char *name) {
  for (const rl_workload *const *workload = rl_workloads; *workload; workload++)
    if (strcmp((*workload)->name, name) == 0) return *workload;
  return NULL;
}
