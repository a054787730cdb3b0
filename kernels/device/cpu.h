/* Memory, cores and threads of the host. */
#ifndef RL_DEVICE_CPU_H
#define RL_DEVICE_CPU_H

#include <stddef.h>

#include "base/error.h"

/* Returns the size of the physical memory. */
size_t rl_cpu_memory_bytes(void);
/* Returns the number of cores in this process's affinity mask. */
int rl_cpu_cores(void);
/* Returns the environment variable ROOFLINED_THREADS; when it is 0 or unset, rl_cpu_cores(). Returns -1 with err when it is not a
 * number from 0 to 1024. */
int rl_cpu_threads(rl_error *err);

#endif
