/* Stores the outcome of an attempt: the results, and the new state of the pass. The device runner calls this module in its
 * thread after each attempt. While the database can't be written, the job has the state `storing`; the results wait in memory,
 * and after one second also in the device's spill file. */
#ifndef RL_SUPERVISOR_OUTCOME_H
#define RL_SUPERVISOR_OUTCOME_H

#include "supervisor/attempt.h"
#include "supervisor/spill.h"

/* Stores the outcome, and retries as long as the daemon runs. When the daemon stops, retries for less than a second and then
 * leaves the results in the spill file; the daemon stores them from this file when it starts again. spill: NULL if there is no
 * spill file. The results are then lost when the daemon stops, and the pass is executed again after the daemon's next start. */
void rl_outcome_store(rl_attempt *attempt, rl_attempt_result result, rl_spill *spill);

#endif
