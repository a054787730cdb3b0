/* The thread that executes the runs of regression suites. A suite run is a sequence of ordinary jobs: a canary, blocks,
 * confirming blocks for changed metrics, a second canary, and profiles. The runner submits one job at a time, so that jobs of
 * clients run in between, and executes one suite run at a time on each device. The runner reads the submitted steps from the
 * database before each step, so a suite run continues after a crash of the daemon. A job's Idempotency-Key identifies its step,
 * so that no step is submitted twice. HTTP handlers submit and cancel suite runs; all functions are thread-safe. */
#ifndef RL_SUITE_SUITE_RUNNER_H
#define RL_SUITE_SUITE_RUNNER_H

#include "base/listener.h"
#include "queue/queue.h"
#include "store/store.h"
#include "suite/definition.h"
#include "suite/suite_estimate.h"

typedef struct rl_suite_runner rl_suite_runner;

/* Starts the thread. policy: for the jobs that suites submit. queue_limit: maximum number of suite runs that have not ended.
 * store and queue must outlive the runner; the queue's devices must be set. */
int rl_suite_runner_open(rl_store *store, rl_queue *queue, const rl_job_policy *policy, int64_t queue_limit,
                         rl_suite_runner **runner, rl_error *err);
/* Makes the thread stop, but does not wait until it has stopped. */
void rl_suite_runner_stop(rl_suite_runner *runner);
/* Stops the thread and waits until it has ended. The next start of the daemon continues the suite runs. Accepts NULL. */
void rl_suite_runner_close(rl_suite_runner *runner);

/* Does for events of suite runs what rl_queue_set_listener does for events of jobs. Accepts a NULL runner. */
void rl_suite_runner_set_listener(rl_suite_runner *runner, rl_listener_function *on_event, void *context);

typedef struct rl_suite_submission {
  const rl_suite *suite;
  const char *device;            /* id of a device; NULL: the suite's device or, if it names none, the default device */
  const char *against;           /* name of a baseline; NULL: the rolling baseline */
  const cJSON *against_request;  /* members that replace those of the jobs' requests in a measured baseline
                                    (rl_suite_make_measured_baseline); NULL: the run measures no baseline */
  const rl_job_policy *policy;   /* for jobs with against_request */
  const char *key, *body_sha256; /* key: the Idempotency-Key; NULL: none */
} rl_suite_submission;
/* Stores a suite run and sets *id. *existing: as in rl_queue_submit_job. Fails with RL_INPUT at /device, or at a
 * field of the definition or of against_request with which the device can't run the job, such as /jobs/0/request/engine. Fails
 * with RL_HTTP 404 at /against (there is no such baseline), 422 (a suite run has the key but another suite or body), 429
 * (queue_limit suite runs have not ended), 503 (the daemon is stopping). */
int rl_suite_runner_submit(rl_suite_runner *runner, const rl_suite_submission *submission, int64_t *id, bool *existing,
                           rl_error *err);
/* Cancels a suite run and its current job. Fails with RL_HTTP 404 if there is no such run; with RL_SUITE_ENDED if the run has
 * already ended. */
int rl_suite_runner_cancel(rl_suite_runner *runner, int64_t id, rl_error *err);

/* Returns the estimated duration of a run on the suite's device or, if it names none, the default device. The basis is
 * RL_SUITE_ESTIMATE_NONE if no device can run the suite. */
rl_suite_estimate rl_suite_runner_estimate(rl_suite_runner *runner, const rl_suite *suite);

RL_DEFINE_CLEANUP(rl_suite_runner_cleanup, rl_suite_runner *, rl_suite_runner_close, NULL)
#endif
