/* Which runs of a workload are alike, for the history of a measurement. */
#ifndef RL_REQUEST_NONDEFAULT_H
#define RL_REQUEST_NONDEFAULT_H

#include "workload.h"

/* Compact JSON of the parameters that differ from the workload's defaults, keys sorted at every level. Runs of a workload with
 * the same text are alike, even if one of them was stored before the workload had all of its parameters. malloc'ed, the caller
 * frees; NULL when memory is out. */
char *rl_nondefault_params(const rl_workload *workload, const void *params);

#endif
