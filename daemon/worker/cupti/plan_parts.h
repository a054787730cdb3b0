/* What plans are put together from, by planning (plan.cu) and by reading a file (plan_file.cu). */
#ifndef RL_CUPTI_PLAN_PARTS_H
#define RL_CUPTI_PLAN_PARTS_H

#include "worker/cupti/plan.h"

/* A host object of CUPTI's range profiler, which the caller deinitialises: RL_CUPTI when it does not know the chip ("gh100"). */
int rl_plan_host_open(const char *chip, void **host, rl_error *err);
/* Without groups, and without reasons for any of `count` metrics. */
int rl_plan_new(size_t count, rl_counter_plan **plan, rl_error *err);
/* A group with room for `count` names and indices, the plan's; NULL when memory is out. Valid until the next is added. */
rl_group *rl_plan_add_group(rl_counter_plan *plan, size_t count, rl_error *err);

#endif
