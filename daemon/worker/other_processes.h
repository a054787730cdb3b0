/* Adds measurements about the other processes that had the device open when a timing pass began and when it ended:
 *   other_processes_before, other_processes_after   number of these processes; null, with the reason, if NVML does not list them
 *   other_process_PID_memory_bytes                   device memory of the process PID, the larger of the two readings; null if
 *                                                   unknown */
#ifndef RL_WORKER_OTHER_PROCESSES_H
#define RL_WORKER_OTHER_PROCESSES_H

#include "worker/pass.h"

int rl_other_processes_add_measurements(rl_pass_context *pass, const rl_other_processes *before, const rl_other_processes *after,
                                        rl_error *err);

#endif
