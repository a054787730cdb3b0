#include "supervisor/device_runner.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "supervisor/attempt.h"

enum { CLAIM_WAIT_MS = 1000, IDLE_RELEASE_MS = 200, EXIT_WAIT_MS = 1000, STOP_GRACE_MS = 200, COMMIT_ATTEMPTS = 5 };
static const int64_t NS_PER_MS = 1000000, PAUSE_FIRST_MS = 250, PAUSE_MAX_MS = 30000;
static const size_t RECORDS_LIMIT = (size_t)512 << 20;

/* Which worker executes which pass. On CUDA the timing pass has its own worker, which never loads CUPTI. */
enum { WORKERS_MAX = 2 };
typedef struct worker_layout {
  const char *kind;
  const char *roles[WORKERS_MAX];
  int worker_of_pass[RL_PASSES];
} worker_layout;
static const worker_layout worker_layouts[] = {
    {"cpu", {"any", NULL}, {0, 0, 0}},
    {"cuda", {"clean", "profiled"}, {[RL_PASS_TIMING] = 0, [RL_PASS_ACTIVITY] = 1, [RL_PASS_COUNTERS] = 1}},
};

static const worker_layout *find_worker_layout(const char *kind) {
  for (size_t i = 0; i < sizeof worker_layouts / sizeof *worker_layouts; i++)
    if (strcmp(worker_layouts[i].kind, kind) == 0) return &worker_layouts[i];
  return NULL;
}

bool rl_device_runner_supports(const char *kind) { return find_worker_layout(kind) != NULL; }

struct rl_device_runner {
  char program[RL_PATH_SIZE];
  rl_queue *jobs;
  const worker_layout *worker_layout;
  rl_worker workers[WORKERS_MAX];
  int64_t pause_ms, not_before_ns; /* back-off before the next start of a worker */
  atomic_bool stopping;
  pthread_t thread;
  pthread_mutex_t mutex;
  rl_device_state state; /* guarded by mutex; rl_device_runner_state replaces job_id and sets "idle" without a job */
};

static void set_state(rl_device_runner *runner, const char *state) {
  pthread_mutex_lock(&runner->mutex);
  snprintf(runner->state.state, sizeof runner->state.state, "%s", state);
  pthread_mutex_unlock(&runner->mutex);
}

void rl_device_runner_state(rl_device_runner *runner, rl_device_state *state) {
  int64_t job_id = rl_queue_job_on_device(runner->jobs, runner->state.id);
  pthread_mutex_lock(&runner->mutex);
  *state = runner->state;
  pthread_mutex_unlock(&runner->mutex);
  state->job_id = job_id;
  for (int i = 0; i < WORKERS_MAX; i++) {
    state->frames += runner->workers[i].frames;
    state->bytes += runner->workers[i].bytes;
  }
  if (job_id == 0) snprintf(state->state, sizeof state->state, "idle");
}

static void sleep_tick(void) { nanosleep(&(struct timespec){.tv_nsec = RL_TICK_MS * NS_PER_MS}, NULL); }

/* Doubles the pause before the next start, after a crash. */
static void lengthen_pause(rl_device_runner *runner) {
  int64_t longer = runner->pause_ms == 0 ? PAUSE_FIRST_MS : runner->pause_ms * 2;
  runner->pause_ms = longer < PAUSE_MAX_MS ? longer : PAUSE_MAX_MS;
  runner->not_before_ns = rl_monotonic_ns() + runner->pause_ms * NS_PER_MS;
}

/* --- one pass ---------------------------------------------------------------------------------------------------------- */

/* Waits for the back-off, starts the worker of this pass, and reads its HELLO. */
static rl_attempt_result start_worker(rl_device_runner *runner, rl_attempt *attempt) {
  set_state(runner, "starting");
  while (rl_monotonic_ns() < runner->not_before_ns) {
    rl_attempt_result interruption = rl_attempt_interruption(attempt);
    if (interruption != RL_ATTEMPT_PENDING) return interruption;
    sleep_tick();
  }
  return rl_worker_start(attempt->worker, &attempt->why) < 0 ? RL_ATTEMPT_DIED : rl_attempt_handshake(attempt);
}

/* Releases the device resources of every worker except `except` (NULL: of all). */
static void release_workers(rl_device_runner *runner, const rl_worker *except) {
  for (rl_worker *worker = runner->workers; worker < runner->workers + WORKERS_MAX; worker++)
    if (worker != except) rl_worker_release(worker);
}

static rl_attempt_result attempt_pass(rl_device_runner *runner, rl_attempt *attempt) {
  release_workers(runner, attempt->worker);
  rl_worker_check_idle(attempt->worker);
  rl_worker_recycle(attempt->worker, attempt->claim->job_id);
  rl_attempt_result result = attempt->worker->process.pid == 0 ? start_worker(runner, attempt) : rl_attempt_interruption(attempt);
  if (result != RL_ATTEMPT_PENDING) return result;
  set_state(runner, "busy");
  return rl_attempt_run(attempt);
}

/* Ends the worker after a result for which ends_worker is true; after a crash it also lengthens the pause before the next
 * start. */
static void retire_worker(rl_device_runner *runner, rl_attempt *attempt, rl_attempt_result result) {
  char exit_status[RL_EXIT_STATUS_SIZE] = "was not started";
  bool exited_unprompted = result == RL_ATTEMPT_DIED && attempt->why.domain == RL_WIRE &&
                           (attempt->why.code == RL_WIRE_CLOSED || attempt->why.code == RL_WIRE_TRUNCATED);
  rl_worker_end(attempt->worker, exited_unprompted ? EXIT_WAIT_MS : 0, exit_status);
  if (result != RL_ATTEMPT_DIED) return;
  lengthen_pause(runner);
  pthread_mutex_lock(&runner->mutex);
  runner->state.restarts++;
  pthread_mutex_unlock(&runner->mutex);
  if (exited_unprompted) /* the exit status says more than the closed pipe */
    rl_fail(&attempt->why, RL_WIRE, RL_WIRE_CLOSED, "the %s worker %s", attempt->worker->role, exit_status);
  else rl_wrap(&attempt->why, "the %s worker was ended", attempt->worker->role);
  rl_log(RL_LOG_WARNING, "job %lld, %s pass of %s on %s: %s", (long long)attempt->claim->job_id,
         rl_pass_names[attempt->claim->pass], attempt->claim->run.variant, runner->state.id, attempt->why.message);
}

/* --- storing the outcome -------------------------------------------------------------------------------------------------------
 */

static int persist_once(const rl_attempt *attempt, rl_attempt_result result, rl_error *err) {
  rl_queue *jobs = attempt->jobs;
  switch (result) {
    case RL_ATTEMPT_DONE: return rl_queue_commit(jobs, attempt->claim, &attempt->records, err);
    case RL_ATTEMPT_UNAVAILABLE: return rl_queue_unavailable(jobs, attempt->claim, &attempt->records, attempt->why.message, err);
    case RL_ATTEMPT_CANCELLED:
    case RL_ATTEMPT_IGNORED_CANCEL: return rl_queue_cancelled(jobs, attempt->claim, err);
    case RL_ATTEMPT_STOPPED: return rl_queue_interrupted(jobs, attempt->claim, err);
    case RL_ATTEMPT_DIED: return rl_queue_worker_died(jobs, attempt->claim, attempt->why.message, err);
    case RL_ATTEMPT_FAILED:
    case RL_ATTEMPT_DEADLINE_EXCEEDED:
    case RL_ATTEMPT_PENDING: break;
  }
  return rl_queue_fail(jobs, attempt->claim, &attempt->why, err);
}

/* Whether two records of the worker contradict each other, so that a retry cannot succeed. */
static bool contradictory(const rl_error *err) { return err->domain == RL_STORAGE && err->code == RL_STORAGE_CONSTRAINT; }

/* Stores the outcome and retries until it succeeds or the daemon stops. If storing results fails COMMIT_ATTEMPTS times, for
 * instance on a full disk, it stores the job as failed instead, which needs less space. After a stop, the next start of the
 * daemon queues the pass again. */
static void persist_outcome(rl_attempt *attempt, rl_attempt_result result) {
  rl_error err;
  int64_t pause_ms = PAUSE_FIRST_MS;
  for (int tries = 1; persist_once(attempt, result, &err) < 0; tries++) {
    rl_log(RL_LOG_ERROR, "job %lld: can't store the outcome of its %s pass: %s", (long long)attempt->claim->job_id,
           rl_pass_names[attempt->claim->pass], err.message);
    if (err.domain == RL_HTTP) return; /* the job has ended or was deleted: nothing to store */
    bool has_results = result == RL_ATTEMPT_DONE || result == RL_ATTEMPT_UNAVAILABLE;
    if (has_results && (tries >= COMMIT_ATTEMPTS || contradictory(&err))) {
      attempt->why = err;
      rl_wrap(&attempt->why, contradictory(&err) ? "the results contradict themselves" : "can't store the results");
      result = RL_ATTEMPT_FAILED;
      continue;
    }
    int64_t until_ns = rl_monotonic_ns() + pause_ms * NS_PER_MS;
    pause_ms = pause_ms * 2 < PAUSE_MAX_MS ? pause_ms * 2 : PAUSE_MAX_MS;
    while (rl_monotonic_ns() < until_ns) {
      if (atomic_load(attempt->stopping)) return;
      sleep_tick();
    }
  }
}

/* Whether the worker cannot be kept after this result. */
static bool ends_worker(rl_attempt_result result) {
  return result != RL_ATTEMPT_DONE && result != RL_ATTEMPT_UNAVAILABLE && result != RL_ATTEMPT_FAILED &&
         result != RL_ATTEMPT_CANCELLED;
}

static void run_pass(rl_device_runner *runner, const rl_claim *claim) {
  rl_attempt attempt = {.jobs = runner->jobs,
                        .claim = claim,
                        .worker = &runner->workers[runner->worker_layout->worker_of_pass[claim->pass]],
                        .stopping = &runner->stopping,
                        .records.limit_bytes = RECORDS_LIMIT};
  rl_attempt_result result = attempt_pass(runner, &attempt);
  if (ends_worker(result)) retire_worker(runner, &attempt, result);
  else runner->pause_ms = 0;
  persist_outcome(&attempt, result);
  rl_records_clear(&attempt.records);
}

/* --- the thread ---------------------------------------------------------------------------------------------------------- */

static void *run(void *argument) {
  rl_device_runner *runner = argument;
  int wait_ms = CLAIM_WAIT_MS;
  while (!atomic_load(&runner->stopping)) {
    rl_claim claim;
    rl_error err;
    int rc = rl_queue_claim(runner->jobs, runner->state.id, wait_ms, &claim, &err);
    wait_ms = rc == 1 ? IDLE_RELEASE_MS : CLAIM_WAIT_MS;
    if (rc == 1) {
      run_pass(runner, &claim);
      rl_claim_clear(&claim);
    }
    if (rc == 0) release_workers(runner, NULL); /* so that Nsight Compute can use the counters */
    if (rc >= 0) continue;
    rl_log(RL_LOG_ERROR, "%s: can't claim the next pass: %s", runner->state.id, err.message);
    for (int i = 0; i < CLAIM_WAIT_MS / RL_TICK_MS && !atomic_load(&runner->stopping); i++) sleep_tick();
  }
  for (int i = 0; i < WORKERS_MAX; i++) {
    char exit_status[RL_EXIT_STATUS_SIZE];
    rl_worker_end(&runner->workers[i], STOP_GRACE_MS, exit_status); /* its standard input closes, so it exits at once */
  }
  return NULL;
}

int rl_device_runner_open(const char *program, const rl_device_state *device, const rl_config *config, rl_queue *jobs,
                          rl_device_runner **runner, rl_error *err) {
  const worker_layout *found = find_worker_layout(device->kind);
  if (found == NULL) return rl_fail(err, RL_INPUT, 0, "this daemon does not support devices of kind %s", device->kind);
  rl_device_runner *created = calloc(1, sizeof *created);
  if (created == NULL) return rl_fail(err, RL_SYS, ENOMEM, "no memory for %s", device->id);
  snprintf(created->program, sizeof created->program, "%s", program);
  created->jobs = jobs;
  created->worker_layout = found;
  created->state = *device;
  for (int i = 0; i < WORKERS_MAX; i++) {
    rl_worker *worker = &created->workers[i];
    worker->program = created->program;
    worker->device = created->state.id;
    worker->role = found->roles[i];
    worker->config = config;
  }
  snprintf(created->state.state, sizeof created->state.state, "starting");
  pthread_mutex_init(&created->mutex, NULL);
  int code = pthread_create(&created->thread, NULL, run, created);
  if (code != 0) {
    pthread_mutex_destroy(&created->mutex);
    free(created);
    return rl_fail(err, RL_SYS, code, "can't start a thread for %s: %s", device->id, strerror(code));
  }
  *runner = created;
  return 0;
}

void rl_device_runner_stop(rl_device_runner *runner) { atomic_store(&runner->stopping, true); }

void rl_device_runner_close(rl_device_runner *runner) {
  if (runner == NULL) return;
  rl_device_runner_stop(runner);
  pthread_join(runner->thread, NULL);
  pthread_mutex_destroy(&runner->mutex);
  free(runner);
}
