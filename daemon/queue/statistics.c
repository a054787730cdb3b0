/* Implements statistics.h with atomic counters. */
#include "queue/statistics.h"

#include <string.h>

#include "request/spec.h"

const double rl_job_duration_bounds_s[RL_HISTOGRAM_BUCKETS] = {0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14400};

/* Returns the index of the kind in rl_job_kinds; -1 for a kind that only another version of the daemon has. */
static int kind_index(const char *name) {
  for (int i = 0; i < RL_JOB_KINDS_MAX && rl_job_kinds[i].name != NULL; i++)
    if (strcmp(rl_job_kinds[i].name, name) == 0) return i;
  return -1;
}

void rl_job_statistics_submitted(rl_job_statistics *statistics, const char *name) {
  int kind = kind_index(name);
  if (kind >= 0) atomic_fetch_add(&statistics->submitted[kind], 1);
}

void rl_job_statistics_started(rl_job_statistics *statistics, const rl_job_status *status) {
  int kind = kind_index(status->kind);
  if (kind >= 0) rl_histogram_observe(&statistics->wait[kind], rl_job_duration_bounds_s, status->started_ns - status->created_ns);
}

void rl_job_statistics_finished(rl_job_statistics *statistics, const rl_job_status *status) {
  int kind = kind_index(status->kind);
  if (kind < 0 || !rl_job_is_final(status->state)) return; /* an interrupted job has not finished: it continues later */
  atomic_fetch_add(&statistics->finished[kind][status->state], 1);
  if (status->started_ns > 0)
    rl_histogram_observe(&statistics->run[kind], rl_job_duration_bounds_s, status->finished_ns - status->started_ns);
}
