/* Fills a store with jobs of every kind and state, through the functions that the daemon calls. Job i is the same in databases of
 * every size, except for the number of its activity rows. */
#ifndef RL_TESTS_BENCH_GROW_H
#define RL_TESTS_BENCH_GROW_H

#include "store/store.h"

/* Every database, whatever its size, has GROW_RARE_JOBS jobs on this device, as many of this kind, and as many in this state. */
#define GROW_RARE_DEVICE "gpu3"
#define GROW_RARE_KIND "source"
#define GROW_RARE_STATE RL_JOB_INTERRUPTED
enum { GROW_RARE_JOBS = 5, GROW_MIN_JOBS = 100 };
/* All queued and interrupted jobs are on this device, and no other jobs. */
#define GROW_OFFLINE_DEVICE "gpu7"

/* A regression suite with one run for every 10 jobs. */
#define GROW_SUITE "nightly"
#define GROW_SUITE_METRIC "train/fp32/epoch_ms_median"

typedef struct grow_plan {
  int64_t jobs;          /* at least GROW_MIN_JOBS */
  int64_t activity_rows; /* of all jobs together */
  int64_t trace_rows;    /* number of these rows that belong to the job with the longest trace */
  bool shows_progress;   /* whether grow_database prints its progress on stderr */
} grow_plan;

/* Ids of stored jobs and runs for requests, and how long storing took. */
typedef struct grow_result {
  int64_t trace_job, trace_run, trace_end_ns; /* the job with the longest trace, its run, and the end of its trace */
  int64_t trace_tail_ns;                      /* 100 us before trace_end_ns */
  int64_t train_job;                          /* the first training job with all passes */
  int64_t train_run;                          /* its fp32 run; many jobs repeat it: same parameters and device */
  int64_t train_candidate;                    /* its fp16 run */
  int64_t kernel_job, kernel_run;             /* the first kernel job with counters */
  int64_t full_job, full_run;                 /* the first job with the counters of the set "full" */
  int64_t source_job;                         /* the first job with posted code */
  int64_t ceilings_job;                       /* the first ceilings job */
  int64_t suite_run;                          /* the last suite run that has ended */
  int64_t rare_run;                           /* a run that GROW_RARE_JOBS jobs repeat */
  int64_t activity_rows;                      /* number of stored activity rows */
  double activity_s;                          /* total duration of the commits of activity passes */
  double trace_s;                             /* duration of the commit of the longest trace */
  int64_t trace_bytes;                        /* by how much that commit enlarged the database */
  double total_s;                             /* duration of grow_database */
} grow_result;

/* Stores the jobs of the plan and their passes, and runs of a regression suite. Fails with RL_INPUT if the plan has fewer than
 * GROW_MIN_JOBS jobs. */
int grow_database(rl_store *store, const grow_plan *plan, grow_result *grown, rl_error *err);

#endif
