/* What became of jobs since the program started, for the metrics. Thread-safe. */
#ifndef RL_JOBS_TALLY_H
#define RL_JOBS_TALLY_H

#include "base/histogram.h"
#include "jobs/jobs.h"

enum { RL_TALLY_KINDS = 8 }; /* of rl_job_kinds, in its order */

extern const double rl_job_bounds_s[RL_HISTOGRAM_BUCKETS];

typedef struct rl_tally {
  _Atomic uint64_t submitted[RL_TALLY_KINDS];
  _Atomic uint64_t finished[RL_TALLY_KINDS][RL_JOB_STATES]; /* of the final states alone */
  rl_histogram wait[RL_TALLY_KINDS], run[RL_TALLY_KINDS];   /* from acceptance to the start; from there to the end */
} rl_tally;

/* What the store knows of a job's life; ns of the wall clock, 0: not yet. */
typedef struct rl_job_life {
  char kind[16];
  rl_job_state state;
  int64_t created_ns, started_ns, finished_ns;
} rl_job_life;

/* Kinds of job that this program does not know are not counted. A negative time, where somebody set the clock, counts as 0 s. */
void rl_tally_submitted(rl_tally *tally, const char *kind);
void rl_tally_started(rl_tally *tally, const rl_job_life *life);
void rl_tally_finished(rl_tally *tally, const rl_job_life *life); /* nothing, when its state is not final */

#endif
