#include "queue/statistics.h"

#include <string.h>

#include "request/spec.h"

const double rl_job_duration_bounds_s[RL_HISTOGRAM_BUCKETS] = {0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14400};

/* -1: a kind of an older program, whose job is in the database. */
static int kind_of(const char *name) {
  for (int i = 0; i < RL_JOB_KINDS_MAX && rl_job_kinds[i].name != NULL; i++)
    if (strcmp(rl_job_kinds[i].name, name) == 0) return i;
  return -1;
}

void rl_job_statistics_submitted(rl_job_statistics *tally, const char *name) {
  int kind = kind_of(name);
  if (kind >= 0) atomic_fetch_add(&tally->submitted[kind], 1);
}

void rl_job_statistics_started(rl_job_statistics *tally, const rl_job_status *life) {
  int kind = kind_of(life->kind);
  if (kind >= 0) rl_histogram_observe(&tally->wait[kind], rl_job_duration_bounds_s, life->started_ns - life->created_ns);
}

void rl_job_statistics_finished(rl_job_statistics *tally, const rl_job_status *life) {
  int kind = kind_of(life->kind);
  if (kind < 0 || !rl_job_is_final(life->state)) return; /* what was interrupted goes on */
  atomic_fetch_add(&tally->finished[kind][life->state], 1);
  if (life->started_ns > 0)
    rl_histogram_observe(&tally->run[kind], rl_job_duration_bounds_s, life->finished_ns - life->started_ns);
}
