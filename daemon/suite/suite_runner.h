/* The thread that executes runs of regression suites. A suite run is a sequence of ordinary jobs: a canary, blocks, confirming
 * blocks of changed metrics, a second canary, and profiles. It submits one job at a time, so that jobs of clients run in between,
 * and executes one suite run at a time on a device. The runner reads the finished steps from the database before each step, so a
 * suite run continues after a crash. A job's Idempotency-Key names its step, so no job is submitted twice. */
#ifndef RL_SUITE_SUITE_RUNNER_H
#define RL_SUITE_SUITE_RUNNER_H

#include "base/listener.h"
#include "queue/queue.h"
#include "store/store.h"
#include "suite/definition.h"
#include "suite/suite_estimate.h"

typedef struct rl_suite_runner rl_suite_runner;

/* Starts the thread. policy: applies to the jobs that suites submit. queue_limit: max number of suite runs that have not ended.
 * store and queue must outlive the runner; the queue's devices must be set. */
int rl_suite_runner_open(rl_store *store, rl_queue *queue, const rl_job_policy *policy, int64_t queue_limit,
                         rl_suite_runner **runner, rl_error *err);
/* Tells the thread to stop, without waiting for it. */
void rl_suite_runner_stop(rl_suite_runner *runner);
/* Stops the thread; suite runs go on at the next start. Accepts NULL. */
void rl_suite_runner_close(rl_suite_runner *runner);

/* As rl_queue_set_listener, for events of suite runs. Accepts a NULL runner. */
void rl_suite_runner_set_listener(rl_suite_runner *runner, rl_listener_function *on_event, void *context);

typedef struct rl_suite_submission {
  const rl_suite *suite;
  const char *device;           /* device of the run; NULL: the suite's device, or else the default device */
  const char *against;          /* name of a baseline; NULL: rolling */
  const cJSON *against_request; /* members of the baseline's requests (rl_suite_make_measured_baseline); NULL: the baseline is not
                                   measured */
  const rl_job_policy *policy;  /* applies to against_request */
  const char *key, *body_sha256; /* Idempotency-Key; NULL: none */
} rl_suite_submission;
/* Accepts a suite run and sets *id. *existing: as in rl_queue_submit_job. RL_INPUT at /device, or at a field of the definition or
 * of against_request that the device can't run, such as /jobs/0/request/engine. RL_HTTP 404 at /against (no such baseline), 422
 * (same key, other body), 429 (queue_limit reached), 503 (stopping). */
int rl_suite_runner_submit(rl_suite_runner *runner, const rl_suite_submission *submission, int64_t *id, bool *existing,
                           rl_suite_estimate *estimate, rl_error *err);
/* Cancels a suite run and its current job. Fails with RL_HTTP 404 if there is no such run; with RL_SUITE_ENDED if it has
 * ended. */
int rl_suite_runner_cancel(rl_suite_runner *runner, int64_t id, rl_error *err);

/* Returns the estimated duration of a run on the suite's device, or the default device. Fails with RL_SUITE_ESTIMATE_NONE if no
 * device can run it. */
rl_suite_estimate rl_suite_runner_estimate(rl_suite_runner *runner, const rl_suite *suite);

RL_DEFINE_CLEANUP(rl_suite_runner_cleanup, rl_suite_runner *, rl_suite_runner_close, NULL)
#endif
