/* What a profile asks for of the kernels of one step: hardware metrics by replay, facts of the launch and of the device,
 * curves. */
#ifndef RL_CUPTI_COUNTERS_H
#define RL_CUPTI_COUNTERS_H

#include "worker/cupti/collection.h"
#include "worker/cupti/occupancy.h"
#include "worker/cupti/replay.h"
#include "worker/cupti/source.h"
#include "worker/cupti/trace.h"
#include "workload.h"

typedef struct rl_listed {     /* the kernels of an instance's step, in the order in which they are issued */
  const rl_instance *instance; /* NULL: nobody's */
  struct rl_step_kernel *kernels;
  size_t count;
} rl_listed;

typedef struct rl_counters {
  int device_index;
  rl_trace *trace;
  const rl_occupancy *occupancy;
  rl_collections collections;
  rl_source *source; /* made at the first use */
  /* For the next count, until it is to be released: */
  rl_reservation *reserved; /* NULL: nothing */
  rl_listed listed;
} rl_counters;

/* rl_profiler_ops.count */
int rl_counters_count(rl_counters *counters, rl_instance *instance, const rl_profile *profile, const rl_observer *observer,
                      rl_records *records, char reason[RL_REASON_SIZE], rl_error *err);
void rl_counters_release(rl_counters *counters); /* rl_profiler_ops.release */
void rl_counters_close(rl_counters *counters);

#endif
