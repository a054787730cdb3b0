/* Runs of regression suites in the database: their jobs, the values from which verdicts are computed, verdicts and baselines.
 * Like store.h: thread-safe, on disk when a function returns, errors RL_STORAGE. A change of a suite run and the event
 * that reports it are one transaction. */
#ifndef RL_STORE_SUITES_H
#define RL_STORE_SUITES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct rl_store rl_store;

typedef struct rl_suite_run_spec { /* borrows its texts */
  const char *suite, *definition, *definition_sha256;
  const char *jobs_sha256; /* JSON {job's name: hash} */
  const char *device;
  const char *against;         /* name of the baseline; NULL: rolling */
  int64_t against_run_id;      /* the suite run of that baseline */
  const char *against_request; /* JSON: members in which the baseline's requests differ; NULL: the baseline is not measured */
  int64_t order_seed;          /* seed of the random order of baseline and current jobs in a block */
  double planned_s;            /* estimated duration; NAN: unknown */
  const char *planned_basis;   /* what the estimate rests on; NULL: the duration is unknown */
  int64_t planned_jobs;
} rl_suite_run_spec;

/* Inserts a queued suite run. key: the Idempotency-Key, or NULL. *existing becomes true, and *id the earlier run's id, if a suite
 * run with this key and body hash exists. RL_HTTP 422 (same key, other body), 429 (limit suite runs have not ended). */
int rl_store_suite_run_insert(rl_store *store, const rl_suite_run_spec *spec, const char *key, const char *body_sha256,
                              int64_t limit, int64_t *id, bool *existing, rl_error *err);
/* Sets a queued suite run to running. */
int rl_store_suite_run_start(rl_store *store, int64_t run_id, rl_error *err);

typedef struct rl_suite_step { /* one job of a suite run */
  const char *role; /* "canary_before" "block" "baseline" "confirmation" "baseline_confirmation" "canary_after" "profile"
                       "baseline_profile" */
  int64_t block;    /* number of the block, from 0 within the role */
  const char *job_name;
  bool is_first; /* the first job of its block: it gets new worker processes, which the block's other jobs reuse */
} rl_suite_step;

/* Records that a job was submitted for a step. Fails with RL_SUITE_ENDED if the suite run has ended meanwhile. */
int rl_store_suite_job_insert(rl_store *store, int64_t run_id, const rl_suite_step *step, int64_t job_id, rl_error *err);

typedef struct rl_suite_value {
  char metric[200]; /* key of the metric: "job/variant/metric" */
  double value, cycles;
  char dropped_reason[256];  /* "": not dropped */
  char other_processes[256]; /* other processes on the device; "": none, or unknown */
} rl_suite_value;
/* Records the end of a step's job with its values and conditions (device, driver, clocks). state: "completed" "failed"
 * "cancelled". dropped_reason: why its values are not used, or NULL. A second call changes nothing. */
int rl_store_suite_job_finish(rl_store *store, int64_t run_id, const rl_suite_step *step, int64_t job_id, const char *state,
                              const char *dropped_reason, const rl_suite_value *values, int count, rl_error *err);

typedef struct rl_suite_verdict {
  const char *metric, *verdict;
  const char *judgement, *causes; /* JSON: an object, an array */
} rl_suite_verdict;
typedef struct rl_suite_outcome {
  const char *state;                                /* "completed" "failed" "cancelled" */
  const char *verdict, *reason, *quarantine_reason; /* NULL: the suite run has none */
  const char *baseline_runs;                        /* JSON array of ids; NULL: none */
  const rl_suite_verdict *verdicts;
  int verdict_count, method_version;
} rl_suite_outcome;
/* Ends a suite run. Fails with RL_HTTP 404 if there is no such run; with RL_SUITE_ENDED if it has ended. */
int rl_store_suite_run_finish(rl_store *store, int64_t run_id, const rl_suite_outcome *outcome, rl_error *err);
/* Returns 1 and an unfinished job of a suite run that has ended; 0 if there is none. */
int rl_store_suite_find_orphaned_job(rl_store *store, int64_t *run_id, int64_t *job_id, rl_error *err);
/* Detaches the unfinished jobs of an ended suite run, so that rl_store_suite_find_orphaned_job no longer returns them. */
int rl_store_suite_release_jobs(rl_store *store, int64_t run_id, rl_error *err);
/* Reads the state and sets *events to the number of stored events, which is the number of the last event. Fails with RL_HTTP
 * 404 if there is no such run. */
int rl_store_suite_run_state(rl_store *store, int64_t run_id, char state[16], int64_t *events, rl_error *err);
bool rl_store_suite_state_is_final(const char *state);

/* Fails unless the suite run has completed and is not quarantined. Fails with RL_HTTP 404 at /run if the suite has no such run;
 * RL_SUITE_NOT_ELIGIBLE at /run otherwise. */
int rl_store_baseline_check(rl_store *store, const char *suite, int64_t run_id, rl_error *err);
/* Makes the results of a suite run a baseline. Errors of rl_store_baseline_check; RL_SUITE_BASELINE_EXISTS at
 * /name. Callers use suite/suite_promotion.h, which also checks the values. */
int rl_store_baseline_insert(rl_store *store, const char *suite, const char *name, int64_t run_id, rl_error *err);
/* Returns 1 and the suite run of a baseline; 0 if there is none with this name. */
int rl_store_baseline_run(rl_store *store, const char *suite, const char *name, int64_t *run_id, rl_error *err);

#endif
