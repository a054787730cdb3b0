/* Which other processes had the device open when a timing pass began and when it ended. Measurements:
 *
 *   other_processes_before, other_processes_after   their number; null with the reason where NVML does not tell
 *   other_process_PID_memory_bytes                  the memory of each, the larger of both readings; null: NVML does not know */
#ifndef RL_WORKER_OTHER_PROCESSES_H
#define RL_WORKER_OTHER_PROCESSES_H

#include "worker/pass.h"

int rl_other_processes_add_measurements(rl_pass_context *pass, const rl_other_processes *before, const rl_other_processes *after,
                                        rl_error *err);

#endif
