/* Stores the runs of regression suites: their jobs, the values from which verdicts are computed, their verdicts, and
 * baselines. The suite runner (suite/suite_runner.h) and the suite handlers of the API call this module. As with store.h, all
 * functions are thread-safe, all changes are on disk when a function returns, and database errors have the domain RL_STORAGE. A
 * change of a suite run and the event that reports it are in one transaction. */
#ifndef RL_STORE_SUITES_H
#define RL_STORE_SUITES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct rl_store rl_store;

typedef struct rl_suite_run_spec { /* the caller owns the texts */
  const char *suite, *definition, *definition_sha256;
  const char *jobs_sha256; /* JSON object: the name of each job of the suite and its hash (rl_suite_job.sha256) */
  const char *device;
  const char *against;         /* name of the baseline; NULL: the rolling baseline */
  int64_t against_run_id;      /* id of the suite run whose results are that baseline */
  const char *against_request; /* JSON: the members in which the requests of the jobs measured as the baseline differ; NULL: this
                                  run measures no baseline */
  int64_t order_seed;          /* seed of the random order of baseline and current jobs in a block */
  double planned_s;            /* estimated duration; NAN: unknown */
  const char *planned_basis;   /* basis of the estimate (rl_suite_estimate_basis_name); NULL: the duration is unknown */
  int64_t planned_jobs;
} rl_suite_run_spec;

/* Returns 1 and sets *id if a run of the suite has this Idempotency-Key and body; 0 if no suite run has the key. Fails with
 * RL_HTTP 422 if a suite run has the key but another suite or body. */
int rl_store_suite_find_run_by_key(rl_store *store, const char *key, const char *suite, const char *body_sha256, int64_t *id,
                                   rl_error *err);
/* Inserts a queued suite run and sets *id. key: the Idempotency-Key, or NULL. If rl_store_suite_find_run_by_key finds a run,
 * inserts nothing, sets *existing to true and *id to that run. Fails like rl_store_suite_find_run_by_key, and with RL_HTTP 429 if
 * `limit` suite runs have not ended. */
int rl_store_suite_run_insert(rl_store *store, const rl_suite_run_spec *spec, const char *key, const char *body_sha256,
                              int64_t limit, int64_t *id, bool *existing, rl_error *err);
/* Sets a queued suite run to running. */
int rl_store_suite_run_start(rl_store *store, int64_t run_id, rl_error *err);

typedef struct rl_suite_step { /* the position of a job in a suite run */
  const char *role; /* "canary_before" "block" "baseline" "confirmation" "baseline_confirmation" "canary_after" "profile"
                       "baseline_profile" */
  int64_t block;    /* number of the block, from 0 within the role */
  const char *job_name;
  bool is_first; /* the job is the first of its block: it starts new worker processes, which the other jobs of the block reuse */
} rl_suite_step;

/* Records that a job was submitted for a step. Fails with RL_SUITE_ENDED if the suite run has ended meanwhile. */
int rl_store_suite_job_insert(rl_store *store, int64_t run_id, const rl_suite_step *step, int64_t job_id, rl_error *err);

typedef struct rl_suite_value {
  char metric[200]; /* key of the metric: "job/variant/metric", such as "train/fp16/epoch_ms_median" */
  double value;
  double cycles;             /* value in cycles of the SM clock; NAN: unknown */
  char dropped_reason[256];  /* why the value is not used; "": it is used */
  char other_processes[256]; /* other processes on the device; "": none, or unknown */
} rl_suite_value;
/* Records the end of a step's job, its values, and the conditions under which it ran (device, driver, clocks). state: "completed"
 * "failed" "cancelled". dropped_reason: why none of the values is used, or NULL. A second call changes nothing. */
int rl_store_suite_job_finish(rl_store *store, int64_t run_id, const rl_suite_step *step, int64_t job_id, const char *state,
                              const char *dropped_reason, const rl_suite_value *values, int count, rl_error *err);

typedef struct rl_suite_verdict {
  const char *metric, *verdict;
  const char *judgement, *causes; /* JSON: judgement is an object, causes is an array */
} rl_suite_verdict;
typedef struct rl_suite_outcome {
  const char *state;                                /* "completed" "failed" "cancelled" */
  const char *verdict, *reason, *quarantine_reason; /* NULL: the suite run has no such text */
  const char *baseline_runs;                        /* JSON array of ids; NULL: none */
  const rl_suite_verdict *verdicts;
  int verdict_count, method_version;
} rl_suite_outcome;
/* Ends a suite run, and records its submitted jobs as cancelled; the jobs themselves continue
 * (rl_store_suite_find_orphaned_job). Fails with RL_HTTP 404 if there is no such run; with RL_SUITE_ENDED if it has ended. */
int rl_store_suite_run_finish(rl_store *store, int64_t run_id, const rl_suite_outcome *outcome, rl_error *err);
/* Returns 1 and sets *job_id to an unfinished job of a suite run that has already ended; returns 0 if there is none. Also finds
 * a job that was submitted for a step, but for which rl_store_suite_job_insert has failed. */
int rl_store_suite_find_orphaned_job(rl_store *store, int64_t *job_id, rl_error *err);
/* Copies the suite run's state to `state`, and sets *event_count to its number of events, which is also the number of the last
 * event. Fails with RL_HTTP 404 if there is no such run. */
int rl_store_suite_run_state(rl_store *store, int64_t run_id, char state[16], int64_t *event_count, rl_error *err);
bool rl_store_suite_state_is_final(const char *state);

/* Checks that the suite run can become a baseline. Fails with RL_HTTP 404 at /run if the suite has no such run; with
 * RL_SUITE_NOT_ELIGIBLE at /run if the run has not completed or is quarantined. */
int rl_store_baseline_check(rl_store *store, const char *suite, int64_t run_id, rl_error *err);
/* Makes the results of a suite run a baseline with this name. Fails like rl_store_baseline_check; with RL_SUITE_BASELINE_EXISTS
 * at /name if the suite has a baseline of this name. Only suite/suite_promotion.h, which also checks the run's values, calls
 * this. */
int rl_store_baseline_insert(rl_store *store, const char *suite, const char *name, int64_t run_id, rl_error *err);
/* Returns 1 and sets *run_id to the suite run of the baseline; returns 0 if the suite has no baseline with this name. */
int rl_store_baseline_run(rl_store *store, const char *suite, const char *name, int64_t *run_id, rl_error *err);

#endif
