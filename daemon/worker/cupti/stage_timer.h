/* Measures how long each stage of a counters pass takes. The times become measurements of the pass ("spent_starting_ms"). */
#ifndef RL_CUPTI_STAGE_TIMER_H
#define RL_CUPTI_STAGE_TIMER_H

#include <stdint.h>

#include "model/records.h"

typedef enum rl_profiler_stage {
  RL_PROFILER_STAGE_TRACING,    /* tracing the step to list its kernels */
  RL_PROFILER_STAGE_PLANNING,   /* selecting metrics and planning their passes */
  RL_PROFILER_STAGE_ENABLING,   /* enabling, configuring and disabling the range profiler */
  RL_PROFILER_STAGE_RESTORING,  /* restoring the step's inputs; every pass has this stage and the next three */
  RL_PROFILER_STAGE_STARTING,   /* starting the range profiler */
  RL_PROFILER_STAGE_RUNNING,    /* running the step */
  RL_PROFILER_STAGE_STOPPING,   /* stopping the range profiler */
  RL_PROFILER_STAGE_EVALUATING, /* computing metrics from the counter data */
  RL_PROFILER_STAGE_SASS_METRICS,
  RL_PROFILER_STAGE_PM_SAMPLING,
  RL_PROFILER_STAGE_PC_SAMPLING,
  RL_PROFILER_STAGE_APPENDING, /* waiting for nvdisasm, and appending the records of instructions */
  RL_PROFILER_STAGE_COUNT
} rl_profiler_stage;

typedef struct rl_stage_timer {
  int64_t since_ns; /* monotonic; end of the previous stage */
  double ms[RL_PROFILER_STAGE_COUNT];
} rl_stage_timer;

/* Sets all stages to 0 ms and starts the first. */
void rl_stage_timer_start(rl_stage_timer *timer);
/* Ends a stage: adds the time since the previous call to the stage. Does nothing when timer is NULL. */
void rl_stage_timer_lap(rl_stage_timer *timer, rl_profiler_stage stage);
/* Appends one measurement per stage to the records. */
int rl_stage_timer_record(const rl_stage_timer *timer, rl_records *records, rl_error *err);

#endif
