/* Estimates the duration of a suite run from earlier suite runs and jobs on the same device. The suite runner and, for lists
 * of suites, the HTTP handlers call this module. Thread-safe. */
#ifndef RL_SUITE_SUITE_ESTIMATE_H
#define RL_SUITE_SUITE_ESTIMATE_H

#include "store/store.h"
#include "suite/definition.h"

/* The basis of an estimate, in the order of accuracy. The most accurate basis that is available is used. */
typedef enum rl_suite_estimate_basis {
  RL_SUITE_ESTIMATE_NONE,         /* there is no estimate */
  RL_SUITE_ESTIMATE_RUNS,         /* the duration of the last runs of the same definition */
  RL_SUITE_ESTIMATE_JOBS,         /* the durations of the last jobs that are equal to the suite's jobs */
  RL_SUITE_ESTIMATE_SIMILAR_JOBS, /* as RL_SUITE_ESTIMATE_JOBS, but jobs without an equal job are estimated by the last job of
                                     their kind */
  RL_SUITE_ESTIMATE_TIME_BUDGET   /* the suite's time budget, which is an upper bound */
} rl_suite_estimate_basis;
/* Returns "runs", "jobs", "similar_jobs" or "time_budget"; NULL for RL_SUITE_ESTIMATE_NONE. */
const char *rl_suite_estimate_basis_name(rl_suite_estimate_basis basis);

typedef struct rl_suite_estimate {
  double seconds; /* estimated duration; NAN: there is no estimate */
  rl_suite_estimate_basis basis;
} rl_suite_estimate;

/* Estimates the duration of a run of the suite, without confirming blocks. measures_baseline: each block also measures the
 * baseline. */
rl_suite_estimate rl_suite_estimate_duration(rl_store *store, const rl_suite *suite, const char *device, bool measures_baseline);

#endif
