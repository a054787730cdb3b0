/* Memory, cores and threads of the host. */
#ifndef RL_DEVICE_CPU_H
#define RL_DEVICE_CPU_H

#include <stddef.h>

#include "base/error.h"

size_t rl_cpu_memory_bytes(void); /* physical memory */
/* Returns the number of cores in this process's affinity mask. */
int rl_cpu_cores(void);
/* Returns ROOFLINED_THREADS; when it is 0 or unset, rl_cpu_cores(). -1 with err when it is not a number from 0 to 1024. */
int rl_cpu_threads(rl_error *err);

#endif
