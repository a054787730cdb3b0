/* Functions that construct plans; used by counter_plan.cu (planning) and counter_plan_file.cu (loading a file). */
#ifndef RL_CUPTI_COUNTER_PLAN_INTERNAL_H
#define RL_CUPTI_COUNTER_PLAN_INTERNAL_H

#include "worker/cupti/counter_plan.h"

/* Creates a host object of CUPTI's range profiler; the caller deinitialises it. Returns -1 with RL_CUPTI when CUPTI does not
 * know the chip. */
int rl_profiler_host_open(const char *chip, void **host, rl_error *err);
/* Creates a plan for `count` metrics without groups and without reasons. */
int rl_counter_plan_new(size_t count, rl_counter_plan **plan, rl_error *err);
/* Adds a group with space for `count` names and indices. The plan owns it; the pointer is valid until the next group is added.
 * NULL and err when memory is out. */
rl_counter_group *rl_counter_plan_add_group(rl_counter_plan *plan, size_t count, rl_error *err);

#endif
