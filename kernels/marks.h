/* When the phases inside a launch began and ended, where the launch stamps them itself: to a profiler one that is all steps of an
 * epoch is a single bar. */
#ifndef RL_KERNELS_MARKS_H
#define RL_KERNELS_MARKS_H

#include <stddef.h>
#include <stdint.h>

typedef struct rl_marked_phase {
  const char *name, *range; /* what a launch of its own would be called: "conv1_forward", "forward" */
} rl_marked_phase;

typedef struct rl_marks {            /* of the last run */
  const char *launch;                /* that made them: rl_launch.name */
  const rl_marked_phase *phases;     /* of a step, in their order */
  size_t phase_count, steps, blocks; /* steps: so many of the launch's first */
  uint64_t began_ns, ended_ns;       /* first and last stamp of the launch in any block */
  const uint64_t *ns; /* [blocks][steps][1 + phase_count]: when a block began the step and ended each phase, by one clock of any
                       * base; a phase that it had no part in: 0, or some time before the phase in front of it */
  size_t rounds; /* of a step: of each phase the last is marked, and the time of those before counts to what is marked next */
  double sm_mhz; /* cycles that a multiprocessor had over the launch's time, mean over blocks; 0: not counted */
} rl_marks;

#endif
