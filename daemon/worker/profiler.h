/* What looks at a device from inside its worker, for the passes other than timing. The CPU's is part of its worker; the GPU's is
 * rooflined-cupti.so, opened only by a worker in the profiled role, so that the clean one never loads CUPTI. */
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
  /* Records everything the device does until trace_stop, which appends names and rows to records, and measurements:
   * activity_kernel_records, activity_records, activity_dropped_records, activity_zero_time_records. */
  int (*trace_start)(rl_profiler *profiler, rl_error *err);
  int (*trace_stop)(rl_profiler *profiler, rl_records *records, rl_error *err);
  /* What the profile asks for of kernels of one step (instance->iteration.sequences[instance->step_sequence]), by replay, after
   * what precedes the step has run once: appends kernels, whose ordinals count in the step, and metrics. What a step changes is
   * as it was before the step. 0; -1 on error, RL_INPUT when no kernel is the one asked for; 1 when the device can't do it,
   * *reason says why (privilege, no such hardware). */
  int (*count)(rl_profiler *profiler, rl_instance *instance, const rl_profile *profile, const rl_observer *observer,
               rl_records *records, char reason[RL_REASON_SIZE], rl_error *err);
  /* Counting may keep hardware reserved for the next count of the same instance: let go of it. Before an instance is opened or
   * closed, and before anything else measures. NULL: it keeps none. */
  void (*release)(rl_profiler *profiler);
  /* Upper limit of resident warps over what a launch can have, from its resources (cuda_occupancy.h); NAN when not known. */
  double (*occupancy)(rl_profiler *profiler, const rl_activity_row *row);
  void (*close)(rl_profiler *profiler);
  /* What the host saw of a launch while tracing, for a profiler that has no other source; NULL: not wanted. */
  void (*span)(rl_profiler *profiler, const rl_span *span);
} rl_profiler_ops;

struct rl_profiler {
  const rl_profiler_ops *ops;
  rl_device *device;
};

/* CPU: in profiler_cpu.c. CUDA: profiler_module.c, which calls the symbol that rooflined-cupti.so exports. Call before
 * rl_device_open where the library must see the context being made. NULL and err when it can't be had. */
rl_profiler *rl_profiler_open(int device_index, rl_error *err);
typedef rl_profiler *(*rl_profiler_open_function)(int device_index, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
