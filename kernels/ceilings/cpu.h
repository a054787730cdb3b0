/* The CPU engine of the workload "ceilings". */
#ifndef RL_CEILINGS_CPU_H
#define RL_CEILINGS_CPU_H

#include "workload.h"

extern const rl_engine rl_ceilings_cpu;

#endif
