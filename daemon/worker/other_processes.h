/* Adds measurements about the other processes that used the device while a timing pass ran:
 *   other_processes_before, other_processes_after   number of processes that had the GPU open when the pass began and when it
 *                                                   ended; null, with the reason, if NVML does not list them
 *   other_process_PID_memory_bytes                   device memory of the process PID, the larger of the two readings; null if
 *                                                   unknown
 *   other_processes_cpu_time_ratio                  CPU time of other processes / elapsed time, both summed over the processors
 *                                                   that the worker may use; null, with the reason, if unknown and on a GPU
 *   other_processes_busy_processors                 this ratio * the number of these processors */
#ifndef RL_WORKER_OTHER_PROCESSES_H
#define RL_WORKER_OTHER_PROCESSES_H

#include "worker/pass.h"

int rl_other_processes_add_measurements(rl_pass_context *pass, const rl_other_processes *before, const rl_other_processes *after,
                                        rl_error *err);

#endif
