/* Executes the counters pass on CUDA. For the kernels of one step, collects hardware metrics (by replaying the step), launch and
 * device attributes, occupancy curves, and the data of instruction_profiler.h. */
#ifndef RL_CUPTI_COUNTERS_H
#define RL_CUPTI_COUNTERS_H

#include "worker/cupti/instruction_profiler.h"
#include "worker/cupti/occupancy.h"
#include "worker/cupti/prepared_profile.h"
#include "worker/cupti/range_profiler.h"
#include "worker/cupti/trace.h"
#include "workload.h"

typedef struct rl_kernel_list { /* the kernels of an instance's step, in the order in which they were issued */
  const rl_instance *instance;  /* instance whose launches are listed; NULL: the list is empty */
  struct rl_step_kernel *kernels;
  size_t count;
} rl_kernel_list;

typedef struct rl_counters {
  int device_index;
  rl_trace *trace;
  const rl_device_limits *device_limits;
  rl_prepared_profiles prepared_profiles;
  rl_instruction_profiler *instruction_profiler; /* opened by the first collection */
  /* Kept for the next collection of the same instance, until rl_counters_reset: */
  rl_range_profiler *range_profiler; /* NULL before the first collection */
  rl_kernel_list kernel_list;
} rl_counters;

/* Implements rl_profiler_ops.collect_counters. */
int rl_counters_collect(rl_counters *counters, rl_instance *instance, const rl_profile_options *profile_options,
                        const rl_observer *observer, rl_records *records, char reason[RL_REASON_SIZE], rl_error *err);
/* Implements rl_profiler_ops.prepare_counters: loads CUPTI's host library, reads the topology of the links, and loads the two
 * plans of the set `full` for code without special instructions. */
void rl_counters_prepare(rl_counters *counters);
/* Implements rl_profiler_ops.release_counters: disables the profilers, so that other measurements and other processes
 * can use the hardware, and forgets the kernels of the step. */
void rl_counters_reset(rl_counters *counters);
void rl_counters_close(rl_counters *counters);

#endif
