/* Computes rows of the timeline, and durations over all blocks, from the phase timestamps of a launch. All functions are
 * pure. */
#ifndef RL_ANALYZE_PHASES_H
#define RL_ANALYZE_PHASES_H

#include <stdbool.h>

#include "model/records.h"
#include "phase_timestamps.h"

typedef struct rl_phase_durations { /* durations of a phase over all blocks and steps; a block without the phase counts as 0 */
  double mean_us, min_us, max_us;   /* NAN: no timestamps were recorded */
} rl_phase_durations;

rl_phase_durations rl_phase_summarize(const rl_phase_timestamps *timestamps, size_t phase);

/* Adds to the records of a trace, which must contain the summaries of its kernels:
 *
 *   phases                 one record for each phase that at least one block executed
 *   rows                   the phases of block 0, inside the last row of the launch's kernel, in the trace's time
 *   phase_rounds           microbatches per step
 *   phase_clock_error_us   largest error of the rows' times
 *
 * The launch records its first timestamp after its start in the trace and its last one before its end. The rows are centred in
 * the launch, so the error is half of the launch's time outside the timestamps. If the timestamps span more time than the launch,
 * no rows are added, and phase_clock_error_us has the reason. */
int rl_phases_add(rl_records *records, const rl_phase_timestamps *timestamps, rl_error *err);

#endif
