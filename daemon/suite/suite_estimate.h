/* Estimates the duration of a suite run from earlier runs and jobs of the same device. Thread-safe. */
#ifndef RL_SUITE_SUITE_ESTIMATE_H
#define RL_SUITE_SUITE_ESTIMATE_H

#include "store/store.h"
#include "suite/definition.h"

/* The basis of an estimate, the most accurate first. */
typedef enum rl_suite_estimate_basis {
  RL_SUITE_ESTIMATE_NONE,         /* no estimate */
  RL_SUITE_ESTIMATE_RUNS,         /* the last runs of the same definition */
  RL_SUITE_ESTIMATE_JOBS,         /* the last jobs that are equal to the suite's */
  RL_SUITE_ESTIMATE_SIMILAR_JOBS, /* the last equal jobs, and for some jobs only the last job of the same kind */
  RL_SUITE_ESTIMATE_TIME_BUDGET   /* the suite's time budget: a run takes at most this long */
} rl_suite_estimate_basis;
/* "runs" "jobs" "similar_jobs" "time_budget"; NULL: none. */
const char *rl_suite_estimate_basis_name(rl_suite_estimate_basis basis);

typedef struct rl_suite_estimate {
  double seconds; /* estimated duration; NAN: there is no estimate */
  rl_suite_estimate_basis basis;
} rl_suite_estimate;

/* measures_baseline: each block also measures the baseline. Confirming blocks are not included. */
rl_suite_estimate rl_suite_estimate_duration(rl_store *store, const rl_suite *suite, const char *device, bool measures_baseline);

#endif
