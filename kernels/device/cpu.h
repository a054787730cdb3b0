/* What the CPU's device and its facts both ask of the machine. */
#ifndef RL_DEVICE_CPU_H
#define RL_DEVICE_CPU_H

#include <stddef.h>

#include "base/error.h"

size_t rl_cpu_memory_bytes(void);
/* Cores that this process may use. */
int rl_cpu_cores(void);
/* ROOFLINED_THREADS; 0 or unset: all of them; -1 with err when the variable is no such number. */
int rl_cpu_threads(rl_error *err);

#endif
