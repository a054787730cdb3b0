/* Implements suite_runner.h. The state of a suite run is queued, then running, then a final state. One thread executes the suite
 * runs of all devices. For each device it has a slot with the device's suite run: when the run's current job has ended, the
 * thread stores the job's values and submits the job of the next step. Submissions and cancellations wake the thread. While a
 * suite run is active, the thread also polls the run's job every 50 ms. The thread cancels the unfinished job of a run that has
 * ended, and tries again while the database can't be written. */
#include "suite/suite_runner.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/log.h"
#include "store/suites.h"
#include "suite/suite_judgement.h"
#include "suite/suite_progress.h"

enum { POLL_MS = 50, RETRY_MS = 1000 };
#define CANARY_LIMIT_RATIO 0.02

/* A device of the daemon and the suite run that the device executes. Only the runner's thread uses slots. */
typedef struct slot {
  char device[16];
  int64_t run_id, job_id; /* job_id: the current job of the run; 0: none */
  int64_t next_start_ns;  /* rl_monotonic_ns of the next attempt after a temporary error */
  bool is_waiting;        /* a temporary error was logged, and the run has not continued since */
} slot;

struct rl_suite_runner {
  rl_store *store;
  rl_queue *queue;
  rl_job_policy policy;
  int64_t queue_limit;
  slot slots[RL_DEVICES_MAX];
  int slot_count;
  pthread_t thread;
  pthread_mutex_t mutex; /* guards the members below */
  pthread_cond_t woken;
  uint64_t wake_count; /* number of submissions and cancellations; the thread waits until it changes */
  atomic_bool stopping;
  rl_listener listener;
};

static void wake(rl_suite_runner *runner) {
  pthread_mutex_lock(&runner->mutex);
  runner->wake_count++;
  pthread_cond_signal(&runner->woken);
  pthread_mutex_unlock(&runner->mutex);
}

void rl_suite_runner_set_listener(rl_suite_runner *runner, rl_listener_function *on_event, void *context) {
  if (runner == NULL) return;
  rl_listener_set(&runner->listener, on_event, context);
}

/* Returns whether the failed operation may succeed when it is repeated. */
static bool is_temporary(const rl_error *err) {
  return err->domain == RL_STORAGE || err->domain == RL_LIMIT || err->domain == RL_ERRNO ||
         (err->domain == RL_HTTP && (err->code == 429 || err->code == 503));
}

/* --- values ------------------------------------------------------------------------------------------------------------ */

typedef struct value_list {
  rl_suite_value *values;
  int count;
} value_list;

/* Returns the variant of the suite's job that corresponds to this variant of the measured baseline's job; NULL if there is
 * none. */
static const char *find_current_variant(const rl_suite_progress *progress, const char *job_name, const char *variant) {
  const rl_suite_job *job = rl_suite_find_job(progress->suite, job_name),
                     *baseline = rl_suite_find_job(progress->measured_baseline, job_name);
  for (int i = 0; i < baseline->variant_count; i++)
    if (strcmp(baseline->variants[i], variant) == 0) return job->variants[i];
  return NULL;
}

static int add_value(const rl_suite *suite, const char *job, const char *metric, const char *variant, rl_cursor *cursor,
                     const char *dropped_reason, value_list *list, rl_error *err) {
  const rl_suite_metric *wanted = rl_suite_find_metric(suite, job, variant, metric);
  char key[RL_SUITE_KEY_SIZE];
  if (wanted == NULL) return 0;
  rl_suite_format_key(job, variant, metric, key);
  for (int i = 0; i < list->count; i++)
    if (strcmp(list->values[i].metric, key) == 0) return 0; /* two metrics of the definition apply to this run */
  rl_suite_value *grown = realloc(list->values, (size_t)(list->count + 1) * sizeof *grown);
  if (grown == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for the values of a suite run");
  list->values = grown;
  rl_suite_value *value = &grown[list->count++];
  const char *dropped = dropped_reason != NULL ? dropped_reason : rl_cursor_text(cursor, 3), *others = rl_cursor_text(cursor, 4);
  *value = (rl_suite_value){.value = rl_cursor_real(cursor, 1), .cycles = rl_cursor_real(cursor, 2)};
  memcpy(value->metric, key, sizeof key);
  snprintf(value->dropped_reason, sizeof value->dropped_reason, "%s", dropped != NULL ? dropped : "");
  snprintf(value->other_processes, sizeof value->other_processes, "%s", others != NULL ? others : "");
  return 0;
}

/* Adds the values of one metric in each run of a step's job to the list. */
static int read_metric(rl_store *store, const rl_suite_progress *progress, const rl_suite_step_row *row, const char *metric,
                       const char *dropped_reason, value_list *list, rl_error *err) {
  bool measures_baseline = rl_suite_role_measures_baseline(row->role);
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *variant;
  int found;
  if (rl_store_query(store, RL_QUERY_SUITE_JOB_VALUES,
                     RL_BINDINGS(RL_BIND_INTEGER(":job", row->job_id), RL_BIND_TEXT(":metric", metric)), &cursor, err) < 0)
    return -1;
  while ((found = rl_cursor_next(cursor, &variant, err)) > 0) {
    if (measures_baseline) variant = find_current_variant(progress, row->job_name, variant);
    if (variant != NULL && add_value(progress->suite, row->job_name, metric, variant, cursor, dropped_reason, list, err) < 0)
      return -1;
  }
  return found;
}

static int read_values(rl_store *store, const rl_suite_progress *progress, const rl_suite_step_row *row,
                       const char *dropped_reason, value_list *list, rl_error *err) {
  const rl_suite *suite = progress->suite;
  for (int i = 0; i < suite->metric_count; i++)
    if (strcmp(suite->metrics[i].job, row->job_name) == 0 &&
        read_metric(store, progress, row, suite->metrics[i].metric, dropped_reason, list, err) < 0)
      return -1;
  return 0;
}

/* Writes why a job has no values into `reason`, for example "job 7 failed: the profiled worker was killed by signal 11". */
static void describe_end(rl_suite_runner *runner, int64_t job_id, rl_job_state state, char *reason, size_t size) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *problem = "";
  rl_error ignored;
  if (state == RL_JOB_FAILED &&
      rl_store_query(runner->store, RL_QUERY_SUITE_JOB_PROBLEM, RL_BINDINGS(RL_BIND_INTEGER(":job", job_id)), &cursor,
                     &ignored) == 0 &&
      rl_cursor_next(cursor, &problem, &ignored) <= 0)
    problem = "";
  snprintf(reason, size, "job %lld %s%s%.200s", (long long)job_id, state == RL_JOB_CANCELLED ? "was cancelled" : "failed",
           problem[0] != '\0' ? ": " : "", problem);
}

/* Stores the end of a step's job; also its values, if its role has values. */
static int store_end_of_job(rl_suite_runner *runner, const rl_suite_progress *progress, const rl_suite_step_row *row,
                            rl_job_state state, rl_error *err) {
  value_list list = {0};
  char reason[256];
  const rl_suite_step step = {row->role, row->block, row->job_name};
  bool completed = state == RL_JOB_COMPLETED, has_values = rl_suite_role_has_values(row->role);
  describe_end(runner, row->job_id, state, reason, sizeof reason);
  int rc = has_values ? read_values(runner->store, progress, row, completed ? NULL : reason, &list, err) : 0;
  if (rc == 0)
    rc = rl_store_suite_job_finish(runner->store, progress->id, &step, row->job_id, rl_job_state_names[state],
                                   completed ? NULL : reason, list.values, list.count, err);
  free(list.values);
  return rc;
}

/* --- canary ------------------------------------------------------------------------------------------------------------ */

/* Compares the rates that two ceilings jobs have measured. Writes the reason into `reason` if a rate differs by more than
 * CANARY_LIMIT_RATIO. */
static int compare_canaries(rl_store *store, int64_t before, int64_t after, char *reason, size_t size, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *name;
  int found, rates = 0;
  double largest = 0;
  if (rl_store_query(store, RL_QUERY_SUITE_CANARIES,
                     RL_BINDINGS(RL_BIND_INTEGER(":before", before), RL_BIND_INTEGER(":after", after)), &cursor, err) < 0)
    return -1;
  for (; (found = rl_cursor_next(cursor, &name, err)) > 0; rates++) {
    double change = rl_cursor_real(cursor, 2) / rl_cursor_real(cursor, 1) - 1;
    if (fabs(change) <= CANARY_LIMIT_RATIO || fabs(change) <= largest) continue;
    largest = fabs(change);
    snprintf(reason, size, "The canary's %s changed by %+.1f %% from before to after the blocks; the limit is 2 %%.", name,
             100 * change);
  }
  if (found == 0 && rates == 0) snprintf(reason, size, "The canary measured no rate before and after the blocks.");
  return found;
}

/* Writes into `reason` why the values of the run can't be trusted; "" if they can. */
static int check_canary(rl_suite_runner *runner, const rl_suite_progress *progress, char *reason, size_t size, rl_error *err) {
  reason[0] = '\0';
  if (!rl_suite_has_canary(progress->suite, progress->device)) return 0;
  const rl_suite_step_row *before = rl_suite_find_row(progress, "canary_before", 0, RL_SUITE_CANARY_JOB),
                          *after = rl_suite_find_row(progress, "canary_after", 0, RL_SUITE_CANARY_JOB);
  if (before != NULL && after != NULL && strcmp(before->state, "completed") == 0 && strcmp(after->state, "completed") == 0)
    return compare_canaries(runner->store, before->job_id, after->job_id, reason, size, err);
  snprintf(reason, size, "A canary job did not complete.");
  return 0;
}

/* --- the end of a run -------------------------------------------------------------------------------------------------- */

static int fail_run(rl_suite_runner *runner, int64_t run_id, const char *reason, rl_error *err) {
  const rl_suite_outcome outcome = {.state = "failed", .reason = reason};
  rl_log(RL_LOG_WARNING, "suite run %lld failed: %s", (long long)run_id, reason);
  return rl_store_suite_run_finish(runner->store, run_id, &outcome, err);
}

static int store_verdicts(rl_suite_runner *runner, const rl_suite_progress *progress, const rl_suite_judgement *judgement,
                          const char *quarantine_reason, rl_error *err) {
  char reason[RL_VERDICT_REASON_SIZE + 96];
  int64_t done = rl_suite_count_ended_blocks(progress, "block");
  snprintf(reason, sizeof reason, "%s", judgement->summary.reason);
  if (done < progress->suite->blocks && rl_suite_find_failing_job(progress, "baseline") == NULL) {
    size_t used = strlen(reason);
    snprintf(reason + used, sizeof reason - used, " The time budget of %lld s ended after %lld of %lld blocks.",
             (long long)progress->suite->time_budget_s, (long long)done, (long long)progress->suite->blocks);
  }
  const rl_suite_outcome outcome = {.state = "completed",
                                    .verdict = rl_verdict_name(judgement->summary.verdict),
                                    .reason = reason,
                                    .quarantine_reason = quarantine_reason[0] != '\0' ? quarantine_reason : NULL,
                                    .baseline_runs = judgement->baseline_runs,
                                    .verdicts = judgement->verdicts,
                                    .verdict_count = judgement->verdict_count,
                                    .method_version = RL_VERDICT_METHOD};
  if (rl_store_suite_run_finish(runner->store, progress->id, &outcome, err) < 0) return -1;
  rl_log(RL_LOG_INFO, "suite %s, run %lld on %s: %s: %s", progress->suite->name, (long long)progress->id, progress->device,
         outcome.verdict, reason);
  return 0;
}

static int finish(rl_suite_runner *runner, const rl_suite_progress *progress, rl_error *err) {
  rl_suite_judgement judgement = {0};
  char quarantine_reason[256];
  int rc = check_canary(runner, progress, quarantine_reason, sizeof quarantine_reason, err);
  if (rc == 0)
    rc = rl_suite_judge_run(runner->store, progress, true, quarantine_reason[0] != '\0' ? quarantine_reason : NULL, &judgement,
                            err);
  if (rc == 0) rc = store_verdicts(runner, progress, &judgement, quarantine_reason, err);
  rl_suite_judgement_clear(&judgement);
  return rc;
}

/* --- steps ------------------------------------------------------------------------------------------------------------- */

/* Submits the step's job and sets *job_id. The Idempotency-Key contains spaces, so that no client can send the same key; the
 * statement suite_orphaned_job reads the id of the suite run from it. */
static int submit_step(rl_suite_runner *runner, const rl_suite_progress *progress, const rl_suite_step *step, int64_t *job_id,
                       rl_error *err) {
  RL_CLEANUP(rl_free_text) char *text = rl_suite_step_request(progress, step);
  char key[160], sha256[RL_SHA256_SIZE];
  bool existing;
  rl_job_spec *spec = calloc(1, sizeof *spec);
  int rc = text == NULL || spec == NULL ? rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a job of a suite")
                                        : rl_job_spec_parse(text, strlen(text), &runner->policy, spec, err);
  if (rc == 0) {
    snprintf(key, sizeof key, "suite %lld %s %lld %s", (long long)progress->id, step->role, (long long)step->block,
             step->job_name);
    rl_sha256(text, strlen(text), sha256);
    rc = rl_queue_submit_job(runner->queue, spec, key, sha256, job_id, &existing, err);
    rl_job_spec_clear(spec);
  }
  free(spec);
  return rc;
}

static int start_step(rl_suite_runner *runner, const rl_suite_progress *progress, const rl_suite_step *step, slot *device_slot,
                      rl_error *err) {
  int64_t job_id;
  if (submit_step(runner, progress, step, &job_id, err) < 0 ||
      rl_store_suite_job_insert(runner->store, progress->id, step, job_id, err) < 0)
    return -1;
  device_slot->job_id = job_id;
  return 0;
}

/* Returns 1 and sets *step to the next step; returns 0 if all steps are done. Judges the blocks to determine the jobs that need
 * confirming blocks. */
static int find_step(rl_suite_runner *runner, const rl_suite_progress *progress, rl_suite_step *step, rl_error *err) {
  rl_suite_judgement judgement = {0};
  if (rl_suite_find_failing_job(progress, "baseline") != NULL)
    return 0; /* more values can't change the verdict, which is incomparable */
  if (rl_suite_next_step(progress, NULL, true, step)) return 1;
  if (rl_suite_judge_run(runner->store, progress, false, NULL, &judgement, err) < 0) {
    rl_suite_judgement_clear(&judgement);
    return -1;
  }
  int found = rl_suite_next_step(progress, judgement.unconfirmed_jobs, false, step);
  rl_suite_judgement_clear(&judgement);
  return found;
}

/* Returns the row of the submitted job whose end is not stored yet; NULL if there is none. */
static const rl_suite_step_row *find_submitted(const rl_suite_progress *progress) {
  for (int i = 0; i < progress->row_count; i++)
    if (strcmp(progress->rows[i].state, "submitted") == 0) return &progress->rows[i];
  return NULL;
}

/* Sets *state to the job's state; to RL_JOB_FAILED if the job was deleted. */
static int read_job_state(rl_suite_runner *runner, int64_t job_id, rl_job_state *state, rl_error *err) {
  *state = RL_JOB_FAILED;
  if (job_id == 0 || rl_store_job_state(runner->store, job_id, state, err) == 0) return 0;
  return err->domain == RL_HTTP ? 0 : -1;
}

/* Does the next action of a suite run: stores the values of the job that has ended, submits the job of the next step, or ends the
 * run. Returns 1 if the caller should read the progress and call this function again at once. */
static int do_next_action(rl_suite_runner *runner, rl_suite_progress *progress, slot *device_slot, rl_error *err) {
  rl_suite_step step;
  const rl_suite_step_row *row = find_submitted(progress);
  if (row != NULL) {
    rl_job_state state;
    if (read_job_state(runner, row->job_id, &state, err) < 0) return -1;
    device_slot->job_id = row->job_id;
    if (!rl_job_is_final(state)) return 0;
    device_slot->job_id = 0;
    return store_end_of_job(runner, progress, row, state, err) < 0 ? -1 : 1;
  }
  const rl_suite_step_row *failing = rl_suite_find_failing_job(progress, "block");
  if (failing != NULL) {
    char reason[384];
    snprintf(reason, sizeof reason, "Job %s failed in every block: %s.", failing->job_name, failing->dropped_reason);
    return fail_run(runner, progress->id, reason, err);
  }
  int found = find_step(runner, progress, &step, err);
  if (found < 0) return -1;
  return found > 0 ? start_step(runner, progress, &step, device_slot, err) : finish(runner, progress, err);
}

static void handle_failure(rl_suite_runner *runner, slot *device_slot, const rl_error *failure) {
  rl_error err;
  if (failure->domain == RL_SUITE) return; /* a client has cancelled the suite run */
  if (!is_temporary(failure) && fail_run(runner, device_slot->run_id, failure->message, &err) >= 0) {
    wake(runner); /* cancels the run's job */
    return rl_listener_notify(&runner->listener, device_slot->run_id);
  }
  if (!device_slot->is_waiting)
    rl_log(RL_LOG_WARNING, "suite run %lld is delayed and will be continued: %s", (long long)device_slot->run_id,
           failure->message);
  device_slot->is_waiting = true;
  device_slot->next_start_ns = rl_monotonic_ns() + RETRY_MS * INT64_C(1000000);
}

static void execute(rl_suite_runner *runner, slot *device_slot, bool is_queued) {
  rl_job_state state;
  rl_error err;
  if (rl_monotonic_ns() < device_slot->next_start_ns) return;
  if (device_slot->job_id != 0 && read_job_state(runner, device_slot->job_id, &state, &err) == 0 && !rl_job_is_final(state))
    return;
  device_slot->job_id = 0;
  int rc = is_queued ? rl_store_suite_run_start(runner->store, device_slot->run_id, &err) : 0;
  for (bool again = rc == 0; again && !atomic_load(&runner->stopping); again = rc > 0) {
    rl_suite_progress progress;
    rc = rl_suite_progress_read(runner->store, device_slot->run_id, &progress, &err);
    if (rc == 0) rc = do_next_action(runner, &progress, device_slot, &err);
    rl_suite_progress_clear(&progress);
    rl_listener_notify(&runner->listener, device_slot->run_id);
  }
  if (rc < 0) handle_failure(runner, device_slot, &err);
  else device_slot->is_waiting = false;
}

/* --- the thread -------------------------------------------------------------------------------------------------------- */

static slot *find_slot(rl_suite_runner *runner, const char *device) {
  for (int i = 0; i < runner->slot_count; i++)
    if (strcmp(runner->slots[i].device, device) == 0) return &runner->slots[i];
  if (runner->slot_count == RL_DEVICES_MAX) return NULL;
  slot *added = &runner->slots[runner->slot_count++];
  *added = (slot){0};
  snprintf(added->device, sizeof added->device, "%s", device);
  return added;
}

/* Cancels the unfinished jobs of suite runs that have ended. Returns whether none is left. */
static bool cancel_orphans(rl_suite_runner *runner) {
  rl_error err;
  int64_t job_id;
  int found;
  while ((found = rl_store_suite_find_orphaned_job(runner->store, &job_id, &err)) > 0)
    if (rl_queue_cancel_job(runner->queue, job_id, &err) < 0 && err.domain != RL_HTTP) return false; /* RL_HTTP: it has ended */
  return found == 0;
}

typedef struct active_run {
  int64_t id;
  slot *device_slot;
  bool is_queued;
} active_run;

/* Lists the oldest suite run of each device that has not ended. Returns the number of runs. */
static int list_active(rl_suite_runner *runner, active_run *runs, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *state;
  int found, count = 0;
  if (rl_store_query(runner->store, RL_QUERY_SUITE_RUNS_ACTIVE, NULL, 0, &cursor, err) < 0) return -1;
  while ((found = rl_cursor_next(cursor, &state, err)) > 0) {
    slot *device_slot = find_slot(runner, rl_cursor_text(cursor, 2));
    bool is_taken = device_slot == NULL;
    for (int i = 0; i < count && !is_taken; i++) is_taken = runs[i].device_slot == device_slot;
    if (!is_taken) runs[count++] = (active_run){rl_cursor_integer(cursor, 1), device_slot, strcmp(state, "queued") == 0};
  }
  return found < 0 ? -1 : count;
}

/* Executes the suite runs of all devices as far as possible without waiting. Returns whether at least one suite run has not
 * ended. */
static bool execute_all(rl_suite_runner *runner) {
  active_run runs[RL_DEVICES_MAX];
  rl_error err;
  int count = list_active(runner, runs, &err);
  for (int i = 0; i < count && !atomic_load(&runner->stopping); i++) {
    slot *device_slot = runs[i].device_slot;
    if (device_slot->run_id != runs[i].id) {
      device_slot->run_id = runs[i].id;
      device_slot->job_id = device_slot->next_start_ns = 0;
    }
    execute(runner, device_slot, runs[i].is_queued);
  }
  return count != 0;
}

static void *run_thread(void *argument) {
  rl_suite_runner *runner = argument;
  uint64_t seen = 0;
  bool must_cancel = true; /* true at the start, to cancel jobs of ended suite runs after a crash */
  while (!atomic_load(&runner->stopping)) {
    if (must_cancel) must_cancel = !cancel_orphans(runner);
    bool is_busy = execute_all(runner) || must_cancel;
    const struct timespec until = rl_condition_deadline(POLL_MS * 1000000);
    int waited = 0;
    pthread_mutex_lock(&runner->mutex);
    while (!atomic_load(&runner->stopping) && runner->wake_count == seen && waited != ETIMEDOUT)
      waited = is_busy ? pthread_cond_timedwait(&runner->woken, &runner->mutex, &until)
                       : pthread_cond_wait(&runner->woken, &runner->mutex);
    must_cancel |= runner->wake_count != seen;
    seen = runner->wake_count;
    pthread_mutex_unlock(&runner->mutex);
  }
  return NULL;
}

int rl_suite_runner_open(rl_store *store, rl_queue *queue, const rl_job_policy *policy, int64_t queue_limit,
                         rl_suite_runner **runner, rl_error *err) {
  rl_suite_runner *opened = calloc(1, sizeof *opened);
  if (opened == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for the suites");
  opened->store = store;
  opened->queue = queue;
  opened->policy = *policy;
  opened->queue_limit = queue_limit;
  pthread_mutex_init(&opened->mutex, NULL);
  rl_listener_init(&opened->listener);
  rl_condition_init(&opened->woken);
  int code = pthread_create(&opened->thread, NULL, run_thread, opened);
  if (code != 0) {
    pthread_cond_destroy(&opened->woken);
    rl_listener_destroy(&opened->listener);
    pthread_mutex_destroy(&opened->mutex);
    free(opened);
    return rl_fail(err, RL_ERRNO, code, "can't start the thread of suites: %s", strerror(code));
  }
  *runner = opened;
  return 0;
}

void rl_suite_runner_stop(rl_suite_runner *runner) {
  atomic_store(&runner->stopping, true);
  wake(runner);
}

void rl_suite_runner_close(rl_suite_runner *runner) {
  if (runner == NULL) return;
  rl_suite_runner_stop(runner);
  pthread_join(runner->thread, NULL);
  pthread_cond_destroy(&runner->woken);
  rl_listener_destroy(&runner->listener);
  pthread_mutex_destroy(&runner->mutex);
  free(runner);
}

/* --- clients ----------------------------------------------------------------------------------------------------------- */

/* Parses each job of the suite for the device and checks it (rl_queue_check_job). Sets `device`, which has 16 bytes, to the
 * default device if it is "". */
static int check_jobs(rl_suite_runner *runner, const rl_suite *suite, char *device, rl_error *err) {
  rl_job_spec *spec = calloc(1, sizeof *spec);
  int rc = spec != NULL ? 0 : rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a suite run");
  for (int i = 0; i < suite->job_count && rc == 0; i++) {
    RL_CLEANUP(rl_free_text) char *text = rl_suite_print_request(&suite->jobs[i], device, suite->jobs[i].passes, true);
    char path[96];
    rc = text != NULL ? rl_job_spec_parse(text, strlen(text), &runner->policy, spec, err)
                      : rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a suite run");
    if (rc == 0) rc = rl_queue_check_job(runner->queue, spec, err);
    if (rc == 0) snprintf(device, sizeof spec->device, "%s", spec->device);
    else if (err->domain == RL_INPUT && strcmp(err->json_pointer, "/device") != 0) {
      snprintf(path, sizeof path, "/jobs/%d/request%.60s", i, err->json_pointer);
      memcpy(err->json_pointer, path, sizeof path);
    }
    rl_job_spec_clear(spec);
  }
  free(spec);
  return rc;
}

rl_suite_estimate rl_suite_runner_estimate(rl_suite_runner *runner, const rl_suite *suite) {
  char device[16];
  rl_error ignored;
  snprintf(device, sizeof device, "%s", suite->device);
  if (device[0] == '\0' && check_jobs(runner, suite, device, &ignored) < 0)
    return (rl_suite_estimate){NAN, RL_SUITE_ESTIMATE_NONE};
  return rl_suite_estimate_duration(runner->store, suite, device, false);
}

static int find_against(rl_suite_runner *runner, const rl_suite_submission *submission, int64_t *run_id, rl_error *err) {
  if (submission->against == NULL) return 0;
  int found = rl_store_baseline_run(runner->store, submission->suite->name, submission->against, run_id, err);
  if (found != 0) return found < 0 ? -1 : 0;
  rl_fail_at(err, "/against", "suite %s has no baseline %s", submission->suite->name, submission->against);
  err->domain = RL_HTTP;
  err->code = 404;
  return -1;
}

static char *print_jobs_sha256(const rl_suite *suite) {
  cJSON *hashes = cJSON_CreateObject();
  for (int i = 0; i < suite->job_count; i++) cJSON_AddStringToObject(hashes, suite->jobs[i].name, suite->jobs[i].sha256);
  char *text = cJSON_PrintUnformatted(hashes);
  cJSON_Delete(hashes);
  return text;
}

/* Makes and checks the measured baseline if the submission has against_request. The caller frees *baseline. */
static int make_measured_baseline(rl_suite_runner *runner, const rl_suite_submission *submission, char *device,
                                  rl_suite **baseline, rl_error *err) {
  if (submission->against_request == NULL) return 0;
  if (submission->against != NULL)
    return rl_fail_at(err, "/against_request", "use against (a named baseline) or against_request, not both");
  if (rl_suite_make_measured_baseline(submission->suite, submission->against_request, submission->policy, baseline, err) < 0)
    return -1;
  if (check_jobs(runner, *baseline, device, err) == 0) return 0;
  rl_suite_move_pointer_to_against_request(err);
  return -1;
}

int rl_suite_runner_submit(rl_suite_runner *runner, const rl_suite_submission *submission, int64_t *id, bool *existing,
                           rl_error *err) {
  RL_CLEANUP(rl_suite_cleanup) rl_suite *baseline = NULL;
  const rl_suite *suite = submission->suite;
  char device[16];
  int64_t against_run_id = 0;
  uint32_t seed = 0;
  snprintf(device, sizeof device, "%s", submission->device != NULL ? submission->device : suite->device);
  if (find_against(runner, submission, &against_run_id, err) < 0 || check_jobs(runner, suite, device, err) < 0 ||
      make_measured_baseline(runner, submission, device, &baseline, err) < 0)
    return -1;
  RL_CLEANUP(rl_free_text) char *hashes = print_jobs_sha256(suite);
  RL_CLEANUP(rl_free_text) char *request = baseline != NULL ? cJSON_PrintUnformatted(submission->against_request) : NULL;
  if (hashes == NULL || (baseline != NULL && request == NULL)) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a suite run");
  if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
    return rl_fail_errno(err, "can't get random bytes for the order of a suite run's jobs");
  const int64_t measured_suites = baseline != NULL ? 2 : 1; /* the suite, and its measured baseline */
  const rl_suite_estimate planned = rl_suite_estimate_duration(runner->store, suite, device, baseline != NULL);
  const rl_suite_run_spec spec = {.suite = suite->name,
                                  .definition = suite->text,
                                  .definition_sha256 = suite->sha256,
                                  .jobs_sha256 = hashes,
                                  .device = device,
                                  .against = submission->against,
                                  .against_run_id = against_run_id,
                                  .against_request = request,
                                  .order_seed = seed,
                                  .planned_s = planned.seconds,
                                  .planned_basis = rl_suite_estimate_basis_name(planned.basis),
                                  .planned_jobs = measured_suites * (suite->blocks + suite->profile) * suite->job_count +
                                                  (rl_suite_has_canary(suite, device) ? 2 : 0)};
  if (rl_store_suite_run_insert(runner->store, &spec, submission->key, submission->body_sha256, runner->queue_limit, id, existing,
                                err) < 0)
    return -1;
  if (*existing) return 0;
  wake(runner);
  rl_listener_notify(&runner->listener, *id);
  return 0;
}

int rl_suite_runner_cancel(rl_suite_runner *runner, int64_t id, rl_error *err) {
  const rl_suite_outcome outcome = {.state = "cancelled", .reason = "A client cancelled the run."};
  if (rl_store_suite_run_finish(runner->store, id, &outcome, err) < 0) return -1;
  wake(runner);
  rl_listener_notify(&runner->listener, id);
  return 0;
}
