/* What became of jobs since the program started, for the metrics. Thread-safe. */
#ifndef RL_QUEUE_STATISTICS_H
#define RL_QUEUE_STATISTICS_H

#include "base/histogram.h"
#include "model/job.h"

enum { RL_JOB_KINDS_MAX = 8 }; /* of rl_job_kinds, in its order */

extern const double rl_job_duration_bounds_s[RL_HISTOGRAM_BUCKETS];

typedef struct rl_job_statistics {
  _Atomic uint64_t submitted[RL_JOB_KINDS_MAX];
  _Atomic uint64_t finished[RL_JOB_KINDS_MAX][RL_JOB_STATES]; /* of the final states alone */
  rl_histogram wait[RL_JOB_KINDS_MAX], run[RL_JOB_KINDS_MAX]; /* from acceptance to the start; from there to the end */
} rl_job_statistics;

/* Kinds of job that this program does not know are not counted. A negative time, where somebody set the clock, counts as 0 s. */
void rl_job_statistics_submitted(rl_job_statistics *tally, const char *kind);
void rl_job_statistics_started(rl_job_statistics *tally, const rl_job_status *life);
void rl_job_statistics_finished(rl_job_statistics *tally, const rl_job_status *life); /* nothing, when its state is not final */

#endif
