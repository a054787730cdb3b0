/* Stores the outcome of an attempt. While the database can't be written, the job is `storing`: the results wait in memory, and
 * after a second also in the device's spill file. */
#ifndef RL_SUPERVISOR_OUTCOME_H
#define RL_SUPERVISOR_OUTCOME_H

#include "supervisor/attempt.h"
#include "supervisor/spill.h"

/* Stores the outcome, with retries as long as the daemon runs. After a stop it tries for less than a second, then leaves results
 * in the spill file (NULL: none), from which the next start of the daemon stores them. Without it, that start queues the pass
 * again. */
void rl_outcome_store(rl_attempt *attempt, rl_attempt_result result, rl_spill *spill);

#endif
