/* The key by which the history of a measurement finds comparable runs of a workload: the parameters that are not defaults. */
#ifndef RL_REQUEST_NONDEFAULT_H
#define RL_REQUEST_NONDEFAULT_H

#include "workload.h"

/* Returns compact JSON of the parameters that differ from the workload's defaults, with keys sorted at every level. The text of
 * a stored run stays the same when the workload gets a new parameter. malloc'ed, the caller frees it; returns NULL if memory is
 * exhausted. */
char *rl_nondefault_params(const rl_workload *workload, const void *params);

#endif
