/* What code never does, since it has no instruction for it. Counters of such things are 0 and need not be counted. Only what a
 * listing shows beyond doubt: code that goes where the listing does not is taken to do everything. */
#ifndef RL_CODE_ABSENCE_H
#define RL_CODE_ABSENCE_H

#include "worker/code/disassembly.h"

/* Bit i: the i-th thing is absent. */
typedef uint32_t rl_absences;

rl_absences rl_absences_of_code(const rl_disassembly *function);
/* Each of which makes the metric 0; 0: none, it has to be counted. */
rl_absences rl_absences_that_decide(const char *metric);
/* "not counted: the code has no texture instruction"; for the first of them. */
const char *rl_absence_reason(rl_absences absences);

#endif
