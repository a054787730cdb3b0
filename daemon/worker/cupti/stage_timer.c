/* Each lap adds the time since the previous lap to a stage. */
#include "worker/cupti/stage_timer.h"

#include <stddef.h>

#include "base/clock.h"
#include "base/log.h"

static const char *const measurement_names[RL_PROFILER_STAGE_COUNT] = {
    [RL_PROFILER_STAGE_TRACING] = "spent_tracing_ms",           [RL_PROFILER_STAGE_PLANNING] = "spent_planning_ms",
    [RL_PROFILER_STAGE_ENABLING] = "spent_enabling_ms",         [RL_PROFILER_STAGE_RESTORING] = "spent_restoring_ms",
    [RL_PROFILER_STAGE_STARTING] = "spent_starting_ms",         [RL_PROFILER_STAGE_RUNNING] = "spent_running_ms",
    [RL_PROFILER_STAGE_STOPPING] = "spent_stopping_ms",         [RL_PROFILER_STAGE_EVALUATING] = "spent_evaluating_ms",
    [RL_PROFILER_STAGE_SASS_METRICS] = "spent_instructions_ms", [RL_PROFILER_STAGE_PM_SAMPLING] = "spent_lines_ms",
    [RL_PROFILER_STAGE_PC_SAMPLING] = "spent_samples_ms",       [RL_PROFILER_STAGE_APPENDING] = "spent_listing_ms"};

void rl_stage_timer_start(rl_stage_timer *timer) { *timer = (rl_stage_timer){.since_ns = rl_monotonic_ns()}; }

void rl_stage_timer_lap(rl_stage_timer *timer, rl_profiler_stage stage) {
  if (timer == NULL) return;
  int64_t now_ns = rl_monotonic_ns();
  const double ms = (double)(now_ns - timer->since_ns) * 1e-6;
  timer->ms[stage] += ms;
  rl_log(RL_LOG_DEBUG, "%s %.2f", measurement_names[stage], ms);
  timer->since_ns = now_ns;
}

int rl_stage_timer_record(const rl_stage_timer *timer, rl_records *records, rl_error *err) {
  for (int stage = 0; stage < RL_PROFILER_STAGE_COUNT; stage++)
    if (rl_records_add_measurement(records, measurement_names[stage], timer->ms[stage], NULL, err) < 0) return -1;
  return 0;
}
