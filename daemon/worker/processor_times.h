/* The times of the processors on which this process may run, from /proc/stat. */
#ifndef RL_WORKER_PROCESSOR_TIMES_H
#define RL_WORKER_PROCESSOR_TIMES_H

#include "base/error.h"

/* Their number, and sums over them since the system was booted. Differences of two readings are meaningful. */
typedef struct rl_processor_times {
  int processors;           /* number */
  double elapsed_s;         /* busy and idle time */
  double other_processes_s; /* busy time less the CPU time of this process. Includes interrupts, and time that the hypervisor gave
                             * to other guests */
} rl_processor_times;

/* Reads the times. path: /proc/stat, or a file of a test. */
int rl_processor_times_read(const char *path, rl_processor_times *times, rl_error *err);
/* Returns the share of the elapsed time that other processes used between two readings, from 0 to 1; NAN: the times have not
 * advanced. */
double rl_processor_times_other_ratio(const rl_processor_times *before, const rl_processor_times *after);

#endif
