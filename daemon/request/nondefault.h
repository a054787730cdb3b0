/* Prints the parameters of a run that are not defaults. The text is the key by which the history of a measurement and regression
 * suites find comparable runs of a workload. */
#ifndef RL_REQUEST_NONDEFAULT_H
#define RL_REQUEST_NONDEFAULT_H

#include "workload.h"

/* Returns compact JSON of the parameters that differ from the workload's defaults, with sorted keys at every level, so that the
 * text of a run stays the same when a later version adds a parameter to the workload. The caller frees the text; NULL if memory
 * is exhausted. */
char *rl_nondefault_params(const rl_workload *workload, const void *params);

#endif
