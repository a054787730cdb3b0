/* Converts timestamps to one record for each phase (times over all blocks), and to trace rows of block 0, which are centred in
 * the launch's row. */
#include "analyze/phases.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TIMELINE_BLOCK = 0 };

typedef struct interval { /* an interval on the clock of the timestamps */
  uint64_t begin_ns, end_ns;
} interval;

/* A phase begins where the previous phase of the same step and block ended. Returns false if the block did not execute this
 * phase. */
static bool next_interval(const uint64_t *step_ns, size_t phase, uint64_t *previous_end_ns, interval *found) {
  if (step_ns[1 + phase] < *previous_end_ns) return false;
  *found = (interval){*previous_end_ns, step_ns[1 + phase]};
  *previous_end_ns = found->end_ns;
  return true;
}

static const uint64_t *timestamps_of_step(const rl_phase_timestamps *timestamps, size_t block, size_t step) {
  return &timestamps->ns[(block * timestamps->steps + step) * (1 + timestamps->phase_count)];
}

/* Returns 0 if the block did not execute the phase. */
static double duration_us(const uint64_t *step_ns, size_t phase) {
  uint64_t previous_end_ns = step_ns[0];
  for (size_t p = 0;; p++) {
    interval found;
    bool executed = next_interval(step_ns, p, &previous_end_ns, &found);
    if (p == phase) return executed ? (double)(found.end_ns - found.begin_ns) * 1e-3 : 0;
  }
}

rl_phase_durations rl_phase_summarize(const rl_phase_timestamps *timestamps, size_t phase) {
  rl_phase_durations times = {.min_us = NAN, .max_us = NAN};
  for (size_t block = 0; block < timestamps->blocks; block++)
    for (size_t step = 0; step < timestamps->steps; step++) {
      double us = duration_us(timestamps_of_step(timestamps, block, step), phase);
      times.mean_us += us;
      times.min_us = fmin(times.min_us, us);
      times.max_us = fmax(times.max_us, us);
    }
  times.mean_us /= (double)(timestamps->blocks * timestamps->steps);
  return times;
}

/* --- times over all blocks --------------------------------------------------------------------------------------------- */

static int add_phase_records(rl_records *records, const rl_phase_timestamps *timestamps, int64_t ordinal, rl_error *err) {
  double step_us = 0;
  for (size_t p = 0; p < timestamps->phase_count; p++) step_us += rl_phase_summarize(timestamps, p).mean_us;
  for (size_t p = 0; p < timestamps->phase_count; p++) {
    rl_phase_durations times = rl_phase_summarize(timestamps, p);
    if (times.max_us == 0) continue; /* no block executes this phase */
    rl_phase phase = {.ordinal = ordinal,
                      .position = (int64_t)p,
                      .steps = (int64_t)timestamps->steps,
                      .blocks = (int64_t)timestamps->blocks,
                      .mean_us = times.mean_us,
                      .min_us = times.min_us,
                      .max_us = times.max_us,
                      .share_ratio = step_us > 0 ? times.mean_us / step_us : NAN};
    snprintf(phase.name, sizeof phase.name, "%s", timestamps->phases[p].name);
    snprintf(phase.phase, sizeof phase.phase, "%s", timestamps->phases[p].nvtx_range);
    if (rl_records_add(records, RL_RECORD_PHASE, &phase, 1, err) < 0) return -1;
  }
  return 0;
}

/* --- rows of one block ------------------------------------------------------------------------------------------------- */

static int add_names(rl_records *records, const rl_phase_timestamps *timestamps, rl_error *err) {
  for (size_t p = 0; p < timestamps->phase_count; p++)
    if (rl_records_add_name(records, timestamps->phases[p].name, strlen(timestamps->phases[p].name), err)) return -1;
  return 0;
}

/* Adds a row for each phase of the step. origin_ns: the trace's time 0 on the clock of the timestamps. first_name: index of the
 * first phase's name. */
static int add_step_rows(rl_records *records, const rl_phase_timestamps *timestamps, size_t step,
                         const rl_activity_row *launch_row, int64_t origin_ns, size_t first_name, rl_error *err) {
  const uint64_t *step_ns = timestamps_of_step(timestamps, TIMELINE_BLOCK, step);
  uint64_t previous_end_ns = step_ns[0];
  for (size_t p = 0; p < timestamps->phase_count; p++) {
    interval found;
    if (!next_interval(step_ns, p, &previous_end_ns, &found)) continue;
    rl_activity_row row = {.start_ns = (int64_t)found.begin_ns - origin_ns,
                           .end_ns = (int64_t)found.end_ns - origin_ns,
                           .kind = RL_ACTIVITY_PHASE,
                           .name = (uint32_t)(first_name + p),
                           .stream = launch_row->stream,
                           .correlation = launch_row->correlation,
                           .graph_node = launch_row->graph_node,
                           .step = (uint32_t)step + 1,
                           .process = launch_row->process,
                           .thread = launch_row->thread,
                           .context = launch_row->context,
                           .device = launch_row->device};
    if (rl_records_add(records, RL_RECORD_ROW, &row, 1, err) < 0) return -1;
  }
  return 0;
}

static const rl_kernel *kernel_of_launch(const rl_records *records, const char *launch) {
  for (size_t k = 0; k < records->kernel_count; k++)
    if (strcmp(records->kernels[k].launch, launch) == 0) return &records->kernels[k];
  return NULL;
}

static bool find_last_row(const rl_records *records, const char *name, rl_activity_row *row) {
  for (size_t i = records->row_count; i-- > 0;) {
    *row = records->rows[i];
    if ((row->kind == RL_ACTIVITY_KERNEL || row->kind == RL_ACTIVITY_CPU_SPAN) && strcmp(records->names[row->name], name) == 0)
      return true;
  }
  return false;
}

/* Records why no rows are added, as the reason of the missing measurement phase_clock_error_us. */
static int report_no_rows(rl_records *records, const char *reason, rl_error *err) {
  return rl_records_add_measurement(records, "phase_clock_error_us", NAN, reason, err);
}

int rl_phases_add(rl_records *records, const rl_phase_timestamps *timestamps, rl_error *err) {
  const rl_kernel *kernel = kernel_of_launch(records, timestamps->launch);
  rl_activity_row launch_row;
  if (timestamps->blocks == 0 || timestamps->steps == 0 || timestamps->end_ns <= timestamps->begin_ns)
    return report_no_rows(records, "the launch recorded no timestamps", err);
  if (!kernel || !find_last_row(records, kernel->name, &launch_row))
    return report_no_rows(records, "the trace does not contain the launch that recorded timestamps", err);
  if (add_phase_records(records, timestamps, kernel->ordinal, err) ||
      rl_records_add_measurement(records, "phase_rounds", (double)timestamps->microbatches, NULL, err))
    return -1;
  const int64_t unaccounted_ns = launch_row.end_ns - launch_row.start_ns - (int64_t)(timestamps->end_ns - timestamps->begin_ns);
  if (unaccounted_ns < 0)
    return report_no_rows(records, "the first and last timestamp are further apart than the launch in the trace is long", err);
  const int64_t origin_ns = (int64_t)timestamps->begin_ns - launch_row.start_ns - unaccounted_ns / 2;
  const size_t first_name = records->name_count;
  if (add_names(records, timestamps, err)) return -1;
  for (size_t step = 0; step < timestamps->steps; step++)
    if (add_step_rows(records, timestamps, step, &launch_row, origin_ns, first_name, err)) return -1;
  return rl_records_add_measurement(records, "phase_clock_error_us", (double)unaccounted_ns * 0.5e-3, NULL, err);
}
