/* Counts jobs and their durations since the daemon started, for GET /metrics. The queue calls this module. Thread-safe. */
#ifndef RL_QUEUE_STATISTICS_H
#define RL_QUEUE_STATISTICS_H

#include "base/histogram.h"
#include "model/job.h"

enum { RL_JOB_KINDS_MAX = 8 }; /* the arrays below have the indices of rl_job_kinds */

/* Upper bounds of the histograms' buckets, in seconds. */
extern const double rl_job_duration_bounds_s[RL_HISTOGRAM_BUCKETS];

typedef struct rl_job_statistics {
  _Atomic uint64_t submitted[RL_JOB_KINDS_MAX];
  _Atomic uint64_t finished[RL_JOB_KINDS_MAX][RL_JOB_STATE_COUNT]; /* only elements of final states are used */
  rl_histogram wait[RL_JOB_KINDS_MAX];                             /* time from the acceptance of a job to its start */
  rl_histogram run[RL_JOB_KINDS_MAX];                              /* time from the start of a job to its end */
} rl_job_statistics;

/* Count a job that was submitted, has started or has finished. Jobs of unknown kinds are not counted. */
void rl_job_statistics_submitted(rl_job_statistics *statistics, const char *kind);
void rl_job_statistics_started(rl_job_statistics *statistics, const rl_job_status *status);
/* Does nothing if the state is not final. */
void rl_job_statistics_finished(rl_job_statistics *statistics, const rl_job_status *status);

#endif
