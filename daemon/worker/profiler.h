/* Interface of a device's profiler, which a worker uses in every pass except timing. The CPU's profiler is part of the worker
 * program. The GPU's profiler is rooflined-cupti.so, which only a worker in the profiled role opens, so that an unprofiled worker
 * never loads CUPTI. */
#ifndef RL_WORKER_PROFILER_H
#define RL_WORKER_PROFILER_H

#include "model/profile.h"
#include "model/records.h"
#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_profiler rl_profiler;

typedef struct rl_profiler_ops {
  /* Records the device's activity until trace_stop. trace_stop appends names, rows and four measurements to records:
   * activity_kernel_records, activity_records, activity_dropped_records, activity_zero_time_records. records NULL: discards the
   * trace. */
  int (*trace_start)(rl_profiler *profiler, rl_error *err);
  int (*trace_stop)(rl_profiler *profiler, rl_records *records, rl_error *err);
  /* Collects the selected metrics for the kernels of one step (instance->iteration.sequences[instance->step_sequence]) by
   * replay. Runs the sequences before the step once. Appends kernels, numbered in order of issue, and their metrics to records.
   * Restores what the step changes. Returns 0; -1 on error, with RL_INPUT when profile_options select no kernel; 1 when the
   * counters can't be collected on this device, with the reason (missing privilege, no such hardware). */
  int (*collect_counters)(rl_profiler *profiler, rl_instance *instance, const rl_profile_options *profile_options,
                          const rl_observer *observer, rl_records *records, char reason[RL_REASON_SIZE], rl_error *err);
  /* Releases the hardware counters that collect_counters keeps reserved for its next call with the same instance. Call before
   * opening or closing an instance and before any other measurement. NULL: this profiler reserves nothing. */
  void (*release_counters)(rl_profiler *profiler);
  /* Loads what the first collect_counters would load, without using the hardware's counters. Call it after the device is open.
   * Failures are ignored, because collect_counters then reports them. NULL: there is nothing to load. */
  void (*prepare_counters)(rl_profiler *profiler);
  /* Returns the theoretical occupancy of a launch (cuda_occupancy.h), 0 to 1; NAN when unknown. */
  double (*occupancy)(rl_profiler *profiler, const rl_activity_row *row);
  void (*close)(rl_profiler *profiler);
  /* Receives the host times of a launch. NULL: the profiler records them itself. */
  void (*add_span)(rl_profiler *profiler, const rl_span *span);
} rl_profiler_ops;

struct rl_profiler {
  const rl_profiler_ops *ops;
  rl_device *device;
};

/* Opens the device's profiler. Returns NULL and sets err on failure. Call before rl_device_open, because CUPTI must see the
 * creation of the context. The CPU worker links profiler_cpu.c. The CUDA worker links profiler_module.c, which calls the function
 * of the same name in rooflined-cupti.so. */
rl_profiler *rl_profiler_open(int device_index, rl_error *err);
typedef rl_profiler *(*rl_profiler_open_function)(int device_index, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
