/* Pure functions over the phase timestamps of a launch: spans on the timeline, and times over all blocks. */
#ifndef RL_ANALYZE_PHASES_H
#define RL_ANALYZE_PHASES_H

#include <stdbool.h>

#include "model/records.h"
#include "phase_timestamps.h"

typedef struct rl_phase_times {   /* of a step in a block; 0 for a block without the phase */
  double mean_us, min_us, max_us; /* NAN: no timestamps */
} rl_phase_times;

rl_phase_times rl_phase_summary(const rl_phase_timestamps *timestamps, size_t phase);

/* To the records of a trace, whose kernels are there: the phases of the launch's kernel that any block had a part in; the spans
 * of block 0, in the trace's time, inside the last row of that kernel; and the measurements phase_rounds, of a step, and
 * phase_clock_error_us. A launch's first stamp comes after its start in the trace and its last one before its end: the stamps
 * lie in the middle, and the error is half of what is left. Where that can't be, there are no spans, and the measurement says
 * why. */
int rl_phases_add(rl_records *records, const rl_phase_timestamps *timestamps, rl_error *err);

#endif
