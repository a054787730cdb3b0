/* Implements queue.h. The states of jobs are in the database. In memory the queue has, for each device, the running job, whether
 * the job was cancelled, and the time of its last progress event. A device's thread waits in rl_queue_claim_pass until a job is
 * submitted. */
#include "queue/queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/log.h"
#include "model/imported_trace.h"
#include "request/spec.h"
#include "queue/statistics.h"
#include "store/store.h"

enum { WORKER_DEATHS_MAX = 2, DAEMON_DEATHS_MAX = 5, DEFAULT_TIME_LIMIT_S = 3600 };
static const int64_t PROGRESS_INTERVAL_NS = 250000000;

/* A device and the state of its running job; a device runs at most one job. Written under the queue's mutex; the atomic members
 * are also read without the mutex. */
typedef struct device {
  char id[16];
  bool is_usable;
  char unsupported_engines[256]; /* names, one per line */
  _Atomic int64_t job_id;        /* id of the running job; 0: no job is running */
  atomic_bool is_cancelled;      /* the running job was cancelled */
  int64_t unstored_job_id;       /* id of the running job if its results can't be stored now; else 0 */
  rl_error unstored_reason;      /* reason why these results can't be stored */
  int64_t started_ns;            /* rl_monotonic_ns of the job's first claim in this process */
  int64_t progress_ns;           /* rl_monotonic_ns of the last progress event */
} device;

struct rl_queue {
  rl_store *store;
  int64_t queue_limit, default_time_limit_s;
  pthread_mutex_t mutex; /* guards the members below; never held during a store call, which may wait for the database */
  pthread_cond_t changed;
  uint64_t submission_count; /* number of submitted jobs; a device's thread without a pass waits until the number changes */
  device devices[RL_DEVICES_MAX];
  int device_count;
  char default_device[16]; /* "": there is no default device */
  bool stopping, refreshes_ceilings;
  rl_job_statistics statistics;
  rl_listener listener;
};

static void lock_queue(rl_queue *queue) { pthread_mutex_lock(&queue->mutex); }

static void unlock_queue(rl_queue *queue) { pthread_mutex_unlock(&queue->mutex); }

static int requeue_jobs(rl_store *store, rl_error *err) {
  int64_t requeued, begin_ns = rl_monotonic_ns();
  while (rl_store_jobs_requeue(store, DAEMON_DEATHS_MAX, &requeued, err) < 0)
    if (!rl_store_should_retry_at_start(err, begin_ns)) return -1;
  return 0;
}

int rl_queue_open(rl_store *store, int64_t queue_limit, rl_queue **queue, rl_error *err) {
  if (requeue_jobs(store, err) < 0) return -1;
  rl_queue *opened = calloc(1, sizeof *opened);
  if (opened == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the queue");
  opened->store = store;
  opened->queue_limit = queue_limit;
  opened->default_time_limit_s = DEFAULT_TIME_LIMIT_S;
  pthread_mutex_init(&opened->mutex, NULL);
  rl_listener_init(&opened->listener);
  rl_condition_init(&opened->changed);
  *queue = opened;
  return 0;
}

void rl_queue_close(rl_queue *queue) {
  if (queue == NULL) return;
  pthread_cond_destroy(&queue->changed);
  rl_listener_destroy(&queue->listener);
  pthread_mutex_destroy(&queue->mutex);
  free(queue);
}

/* --- devices ----------------------------------------------------------------------------------------------------------- */

static device *find_device(rl_queue *queue, const char *id) {
  for (int i = 0; i < queue->device_count; i++)
    if (strcmp(queue->devices[i].id, id) == 0) return &queue->devices[i];
  return NULL;
}

/* Returns the device that runs the job; returns NULL if there is none. */
static device *find_device_of_job(rl_queue *queue, int64_t job_id) {
  for (int i = 0; i < queue->device_count; i++)
    if (queue->devices[i].job_id == job_id) return &queue->devices[i];
  return NULL;
}

int rl_queue_set_devices(rl_queue *queue, const char *const *ids, const bool *is_usable, int count, const char *default_device,
                         rl_error *err) {
  if (count > RL_DEVICES_MAX) return rl_fail(err, RL_INPUT, 0, "%d devices exceed the limit of %d", count, RL_DEVICES_MAX);
  lock_queue(queue);
  queue->device_count = count;
  for (int i = 0; i < count; i++) {
    queue->devices[i] = (device){.is_usable = is_usable[i]};
    snprintf(queue->devices[i].id, sizeof queue->devices[i].id, "%s", ids[i]);
  }
  snprintf(queue->default_device, sizeof queue->default_device, "%s", default_device != NULL ? default_device : "");
  unlock_queue(queue);
  return 0;
}

void rl_queue_set_unsupported_engines(rl_queue *queue, const char *id, const char *names) {
  lock_queue(queue);
  device *found = find_device(queue, id);
  if (found != NULL) snprintf(found->unsupported_engines, sizeof found->unsupported_engines, "%s", names);
  unlock_queue(queue);
}

void rl_queue_set_default_time_limit(rl_queue *queue, int64_t time_limit_s) {
  lock_queue(queue);
  queue->default_time_limit_s = time_limit_s;
  unlock_queue(queue);
}

void rl_queue_set_refresh_ceilings(rl_queue *queue, bool refreshes_ceilings) {
  lock_queue(queue);
  queue->refreshes_ceilings = refreshes_ceilings;
  unlock_queue(queue);
}

/* Returns whether the job names the import device although its kind is not import. */
static bool misuses_import_device(const rl_job_spec *spec) {
  return strcmp(spec->device, RL_IMPORT_DEVICE) == 0 && strcmp(spec->kind, RL_IMPORT_KIND) != 0;
}

/* Fills in the default device, or checks that the requested device exists and is usable. */
static int choose_device(rl_queue *queue, rl_job_spec *spec, rl_error *err) {
  char *id = spec->device;
  if (id[0] == '\0') {
    if (queue->default_device[0] == '\0')
      return rl_fail(err, RL_HTTP, 503, "no device accepts jobs now; GET /devices has the reasons");
    if (spec->needs_gpu && strncmp(queue->default_device, "gpu", 3) != 0)
      return rl_fail_at(err, "/device", "this kind of job needs a GPU, and no GPU is usable; GET /devices has the reasons");
    snprintf(id, sizeof spec->device, "%s", queue->default_device);
    return 0;
  }
  const device *chosen = find_device(queue, id);
  if (chosen == NULL || misuses_import_device(spec))
    return rl_fail_at(err, "/device", "there is no device %s; GET /devices lists the devices", id);
  if (!chosen->is_usable) return rl_fail_at(err, "/device", "device %s accepts no jobs; GET /devices has the reason", id);
  return 0;
}

/* Refuses a job with a run whose engine or variant the chosen device does not support. */
static int check_device_support(rl_queue *queue, rl_job_spec *spec, rl_error *err) {
  const device *chosen = find_device(queue, spec->device);
  return rl_job_spec_restrict_to_device(spec, chosen != NULL ? chosen->unsupported_engines : "", err);
}

/* --- events ------------------------------------------------------------------------------------------------------------ */

void rl_queue_set_listener(rl_queue *queue, rl_listener_function *on_event, void *context) {
  rl_listener_set(&queue->listener, on_event, context);
}

/* --- statistics -------------------------------------------------------------------------------------------------------- */

const rl_job_statistics *rl_queue_statistics(const rl_queue *queue) { return &queue->statistics; }

/* Counts a job that has started or finished. Does nothing if the job's status can't be read. */
static void count_job(rl_queue *queue, int64_t job_id,
                      void (*count)(rl_job_statistics *statistics, const rl_job_status *status)) {
  rl_job_status status;
  rl_error ignored;
  if (rl_store_job_status(queue->store, job_id, &status, &ignored) == 0) count(&queue->statistics, &status);
}

/* --- clients ----------------------------------------------------------------------------------------------------------- */

int rl_queue_check_job(rl_queue *queue, rl_job_spec *spec, rl_error *err) {
  int rc = 0;
  lock_queue(queue);
  if (queue->stopping) rc = rl_fail(err, RL_HTTP, 503, "the daemon is stopping: submit the job again after its restart");
  else if (choose_device(queue, spec, err) < 0 || check_device_support(queue, spec, err) < 0) rc = -1;
  unlock_queue(queue);
  return rc;
}

/* Stores a job, or finds the job of an earlier request with the same Idempotency-Key. Looks up the key before it chooses the
 * device, so that a repeated request gets its job even if the device has become unusable since. */
static int insert_job(rl_queue *queue, rl_job_spec *spec, const char *key, const char *body_sha256, int64_t *id, bool *existing,
                      rl_error *err) {
  int seen = key != NULL ? rl_store_find_job_by_key(queue->store, key, body_sha256, id, err) : 0;
  *existing = seen > 0;
  if (seen != 0) return seen < 0 ? -1 : 0;
  if (rl_queue_check_job(queue, spec, err) < 0) return -1;
  return rl_store_job_insert(queue->store, spec, key, body_sha256, queue->queue_limit, id, existing, err);
}

int rl_queue_submit_job(rl_queue *queue, rl_job_spec *spec, const char *key, const char *body_sha256, int64_t *id, bool *existing,
                        rl_error *err) {
  if (insert_job(queue, spec, key, body_sha256, id, existing, err) < 0) return -1;
  if (*existing) return 0;
  lock_queue(queue);
  queue->submission_count++;
  pthread_cond_broadcast(&queue->changed);
  unlock_queue(queue);
  rl_job_statistics_submitted(&queue->statistics, spec->kind);
  rl_listener_notify(&queue->listener, *id);
  return 0;
}

int rl_queue_cancel_job(rl_queue *queue, int64_t id, rl_error *err) {
  if (rl_store_job_finish(queue->store, id, RL_JOB_CANCELLED, NULL, err) < 0) return -1;
  lock_queue(queue);
  device *entry = find_device_of_job(queue, id);
  if (entry != NULL) entry->is_cancelled = true;
  unlock_queue(queue);
  count_job(queue, id, rl_job_statistics_finished);
  rl_listener_notify(&queue->listener, id);
  return 0;
}

int rl_queue_count_jobs(rl_queue *queue, rl_job_counts *counts, rl_error *err) {
  return rl_store_count_jobs(queue->store, counts, err);
}

/* --- devices' threads --------------------------------------------------------------------------------------------------- */

/* Sets the device's running job to the claim's job, and sets the claim's deadline. Returns whether the job starts with this
 * claim. */
static bool start_claim(rl_queue *queue, device *entry, rl_claim *next) {
  lock_queue(queue);
  bool started = entry->job_id != next->job_id;
  entry->is_cancelled = false;
  if (started) {
    entry->job_id = next->job_id;
    entry->started_ns = rl_monotonic_ns();
    entry->progress_ns = 0;
  }
  int64_t time_limit_s = next->time_limit_s > 0 ? next->time_limit_s : queue->default_time_limit_s;
  next->deadline_ns = entry->started_ns + time_limit_s * 1000000000;
  unlock_queue(queue);
  return started;
}

/* Sets entry->is_cancelled if the job was cancelled between the claim's transaction and start_claim. In that interval
 * rl_queue_cancel_job did not find the job on a device. */
static void note_earlier_cancellation(rl_queue *queue, device *entry, int64_t job_id) {
  rl_job_state state;
  rl_error ignored;
  if (rl_store_job_state(queue->store, job_id, &state, &ignored) >= 0 && rl_job_is_final(state)) entry->is_cancelled = true;
}

/* Claims the device's next pass. Returns 1 and fills *claim; returns 0 if no pass is pending. */
static int claim_pass(rl_queue *queue, device *entry, rl_claim *claim, rl_error *err) {
  rl_claim next;
  int rc = rl_store_pass_claim(queue->store, entry->id, &next, err);
  if (rc == 0) entry->job_id = 0; /* the device's previous job has ended */
  if (rc != 1) return rc;
  bool started = start_claim(queue, entry, &next);
  note_earlier_cancellation(queue, entry, next.job_id);
  if (started) {
    count_job(queue, next.job_id, rl_job_statistics_started);
    rl_listener_notify(&queue->listener, next.job_id);
  }
  *claim = next;
  return 1;
}

/* Waits until queue->submission_count differs from submission_count. Returns false at the time `until`, and when the queue
 * stops. */
static bool wait_for_submission(rl_queue *queue, uint64_t submission_count, const struct timespec *until) {
  int waited = 0;
  lock_queue(queue);
  while (!queue->stopping && queue->submission_count == submission_count && waited != ETIMEDOUT)
    waited = pthread_cond_timedwait(&queue->changed, &queue->mutex, until);
  bool submitted = !queue->stopping && queue->submission_count != submission_count;
  unlock_queue(queue);
  return submitted;
}

int rl_queue_claim_pass(rl_queue *queue, const char *id, int timeout_ms, rl_claim *claim, rl_error *err) {
  const struct timespec until = rl_condition_deadline((int64_t)timeout_ms * 1000000);
  for (;;) {
    lock_queue(queue);
    device *entry = find_device(queue, id);
    bool stopping = queue->stopping;
    uint64_t submission_count = queue->submission_count;
    unlock_queue(queue);
    if (entry == NULL) return rl_fail(err, RL_INPUT, 0, "there is no device %s", id);
    if (stopping) return 0;
    int rc = claim_pass(queue, entry, claim, err);
    if (rc != 0 || !wait_for_submission(queue, submission_count, &until)) return rc;
  }
}

int64_t rl_queue_job_on_device(rl_queue *queue, const char *id) {
  const device *entry = find_device(queue, id);
  return entry != NULL ? entry->job_id : 0;
}

bool rl_queue_should_cancel(rl_queue *queue, int64_t job_id) {
  const device *entry = find_device_of_job(queue, job_id);
  return entry != NULL && entry->is_cancelled;
}

/* Stores a progress event. Returns -1 if this fails, for example on a full disk. The reason is ignored, because the job continues
 * without the event. */
static int store_progress(rl_store *store, int64_t job_id, int64_t run_id, const rl_progress *progress) {
  rl_error ignored;
  int64_t seq;
  cJSON *data = cJSON_CreateObject();
  cJSON_AddNumberToObject(data, "run_id", (double)run_id);
  rl_fields_encode(rl_progress_fields, progress, data);
  char *text = cJSON_PrintUnformatted(data);
  int rc = text != NULL ? rl_store_event_append(store, job_id, "progress", text, &seq, &ignored) : -1;
  free(text);
  cJSON_Delete(data);
  return rc;
}

void rl_queue_publish_progress(rl_queue *queue, int64_t job_id, int64_t run_id, const rl_progress *progress) {
  int64_t now = rl_monotonic_ns();
  lock_queue(queue);
  device *entry = find_device_of_job(queue, job_id);
  bool is_due =
      entry != NULL && !entry->is_cancelled && (entry->progress_ns == 0 || now - entry->progress_ns >= PROGRESS_INTERVAL_NS);
  if (is_due) entry->progress_ns = now;
  unlock_queue(queue);
  if (is_due && store_progress(queue->store, job_id, run_id, progress) >= 0) rl_listener_notify(&queue->listener, job_id);
}

int rl_queue_store_log(rl_queue *queue, const rl_claim *claim, const char *text, rl_error *err) {
  if (rl_queue_should_cancel(queue, claim->job_id)) return 0;
  return rl_store_set_run_log(queue->store, claim->run_id, text, err);
}

void rl_queue_report_unstored_results(rl_queue *queue, const rl_claim *claim, const rl_error *reason) {
  lock_queue(queue);
  device *entry = find_device_of_job(queue, claim->job_id);
  bool is_reported = entry != NULL && !entry->is_cancelled;
  if (is_reported) {
    entry->unstored_job_id = claim->job_id;
    entry->unstored_reason = *reason;
  }
  unlock_queue(queue);
  if (is_reported) rl_store_set_has_unstored_results(queue->store, claim->job_id, true);
}

int rl_queue_check_results_are_stored(rl_queue *queue, rl_error *err) {
  rl_error reason = {0};
  int64_t job_id = 0;
  lock_queue(queue);
  for (int i = 0; i < queue->device_count && job_id == 0; i++) {
    job_id = queue->devices[i].unstored_job_id;
    reason = queue->devices[i].unstored_reason;
  }
  unlock_queue(queue);
  if (job_id == 0) return 0;
  *err = reason;
  return rl_wrap(err, "the results of job %lld wait to be stored", (long long)job_id);
}

/* Called after the outcome of a claim was stored, or was dropped because the job was cancelled. Removes the job from its device
 * if the job has ended. */
static void end_claim(rl_queue *queue, const rl_claim *claim, bool cancelled, bool job_over) {
  rl_store_set_has_unstored_results(queue->store, claim->job_id, false);
  lock_queue(queue);
  device *entry = find_device_of_job(queue, claim->job_id);
  if (entry != NULL) entry->unstored_job_id = 0;
  if (entry != NULL && (job_over || cancelled)) {
    entry->job_id = 0;
    entry->is_cancelled = false;
  }
  unlock_queue(queue);
  if (job_over && !cancelled) count_job(queue, claim->job_id, rl_job_statistics_finished);
  rl_listener_notify(&queue->listener, claim->job_id);
}

/* Submits a ceilings job if the driver or the clocks of the device have changed since its ceilings were measured. Ignores errors,
 * because the device's next timing pass checks the ceilings again. */
static void refresh_ceilings(rl_queue *queue, const rl_claim *claim, const char *id) {
  static const rl_job_policy policy = {.posting = RL_POSTING_OFF};
  rl_error err;
  RL_CLEANUP(rl_job_spec_clear) rl_job_spec spec = {0};
  char request[64];
  int64_t number;
  bool due = false, existing;
  if (rl_store_are_ceilings_due(queue->store, claim->pass_id, &due, &err) < 0 || !due) return;
  int length = snprintf(request, sizeof request, "{\"kind\":\"ceilings\",\"device\":\"%s\"}", id);
  if (rl_job_spec_parse(request, (size_t)length, &policy, &spec, &err) < 0) return;
  spec.automatic = true;
  if (rl_queue_submit_job(queue, &spec, NULL, NULL, &number, &existing, &err) >= 0)
    rl_log(RL_LOG_INFO,
           "%s has another driver or other clocks than when its ceilings were measured: job %lld measures them again", id,
           (long long)number);
}

int rl_queue_append_activity(rl_queue *queue, const rl_claim *claim, rl_activity_appender *appender, rl_records *records,
                             rl_error *err) {
  if (!rl_queue_should_cancel(queue, claim->job_id)) return rl_store_append_activity(queue->store, claim, appender, records, err);
  rl_records_drop_rows(records, records->row_count);
  return 0;
}

int rl_queue_discard_activity(rl_queue *queue, const rl_claim *claim, const atomic_bool *stop, rl_error *err) {
  return rl_store_discard_activity(queue->store, claim->pass_id, stop, err);
}

/* Copies the id of the device that runs the claim's job into `id`; writes "" if no device runs it. */
static void copy_device_id(rl_queue *queue, const rl_claim *claim, char id[sizeof((device *)0)->id]) {
  lock_queue(queue);
  const device *entry = find_device_of_job(queue, claim->job_id);
  snprintf(id, sizeof entry->id, "%s", entry != NULL ? entry->id : "");
  unlock_queue(queue);
}

static int commit_pass(rl_queue *queue, const rl_claim *claim, const rl_records *records, const char *reason, rl_error *err) {
  bool cancelled = rl_queue_should_cancel(queue, claim->job_id), job_done = false;
  char id[sizeof((device *)0)->id];
  if (!cancelled && rl_store_pass_commit(queue->store, claim, records, reason, &job_done, err) < 0) return -1;
  copy_device_id(queue, claim, id);
  end_claim(queue, claim, cancelled, job_done);
  if (!cancelled && id[0] != '\0' && queue->refreshes_ceilings && claim->pass == RL_PASS_TIMING)
    refresh_ceilings(queue, claim, id);
  return 0;
}

int rl_queue_commit_pass(rl_queue *queue, const rl_claim *claim, const rl_records *records, rl_error *err) {
  return commit_pass(queue, claim, records, NULL, err);
}

int rl_queue_commit_unavailable_pass(rl_queue *queue, const rl_claim *claim, const rl_records *records, const char *reason,
                                     rl_error *err) {
  return commit_pass(queue, claim, records, reason, err);
}

static int finish_job(rl_queue *queue, const rl_claim *claim, rl_job_state state, const rl_error *problem, rl_error *err) {
  bool cancelled = rl_queue_should_cancel(queue, claim->job_id);
  if (!cancelled && rl_store_job_finish(queue->store, claim->job_id, state, problem, err) < 0) return -1;
  end_claim(queue, claim, cancelled, true);
  return 0;
}

int rl_queue_fail_job(rl_queue *queue, const rl_claim *claim, const rl_error *problem, rl_error *err) {
  return finish_job(queue, claim, RL_JOB_FAILED, problem, err);
}

int rl_queue_end_cancelled_job(rl_queue *queue, const rl_claim *claim, rl_error *err) {
  return finish_job(queue, claim, RL_JOB_CANCELLED, NULL, err);
}

int rl_queue_interrupt_job(rl_queue *queue, const rl_claim *claim, rl_error *err) {
  return finish_job(queue, claim, RL_JOB_INTERRUPTED, NULL, err);
}

int rl_queue_record_worker_crash(rl_queue *queue, const rl_claim *claim, const char *reason, rl_error *err) {
  bool cancelled = rl_queue_should_cancel(queue, claim->job_id), job_over = false;
  if (!cancelled && rl_store_record_worker_crash(queue->store, claim, reason, WORKER_DEATHS_MAX, &job_over, err) < 0) return -1;
  end_claim(queue, claim, cancelled, job_over);
  return 0;
}

void rl_queue_stop(rl_queue *queue) {
  lock_queue(queue);
  queue->stopping = true;
  pthread_cond_broadcast(&queue->changed);
  unlock_queue(queue);
}
