/* Implements device_runner.h. GET /devices returns the state of a device: idle, starting (the thread pauses before it starts a
 * worker, or waits for its HELLO) or busy (a pass runs). The worker is kept after the results DONE, UNAVAILABLE, FAILED and
 * CANCELLED, and ended after every other result. The outcome of a pass is stored before the next pass is claimed. */
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
#include "supervisor/outcome.h"

enum { CLAIM_WAIT_MS = 1000, IDLE_RELEASE_MS = 200, EXIT_WAIT_MS = 1000, STOP_GRACE_MS = 200 };
/* A pass waits for the HELLO of a spare worker at most until this time after the start of the worker, and then ends the worker.
 * If the pass needs the worker, ending it costs time, because a new process must start. If the pass does not need it, the pass
 * waits only because a process that is starting would disturb its measurements. */
enum { NEEDED_SPARE_WAIT_MS = 5000, OTHER_SPARE_WAIT_MS = 2000 };
enum { CUDA_OUT_OF_MEMORY = 2 }; /* cudaErrorMemoryAllocation */
static const int64_t NS_PER_S = 1000000000, NS_PER_MS = 1000000, MIN_PAUSE_MS = 250, MAX_PAUSE_MS = 30000;
static const size_t MAX_RECORDS_BYTES = (size_t)512 << 20;

/* The workers of a kind of device, and which of them executes each pass. On CUDA a separate worker, which never loads CUPTI,
 * executes the timing pass. */
enum { MAX_WORKERS = 2 };
typedef struct worker_layout {
  const char *kind;
  const char *roles[MAX_WORKERS];
  int worker_of_pass[RL_PASS_COUNT];
  bool reads_upload; /* each process executes one pass, and inherits the descriptor of the uploaded file */
} worker_layout;
static const worker_layout worker_layouts[] = {
    {"cpu", {"any", NULL}, {0, 0, 0}},
    {"cuda", {"unprofiled", "profiled"}, {[RL_PASS_TIMING] = 0, [RL_PASS_ACTIVITY] = 1, [RL_PASS_COUNTERS] = 1}},
    {"import", {"any", NULL}, {0, 0, 0}, .reads_upload = true},
};

static const worker_layout *find_worker_layout(const char *kind) {
  for (size_t i = 0; i < sizeof worker_layouts / sizeof *worker_layouts; i++)
    if (strcmp(worker_layouts[i].kind, kind) == 0) return &worker_layouts[i];
  return NULL;
}

bool rl_device_runner_supports(const char *kind) { return find_worker_layout(kind) != NULL; }

/* The pause between the failure of a worker and the next start. */
typedef struct restart_pause {
  int64_t length_ms;
  int64_t end_ns; /* rl_monotonic_ns at which the pause ends */
} restart_pause;

struct rl_device_runner {
  char program[RL_PATH_SIZE];
  rl_queue *jobs;
  rl_upload_spool *uploads;
  const worker_layout *worker_layout;
  rl_worker workers[MAX_WORKERS];
  restart_pause crash_pause;               /* before a worker starts, after a crash during a pass */
  restart_pause spare_pauses[MAX_WORKERS]; /* before a spare worker of each role starts, after one that has sent no HELLO */
  bool needs_spares;                       /* spare workers must be started when the device is idle */
  char spare_build[RL_WORKER_BUILD_SIZE];  /* rl_claim.worker_build of the last posted code; the next spare workers run it */
  int64_t spares_until_ns;                 /* rl_monotonic_ns at which spare workers are ended; 0: there are none */
  int64_t out_of_memory_job_id;            /* id of the last job whose pass was repeated because it ran out of device memory */
  rl_spill *spill; /* NULL: the spill file could not be allocated, or this is the runner of the importer */
  atomic_bool stopping;
  pthread_t thread;
  pthread_mutex_t mutex;
  rl_device_state state; /* guarded by mutex, except id and kind, which never change. rl_device_runner_state fills in job_id,
                            frames and bytes */
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
  for (int i = 0; i < MAX_WORKERS; i++) {
    state->frames += runner->workers[i].received_frames;
    state->bytes += runner->workers[i].received_bytes;
  }
  if (job_id == 0) snprintf(state->state, sizeof state->state, "idle");
}

static void sleep_poll_interval(void) { nanosleep(&(struct timespec){.tv_nsec = RL_POLL_INTERVAL_MS * NS_PER_MS}, NULL); }

/* Called after the failure of a worker: begins a pause that is twice as long as the previous one. */
static void double_restart_pause(restart_pause *pause) {
  int64_t longer = pause->length_ms == 0 ? MIN_PAUSE_MS : pause->length_ms * 2;
  pause->length_ms = longer < MAX_PAUSE_MS ? longer : MAX_PAUSE_MS;
  pause->end_ns = rl_monotonic_ns() + pause->length_ms * NS_PER_MS;
}

static bool is_over(const restart_pause *pause) { return rl_monotonic_ns() >= pause->end_ns; }

/* Called after workers have begun to open the device. If several workers are opening it now, none of them can measure the memory
 * of its CUDA context. */
static void mark_overlapping_openings(rl_device_runner *runner) {
  int opening_count = 0;
  for (int i = 0; i < MAX_WORKERS; i++) opening_count += rl_worker_is_opening(&runner->workers[i]);
  for (int i = 0; i < MAX_WORKERS && opening_count > 1; i++)
    if (rl_worker_is_opening(&runner->workers[i])) runner->workers[i].opening_overlapped = true;
}

/* --- one pass ---------------------------------------------------------------------------------------------------------- */

/* Starts the worker's process and reads its HELLO. Returns FAILED if the uploaded file is missing, because another attempt would
 * fail too. */
static rl_attempt_result start_process(rl_device_runner *runner, rl_attempt *attempt) {
  RL_CLEANUP(rl_close_descriptor) int file = -1;
  rl_error *err = &attempt->error;
  if (runner->worker_layout->reads_upload) {
    file = rl_upload_open_file(runner->uploads, attempt->claim->run.params, err);
    if (file < 0) return RL_ATTEMPT_FAILED;
  }
  if (rl_worker_start(attempt->worker, file, err) < 0) return RL_ATTEMPT_DIED;
  mark_overlapping_openings(runner);
  return rl_attempt_handshake(attempt, RL_HELLO_WAIT_MS);
}

/* Waits until the pause after a crash is over, starts the worker of this pass, and reads its HELLO. */
static rl_attempt_result start_worker(rl_device_runner *runner, rl_attempt *attempt) {
  set_state(runner, "starting");
  while (!is_over(&runner->crash_pause)) {
    rl_attempt_result interruption = rl_attempt_check_interruption(attempt);
    if (interruption != RL_ATTEMPT_CONTINUE) return interruption;
    sleep_poll_interval();
  }
  return start_process(runner, attempt);
}

/* Makes every worker except `except` (NULL: every worker) release its hardware counters. */
static void release_workers(rl_device_runner *runner, const rl_worker *except) {
  for (rl_worker *worker = runner->workers; worker < runner->workers + MAX_WORKERS; worker++)
    if (worker != except) rl_worker_release(worker);
}

/* Returns whether the passes of the claimed job need all device memory, because one of them ran out of it while other workers
 * held a part. Then only the worker of the pass may run. */
static bool needs_all_memory(const rl_device_runner *runner, const rl_claim *claim) {
  return claim->job_id == runner->out_of_memory_job_id;
}

/* Returns whether the passes of the claimed job need workers of every role: the job has posted code and a counters pass. The
 * workers of such a job start at the same time, unless it needs all device memory. For other jobs with posted code, the second
 * worker starts after the pass, so that the pass waits for one start only. */
static bool needs_all_workers(const rl_device_runner *runner, const rl_claim *claim) {
  return claim->source_json != NULL && claim->profile[0] != '\0' && !needs_all_memory(runner, claim);
}

static bool executes_pass(const rl_device_runner *runner, const rl_worker *worker, int pass) {
  return worker == &runner->workers[runner->worker_layout->worker_of_pass[pass]];
}

/* Returns whether the worker executes the claimed pass or later passes of the job. The queue orders the passes of a job by their
 * rl_pass. */
static bool has_pass_left(const rl_device_runner *runner, const rl_worker *worker, const rl_claim *claim) {
  for (int pass = (int)claim->pass; pass < RL_PASS_COUNT; pass++)
    if (executes_pass(runner, worker, pass)) return true;
  return false;
}

/* Returns whether the pass needs the worker, or the worker must start at the same time. */
static bool is_needed(const rl_device_runner *runner, const rl_worker *worker, const rl_claim *claim) {
  return (needs_all_workers(runner, claim) && has_pass_left(runner, worker, claim)) ||
         executes_pass(runner, worker, (int)claim->pass);
}

/* Ends the workers that the pass needs if they run another build than the job's. Called before workers are replaced and started,
 * so that no process of another build starts only to be ended. */
static void select_build(rl_device_runner *runner, const rl_claim *claim) {
  for (int i = 0; i < MAX_WORKERS && runner->worker_layout->roles[i] != NULL; i++)
    if (is_needed(runner, &runner->workers[i], claim)) rl_worker_select_build(&runner->workers[i], claim->worker_build);
}

/* Returns whether a spare worker may take the place of this worker now: no worker of its role has failed to start shortly
 * before. */
static bool may_start_spare(const rl_device_runner *runner, const rl_worker *worker) {
  return is_over(&runner->crash_pause) && is_over(&runner->spare_pauses[worker - runner->workers]);
}

/* Returns whether a worker that may not execute another job gets a successor now. claim: the next pass; NULL: there is none, and
 * the successor is a spare worker. */
static bool gets_successor(const rl_device_runner *runner, const rl_worker *worker, const rl_claim *claim) {
  if (claim != NULL) return is_needed(runner, worker, claim);
  return worker->config->spare_worker_s > 0 && may_start_spare(runner, worker);
}

/* Replaces the workers that have executed posted code of another job than that of the claim (NULL: of any job), or ends them if
 * they get no successor. The new processes start concurrently, so the next job waits for the slowest start only, and not at all
 * if the device was idle long enough. */
static void replace_workers_with_posted_code(rl_device_runner *runner, const rl_claim *claim) {
  char exit_status[RL_EXIT_STATUS_SIZE];
  const int64_t job_id = claim != NULL ? claim->job_id : 0;
  for (rl_worker *worker = runner->workers; worker < runner->workers + MAX_WORKERS; worker++)
    if (rl_worker_has_run_other_posted_code(worker, job_id) && gets_successor(runner, worker, claim)) rl_worker_replace(worker);
  for (rl_worker *worker = runner->workers; worker < runner->workers + MAX_WORKERS; worker++)
    if (rl_worker_has_run_other_posted_code(worker, job_id)) rl_worker_end(worker, 0, exit_status);
  for (rl_worker *worker = runner->workers; worker < runner->workers + MAX_WORKERS; worker++) rl_worker_reap_killed(worker);
}

/* Kills the workers that have executed their last pass of a job with posted code. They will be replaced anyway, and while another
 * process has a context on the device, the profiler takes longer to access the registers of the counters. */
static void kill_workers_without_passes(rl_device_runner *runner, const rl_claim *claim) {
  for (rl_worker *worker = runner->workers; worker < runner->workers + MAX_WORKERS; worker++)
    if (worker->posted_code_job_id == claim->job_id && !has_pass_left(runner, worker, claim)) rl_worker_kill(worker);
}

/* Starts the workers that have no process, in this build. A worker that must pause is started by a later call. claim: starts only
 * workers that this pass needs; NULL: all. */
static void start_spares(rl_device_runner *runner, const char *build, const rl_claim *claim) {
  runner->needs_spares = false;
  for (int i = 0; i < MAX_WORKERS && runner->worker_layout->roles[i] != NULL; i++) {
    rl_worker *worker = &runner->workers[i];
    if (worker->process.pid != 0 || (claim != NULL && !is_needed(runner, worker, claim))) continue;
    if (may_start_spare(runner, worker)) {
      rl_worker_select_build(worker, build);
      rl_worker_start_ahead(worker);
    } else {
      runner->needs_spares = true;
    }
  }
}

/* Ends the spare workers: the workers that have not executed a pass. Lets no more of them start. */
static void end_spares(rl_device_runner *runner) {
  char exit_status[RL_EXIT_STATUS_SIZE];
  for (rl_worker *worker = runner->workers; worker < runner->workers + MAX_WORKERS; worker++) {
    if (worker->process.pid == 0 || worker->last_job_id != 0) continue;
    rl_log(RL_LOG_INFO, "%s: ended the spare %s", worker->device, rl_worker_name(worker));
    rl_worker_end(worker, EXIT_WAIT_MS, exit_status);
  }
  runner->needs_spares = false;
  runner->spares_until_ns = 0;
}

/* Called after a pass with posted code. Spare workers then wait spare_worker_s (a setting) for the next posted code. If it is 0,
 * no spare worker starts, and a worker that was started for the job but has not executed a pass ends when the device is idle. */
static void keep_spares(rl_device_runner *runner, const rl_claim *claim) {
  const int64_t spare_worker_s = runner->workers->config->spare_worker_s;
  runner->needs_spares = spare_worker_s > 0;
  snprintf(runner->spare_build, sizeof runner->spare_build, "%s", claim->worker_build);
  runner->spares_until_ns = rl_monotonic_ns() + spare_worker_s * NS_PER_S;
}

/* Ends a worker that was started ahead and has sent no valid HELLO. */
static void end_failed_spare(rl_device_runner *runner, rl_worker *worker, const rl_error *reason) {
  char exit_status[RL_EXIT_STATUS_SIZE];
  rl_worker_end(worker, 0, exit_status);
  double_restart_pause(&runner->spare_pauses[worker - runner->workers]);
  rl_log(RL_LOG_WARNING, "%s: the %s that was started ahead was ended: %s", worker->device, rl_worker_name(worker),
         reason->message);
}

/* Lets the started spare workers open the device, each after the HELLO of the previous one, because a worker can't measure the
 * memory of its CUDA context while another worker opens the device. Returns whether a spare worker has not sent HELLO yet. */
static bool open_next_spare(rl_device_runner *runner) {
  rl_frame frame;
  rl_error err;
  for (rl_worker *worker = runner->workers; worker < runner->workers + MAX_WORKERS; worker++) {
    if (worker->process.pid == 0 || worker->is_ready) continue;
    rl_worker_open_device(worker);
    mark_overlapping_openings(runner);
    if (rl_worker_read_frame(worker, 0, &frame, &err) >= 0 && rl_attempt_accept_hello(runner->jobs, worker, &frame, &err) >= 0) {
      runner->spare_pauses[worker - runner->workers] = (restart_pause){0};
      continue;
    }
    if (err.domain == RL_WIRE && err.code == RL_WIRE_TIMEOUT &&
        rl_monotonic_ns() < worker->started_ns + RL_HELLO_WAIT_MS * NS_PER_MS)
      return true;
    end_failed_spare(runner, worker, &err);
  }
  return false;
}

/* Waits for the HELLO of a worker that was started before its pass, until wait_ms after its start. If the worker sends no valid
 * HELLO, ends the worker and returns CONTINUE: the pass that needs it starts another process. */
static rl_attempt_result read_hello_of_idle_worker(rl_device_runner *runner, rl_attempt attempt, rl_worker *worker, int wait_ms) {
  attempt.worker = worker;
  rl_attempt_result result = rl_attempt_handshake(&attempt, wait_ms);
  if (result == RL_ATTEMPT_CONTINUE) runner->spare_pauses[worker - runner->workers] = (restart_pause){0};
  if (result != RL_ATTEMPT_DIED) return result;
  end_failed_spare(runner, worker, &attempt.error);
  return RL_ATTEMPT_CONTINUE;
}

/* Lets the started workers that the pass needs open the device, and ends those that it does not need and that have not begun to
 * open it: they start again when the device is idle. */
static void open_needed_workers(rl_device_runner *runner, const rl_claim *claim) {
  char exit_status[RL_EXIT_STATUS_SIZE];
  for (rl_worker *worker = runner->workers; worker < runner->workers + MAX_WORKERS; worker++) {
    if (is_needed(runner, worker, claim)) rl_worker_open_device(worker);
    if (!worker->waits_for_open) continue;
    rl_worker_end(worker, 0, exit_status);
    runner->needs_spares = true;
  }
  mark_overlapping_openings(runner);
}

/* Waits until all started workers have sent HELLO, because a process that is still starting would disturb the measurements of
 * another worker. Ends the workers that don't send it. attempt_begin_ns: rl_monotonic_ns; workers that were started before are
 * spare workers. */
static rl_attempt_result await_started_workers(rl_device_runner *runner, const rl_attempt *attempt, int64_t attempt_begin_ns) {
  rl_attempt_result result = RL_ATTEMPT_CONTINUE;
  open_needed_workers(runner, attempt->claim);
  for (int i = 0; i < MAX_WORKERS && result == RL_ATTEMPT_CONTINUE; i++) {
    rl_worker *worker = &runner->workers[i];
    if (worker->process.pid == 0 || worker->is_ready) continue;
    int wait_ms = is_needed(runner, worker, attempt->claim) ? NEEDED_SPARE_WAIT_MS : OTHER_SPARE_WAIT_MS;
    if (worker->started_ns >= attempt_begin_ns) wait_ms = RL_HELLO_WAIT_MS;
    result = read_hello_of_idle_worker(runner, *attempt, worker, wait_ms);
  }
  return result;
}

static bool is_out_of_memory(const rl_error *err) { return err->domain == RL_CUDA && err->code == CUDA_OUT_OF_MEMORY; }

/* Ends the idle workers, whose contexts and instances hold device memory, and waits for the exit of killed ones. Returns whether
 * there was any. */
static bool end_other_workers(rl_device_runner *runner, const rl_worker *active) {
  char exit_status[RL_EXIT_STATUS_SIZE];
  bool ended = false;
  for (rl_worker *worker = runner->workers; worker < runner->workers + MAX_WORKERS; worker++) {
    if (worker == active) continue;
    rl_worker_verify_idle(worker); /* ends a worker that has died, which is no longer holding memory */
    if (worker->process.pid == 0 && worker->previous.pid == 0) continue;
    rl_worker_end(worker, EXIT_WAIT_MS, exit_status);
    ended = true;
  }
  return ended;
}

/* Runs the pass. If device memory is exhausted and other workers hold a part of it, ends them and runs the pass once more. The
 * later passes of the job then run without other workers from the start (attempt_pass), so that none of them is executed twice.
 */
static rl_attempt_result run_attempt(rl_device_runner *runner, rl_attempt *attempt) {
  rl_attempt_result result = rl_attempt_run(attempt);
  if (result != RL_ATTEMPT_FAILED || !is_out_of_memory(&attempt->error) || !end_other_workers(runner, attempt->worker))
    return result;
  rl_log(RL_LOG_INFO, "job %lld, %s pass: %s: ended the other workers of %s, and the pass is executed again",
         (long long)attempt->claim->job_id, rl_pass_names[attempt->claim->pass], attempt->error.message, runner->state.id);
  runner->out_of_memory_job_id = attempt->claim->job_id;
  result = rl_attempt_discard_results(attempt);
  return result == RL_ATTEMPT_CONTINUE ? rl_attempt_run(attempt) : result;
}

static rl_attempt_result attempt_pass(rl_device_runner *runner, rl_attempt *attempt) {
  const int64_t begin_ns = rl_monotonic_ns();
  select_build(runner, attempt->claim);
  replace_workers_with_posted_code(runner, attempt->claim);
  kill_workers_without_passes(runner, attempt->claim);
  if (needs_all_workers(runner, attempt->claim)) start_spares(runner, attempt->claim->worker_build, attempt->claim);
  rl_attempt_result result = await_started_workers(runner, attempt, begin_ns);
  if (result != RL_ATTEMPT_CONTINUE) return result;
  if (needs_all_memory(runner, attempt->claim)) end_other_workers(runner, attempt->worker);
  release_workers(runner, attempt->worker);
  rl_worker_verify_idle(attempt->worker);
  if (attempt->claim->fresh_worker) rl_worker_end_after_other_job(attempt->worker, attempt->claim->job_id);
  result = attempt->worker->process.pid == 0 ? start_worker(runner, attempt) : rl_attempt_check_interruption(attempt);
  if (result != RL_ATTEMPT_CONTINUE) return result;
  set_state(runner, "busy");
  return run_attempt(runner, attempt);
}

/* Ends the worker and completes attempt->error with the reason. After a crash also doubles the pause before the next start. */
static void retire_worker(rl_device_runner *runner, rl_attempt *attempt, rl_attempt_result result) {
  char exit_status[RL_EXIT_STATUS_SIZE] = "was not started";
  bool exited_by_itself = result == RL_ATTEMPT_DIED && attempt->error.domain == RL_WIRE &&
                          (attempt->error.code == RL_WIRE_CLOSED || attempt->error.code == RL_WIRE_TRUNCATED);
  rl_worker_end(attempt->worker, exited_by_itself ? EXIT_WAIT_MS : 0, exit_status);
  if (result != RL_ATTEMPT_DIED) return;
  double_restart_pause(&runner->crash_pause);
  pthread_mutex_lock(&runner->mutex);
  runner->state.restarts++;
  pthread_mutex_unlock(&runner->mutex);
  if (exited_by_itself) /* the exit status is more precise than the closed pipe */
    rl_fail(&attempt->error, RL_WIRE, RL_WIRE_CLOSED, "the %s %s", rl_worker_name(attempt->worker), exit_status);
  else rl_wrap(&attempt->error, "the %s was ended", rl_worker_name(attempt->worker));
  rl_log(RL_LOG_WARNING, "job %lld, %s pass of %s on %s: %s", (long long)attempt->claim->job_id,
         rl_pass_names[attempt->claim->pass], attempt->claim->run.variant, runner->state.id, attempt->error.message);
}

/* Returns whether the worker must be ended after this result. */
static bool ends_worker(rl_attempt_result result) {
  return result != RL_ATTEMPT_DONE && result != RL_ATTEMPT_UNAVAILABLE && result != RL_ATTEMPT_FAILED &&
         result != RL_ATTEMPT_CANCELLED;
}

/* Deletes the activity rows of a pass that was not committed. If this fails, or the daemon stops before, the rows are deleted
 * later: before the pass is executed again, or by retention. */
static void discard_uncommitted_rows(const rl_attempt *attempt) {
  rl_error err;
  if (attempt->appender != NULL && rl_queue_discard_activity(attempt->jobs, attempt->claim, attempt->stopping, &err) < 0)
    rl_log(RL_LOG_WARNING, "job %lld: can't delete rows that were not committed: %s", (long long)attempt->claim->job_id,
           err.message);
}

static void run_pass(rl_device_runner *runner, const rl_claim *claim) {
  rl_attempt attempt = {.jobs = runner->jobs,
                        .claim = claim,
                        .worker = &runner->workers[runner->worker_layout->worker_of_pass[claim->pass]],
                        .stopping = &runner->stopping,
                        .records.limit_bytes = MAX_RECORDS_BYTES};
  rl_attempt_result result = rl_attempt_discard_rows(&attempt);
  if (result == RL_ATTEMPT_CONTINUE) result = attempt_pass(runner, &attempt);
  if (ends_worker(result) || runner->worker_layout->reads_upload) retire_worker(runner, &attempt, result);
  if (!ends_worker(result)) runner->crash_pause.length_ms = 0;
  if (claim->source_json != NULL) keep_spares(runner, claim);
  rl_outcome_store(&attempt, result, runner->spill);
  discard_uncommitted_rows(&attempt);
  if (runner->worker_layout->reads_upload) rl_upload_spool_delete_unneeded(runner->uploads);
  rl_attempt_clear(&attempt);
}

/* Called when there is no pass to execute. Replaces workers that have executed posted code. When the replaced workers have
 * started, starts the workers that have no process, so that the next job with posted code need not wait for their start. Makes
 * all other workers release the hardware counters, so that Nsight Compute can use them. Returns the time in ms after which it
 * must be called again. */
static int prepare_idle_workers(rl_device_runner *runner) {
  if (atomic_load(&runner->stopping)) return 0;
  replace_workers_with_posted_code(runner, NULL);
  if (runner->spares_until_ns != 0 && rl_monotonic_ns() >= runner->spares_until_ns) end_spares(runner);
  bool is_starting = open_next_spare(runner);
  if (!is_starting && runner->needs_spares) {
    start_spares(runner, runner->spare_build, NULL);
    is_starting = open_next_spare(runner);
  }
  release_workers(runner, NULL);
  return is_starting ? RL_POLL_INTERVAL_MS : CLAIM_WAIT_MS;
}

/* --- the thread ---------------------------------------------------------------------------------------------------------- */

static void *run_device_thread(void *argument) {
  rl_device_runner *runner = argument;
  int wait_ms = CLAIM_WAIT_MS;
  bool can_claim = true;
  while (!atomic_load(&runner->stopping)) {
    rl_claim claim;
    rl_error err;
    int rc = rl_queue_claim_pass(runner->jobs, runner->state.id, wait_ms, &claim, &err);
    wait_ms = CLAIM_WAIT_MS;
    if (rc == 1) {
      run_pass(runner, &claim);
      rl_claim_clear(&claim);
      wait_ms = runner->needs_spares ? 0 : IDLE_RELEASE_MS;
    }
    if (rc == 0) wait_ms = prepare_idle_workers(runner);
    if (rc < 0 && can_claim) rl_log(RL_LOG_ERROR, "%s: can't claim passes: %s", runner->state.id, err.message);
    if (rc >= 0 && !can_claim) rl_log(RL_LOG_INFO, "%s: can claim passes again", runner->state.id);
    can_claim = rc >= 0;
    if (can_claim) continue;
    for (int i = 0; i < CLAIM_WAIT_MS / RL_POLL_INTERVAL_MS && !atomic_load(&runner->stopping); i++) sleep_poll_interval();
  }
  for (int i = 0; i < MAX_WORKERS; i++) {
    char exit_status[RL_EXIT_STATUS_SIZE];
    rl_worker_end(&runner->workers[i], STOP_GRACE_MS, exit_status); /* closes the worker's standard input, and the worker exits */
  }
  return NULL;
}

/* Opens the spill file, except for the importer: an import can be repeated, because the uploaded file is kept until its job has
 * ended. */
static void open_spill(rl_device_runner *runner, const rl_config *config) {
  rl_error err;
  if (config->spill_bytes == 0 || runner->worker_layout->reads_upload) return;
  if (rl_spill_open(config->state, runner->state.id, config->spill_bytes, &runner->spill, &err) < 0)
    rl_log(RL_LOG_WARNING, "%s: results that can't be stored wait in memory only: %s", runner->state.id, err.message);
}

int rl_device_runner_open(const char *program, const rl_device_state *device, const rl_runner_services *services,
                          rl_device_runner **runner, rl_error *err) {
  const worker_layout *found = find_worker_layout(device->kind);
  if (found == NULL) return rl_fail(err, RL_INPUT, 0, "this daemon does not support devices of kind %s", device->kind);
  rl_device_runner *created = calloc(1, sizeof *created);
  if (created == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for %s", device->id);
  snprintf(created->program, sizeof created->program, "%s", program);
  created->jobs = services->jobs;
  created->uploads = services->uploads;
  created->worker_layout = found;
  created->state = *device;
  for (int i = 0; i < MAX_WORKERS; i++) {
    rl_worker *worker = &created->workers[i];
    worker->program = created->program;
    worker->device = created->state.id;
    worker->role = found->roles[i];
    worker->config = services->config;
  }
  snprintf(created->state.state, sizeof created->state.state, "starting");
  open_spill(created, services->config);
  pthread_mutex_init(&created->mutex, NULL);
  int code = pthread_create(&created->thread, NULL, run_device_thread, created);
  if (code != 0) {
    pthread_mutex_destroy(&created->mutex);
    rl_spill_close(created->spill);
    free(created);
    return rl_fail(err, RL_ERRNO, code, "can't start a thread for %s: %s", device->id, strerror(code));
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
  rl_spill_close(runner->spill);
  free(runner);
}
