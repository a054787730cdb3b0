/* Runs all analyses of a run's trace. The handlers of timelines and reports call this module in a pool's thread. */
#ifndef RL_API_RUN_TIMELINE_H
#define RL_API_RUN_TIMELINE_H

#include "analyze/copy_rates.h"
#include "analyze/critical_path.h"
#include "analyze/launch_queue.h"
#include "analyze/phase_times.h"
#include "analyze/range_times.h"
#include "analyze/thread_times.h"
#include "api/http_request.h"
#include "api/report.h"
#include "api/run_trace.h"
#include "api/step_launches.h"

enum { RL_MAX_COPY_GROUPS = 64 };

typedef struct rl_run_timeline {
  rl_run_trace trace; /* if there is no trace, trace.state.reason says why, and all other members are empty */
  rl_time_classes classes;
  rl_range_times ranges;
  rl_phase_times phases;
  rl_launch_queue queue;
  rl_critical_path path;
  rl_thread_times threads;
  rl_step_launches launches;
  rl_copy_group copies[RL_MAX_COPY_GROUPS];
  size_t copy_count;
  const char *queue_reason, *path_reason; /* why `queue` and `path` are unknown; NULL: they are known */
} rl_run_timeline;

/* Reads the run's trace and runs all analyses. *timeline must not be moved, because the index points into it. The caller clears
 * it, even after a failure. Fails like rl_run_trace_read. */
int rl_run_timeline_read(rl_http_request *request, int64_t run_id, rl_run_timeline *timeline, rl_error *err);
void rl_run_timeline_clear(rl_run_timeline *timeline);

/* Returns the findings in order of rank. The findings point into the timeline. Returns an empty list if there is no trace. */
rl_findings rl_run_timeline_findings(const rl_run_timeline *timeline);

#endif
