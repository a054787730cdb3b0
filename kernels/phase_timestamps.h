/* Timestamps that a launch records between its phases (parts of a step: "conv1_forward", ...). A profiler shows only the whole
 * duration of a launch that runs all steps of an epoch; these timestamps show the phases inside it. */
#ifndef RL_KERNELS_PHASE_TIMESTAMPS_H
#define RL_KERNELS_PHASE_TIMESTAMPS_H

#include <stddef.h>
#include <stdint.h>

typedef struct rl_timed_phase {
  const char *name;       /* name of the launch that computes this phase in engines with one launch per phase: "conv1_forward" */
  const char *nvtx_range; /* NVTX range of that launch: "forward" */
} rl_timed_phase;

/* The timestamps of one execution of the launch, in nanoseconds of a clock with an arbitrary origin. */
typedef struct rl_phase_timestamps {
  const char *launch;           /* name of the launch (rl_launch.name) */
  const rl_timed_phase *phases; /* the phases of a step, in order */
  size_t phase_count;
  size_t steps;              /* number of steps that were recorded, beginning with the launch's first */
  size_t blocks;             /* number of thread blocks of the launch */
  uint64_t begin_ns, end_ns; /* first and last timestamp of the launch in any block */
  /* Array [blocks][steps][1 + phase_count] of times in ns: the start of the step in this block, then the end of each phase. For
   * a phase in which the block took no part: 0, or a time before the end of the previous phase. */
  const uint64_t *ns;
  /* Number of microbatches in a step. Each overwrites the timestamps of the previous one, so only the phases of the last
   * microbatch are recorded. The time of the earlier microbatches is part of the first phase that is recorded after them. */
  size_t microbatches;
  double sm_mhz; /* SM clock during the launch, mean over blocks; 0: not measured */
} rl_phase_timestamps;

#endif
