#include "queue/queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "request/spec.h"
#include "queue/statistics.h"
#include "store/store.h"

enum { WORKER_DEATHS_MAX = 2, DAEMON_DEATHS_MAX = 5, DEFAULT_DEADLINE_S = 3600 };
static const int64_t PROGRESS_INTERVAL_NS = 250000000, LOCK_WAIT_NS = 100000000;

/* A device and the state of its running job, of which it has at most one. Written under the queue's mutex. The atomic members are
 * read without it, because a store call may hold it for seconds. */
typedef struct device {
  char id[16];
  bool usable;
  char unsupported_engines[256]; /* names, one a line */
  _Atomic int64_t job_id;        /* of the running job; 0: none */
  atomic_bool cancel;            /* the running job was cancelled */
  int64_t started_ns;            /* monotonic time of the job's first claim in this process */
  int64_t progress_ns;           /* monotonic time of the last progress event */
} device;

struct rl_queue {
  rl_store *store;
  int64_t queue_limit, deadline_s;
  pthread_mutex_t mutex; /* held for a whole change of state, including its store call */
  pthread_cond_t changed;
  device devices[RL_DEVICES_MAX];
  int device_count;
  char default_device[16]; /* "": none */
  bool stopping, refresh;
  rl_job_statistics statistics;
  pthread_mutex_t listener_lock; /* held while on_event runs, so that rl_queue_set_listener waits for it */
  void (*on_event)(void *context, int64_t job_id);
  void *listener_context;
};

static struct timespec to_timespec(int64_t ns) {
  return (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
}

static void lock(rl_queue *queue) { pthread_mutex_lock(&queue->mutex); }

/* Locks the mutex within LOCK_WAIT_NS, or returns false. Uses the wall clock, because ThreadSanitizer does not support
 * pthread_mutex_clocklock; if the clock is set back meanwhile, the wait takes that much longer. */
static bool try_lock(rl_queue *queue) {
  struct timespec until = to_timespec(rl_now_ns() + LOCK_WAIT_NS);
  return pthread_mutex_timedlock(&queue->mutex, &until) == 0;
}

static void unlock(rl_queue *queue) { pthread_mutex_unlock(&queue->mutex); }

int rl_queue_open(rl_store *store, int64_t queue_limit, rl_queue **queue, rl_error *err) {
  int64_t requeued;
  if (rl_store_jobs_requeue(store, DAEMON_DEATHS_MAX, &requeued, err) < 0) return -1;
  rl_queue *made = calloc(1, sizeof *made);
  if (made == NULL) return rl_fail(err, RL_SYS, ENOMEM, "no memory for the queue");
  made->store = store;
  made->queue_limit = queue_limit;
  made->deadline_s = DEFAULT_DEADLINE_S;
  pthread_mutex_init(&made->mutex, NULL);
  pthread_mutex_init(&made->listener_lock, NULL);
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&made->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  *queue = made;
  return 0;
}

void rl_queue_close(rl_queue *queue) {
  if (queue == NULL) return;
  pthread_cond_destroy(&queue->changed);
  pthread_mutex_destroy(&queue->listener_lock);
  pthread_mutex_destroy(&queue->mutex);
  free(queue);
}

/* --- devices ----------------------------------------------------------------------------------------------------------- */

static device *find_device(rl_queue *queue, const char *id) {
  for (int i = 0; i < queue->device_count; i++)
    if (strcmp(queue->devices[i].id, id) == 0) return &queue->devices[i];
  return NULL;
}

/* Returns the device that runs the job; NULL: none. */
static device *find_device_of_job(rl_queue *queue, int64_t job_id) {
  for (int i = 0; i < queue->device_count; i++)
    if (queue->devices[i].job_id == job_id) return &queue->devices[i];
  return NULL;
}

int rl_queue_set_devices(rl_queue *queue, const char *const *ids, const bool *usable, int count, const char *default_device,
                         rl_error *err) {
  if (count > RL_DEVICES_MAX) return rl_fail(err, RL_INPUT, 0, "%d devices are more than %d", count, RL_DEVICES_MAX);
  lock(queue);
  queue->device_count = count;
  for (int i = 0; i < count; i++) {
    queue->devices[i] = (device){.usable = usable[i]};
    snprintf(queue->devices[i].id, sizeof queue->devices[i].id, "%s", ids[i]);
  }
  snprintf(queue->default_device, sizeof queue->default_device, "%s", default_device != NULL ? default_device : "");
  unlock(queue);
  return 0;
}

void rl_queue_set_unsupported_engines(rl_queue *queue, const char *id, const char *names) {
  lock(queue);
  device *found = find_device(queue, id);
  if (found != NULL) snprintf(found->unsupported_engines, sizeof found->unsupported_engines, "%s", names);
  unlock(queue);
}

void rl_queue_set_deadline(rl_queue *queue, int64_t seconds) {
  lock(queue);
  queue->deadline_s = seconds;
  unlock(queue);
}

void rl_queue_set_refresh(rl_queue *queue, bool refresh) {
  lock(queue);
  queue->refresh = refresh;
  unlock(queue);
}

/* Fills in the default device, or checks the requested one. */
static int choose_device(rl_queue *queue, rl_job_spec *spec, rl_error *err) {
  char *id = spec->device;
  if (id[0] == '\0') {
    if (queue->default_device[0] == '\0') return rl_fail(err, RL_HTTP, 503, "no device can take jobs now; /devices says why");
    if (spec->needs_gpu && strncmp(queue->default_device, "gpu", 3) != 0)
      return rl_fail_at(err, "/device", "this kind of job needs a GPU, and none is usable here; /devices says why");
    snprintf(id, sizeof spec->device, "%s", queue->default_device);
    return 0;
  }
  const device *chosen = find_device(queue, id);
  if (chosen == NULL) return rl_fail_at(err, "/device", "there is no device %s; /devices lists them", id);
  if (!chosen->usable) return rl_fail_at(err, "/device", "%s can't take jobs; /devices says why", id);
  return 0;
}

/* Refuses runs that the chosen device does not support. */
static int check_device_support(rl_queue *queue, rl_job_spec *spec, rl_error *err) {
  const device *chosen = find_device(queue, spec->device);
  return rl_job_spec_fit(spec, chosen != NULL ? chosen->unsupported_engines : "", err);
}

/* --- events ------------------------------------------------------------------------------------------------------------ */

void rl_queue_set_listener(rl_queue *queue, void (*on_event)(void *context, int64_t job_id), void *context) {
  pthread_mutex_lock(&queue->listener_lock);
  queue->on_event = on_event;
  queue->listener_context = context;
  pthread_mutex_unlock(&queue->listener_lock);
}

static void notify_listener(rl_queue *queue, int64_t job_id) {
  pthread_mutex_lock(&queue->listener_lock);
  if (queue->on_event != NULL) queue->on_event(queue->listener_context, job_id);
  pthread_mutex_unlock(&queue->listener_lock);
}

/* --- statistics -------------------------------------------------------------------------------------------------------- */

const rl_job_statistics *rl_queue_statistics(const rl_queue *queue) { return &queue->statistics; }

/* Counts a job that has started or finished. Skips it if its status can't be read. */
static void count_change(rl_queue *queue, int64_t job_id,
                         void (*count)(rl_job_statistics *statistics, const rl_job_status *status)) {
  rl_job_status status;
  rl_error ignored;
  if (rl_store_job_status(queue->store, job_id, &status, &ignored) == 0) count(&queue->statistics, &status);
}

/* --- clients ----------------------------------------------------------------------------------------------------------- */

/* Looks up the key first: a repeated request gets its job even if the device has become unusable since. */
static int submit_locked(rl_queue *queue, rl_job_spec *spec, const char *key, const char *body_sha256, int64_t *id,
                         bool *existing, rl_error *err) {
  int seen = key != NULL ? rl_store_job_by_key(queue->store, key, body_sha256, id, err) : 0;
  *existing = seen > 0;
  if (seen != 0) return seen < 0 ? -1 : 0;
  if (queue->stopping) return rl_fail(err, RL_HTTP, 503, "the daemon is stopping; submit again when it is back");
  if (choose_device(queue, spec, err) < 0 || check_device_support(queue, spec, err) < 0) return -1;
  return rl_store_job_insert(queue->store, spec, key, body_sha256, queue->queue_limit, id, existing, err);
}

int rl_queue_submit(rl_queue *queue, rl_job_spec *spec, const char *key, const char *body_sha256, int64_t *id, bool *existing,
                    rl_error *err) {
  lock(queue);
  int rc = submit_locked(queue, spec, key, body_sha256, id, existing, err);
  if (rc == 0 && !*existing) pthread_cond_broadcast(&queue->changed);
  unlock(queue);
  if (rc != 0 || *existing) return rc;
  rl_job_statistics_submitted(&queue->statistics, spec->kind);
  notify_listener(queue, *id);
  return rc;
}

int rl_queue_cancel(rl_queue *queue, int64_t id, rl_error *err) {
  lock(queue);
  int rc = rl_store_job_finish(queue->store, id, RL_JOB_CANCELLED, NULL, err);
  if (rc == 0) {
    device *entry = find_device_of_job(queue, id);
    if (entry != NULL) entry->cancel = true;
    count_change(queue, id, rl_job_statistics_finished);
  }
  unlock(queue);
  if (rc == 0) notify_listener(queue, id);
  return rc;
}

int rl_queue_count(rl_queue *queue, rl_job_counts *counts, rl_error *err) {
  return rl_store_jobs_count(queue->store, counts, err);
}

/* --- devices' threads --------------------------------------------------------------------------------------------------- */

/* Returns 1 and fills *claim; 0 if no pass is pending. *started: the job was not running on this device before. */
static int claim_locked(rl_queue *queue, device *entry, rl_claim *claim, bool *started, rl_error *err) {
  rl_claim next;
  int rc = rl_store_pass_claim(queue->store, entry->id, &next, err);
  if (rc == 0) entry->job_id = 0; /* the last job is over */
  if (rc != 1) return rc;
  *started = entry->job_id != next.job_id;
  entry->cancel = false;
  if (*started) {
    entry->job_id = next.job_id;
    entry->started_ns = rl_monotonic_ns();
    entry->progress_ns = 0;
    count_change(queue, next.job_id, rl_job_statistics_started);
  }
  int64_t deadline_ns = next.deadline_ns > 0 ? next.deadline_ns : queue->deadline_s * 1000000000;
  next.deadline_ns = entry->started_ns + deadline_ns;
  *claim = next;
  return 1;
}

int rl_queue_claim(rl_queue *queue, const char *id, int timeout_ms, rl_claim *claim, rl_error *err) {
  struct timespec until = to_timespec(rl_monotonic_ns() + (int64_t)timeout_ms * 1000000);
  bool started = false;
  int rc = 0, waited = 0;
  lock(queue);
  device *entry = find_device(queue, id);
  if (entry == NULL) rc = rl_fail(err, RL_INPUT, 0, "there is no device %s", id);
  while (rc == 0 && !queue->stopping) {
    rc = claim_locked(queue, entry, claim, &started, err);
    if (rc != 0 || waited == ETIMEDOUT) break;
    waited = pthread_cond_timedwait(&queue->changed, &queue->mutex, &until);
  }
  unlock(queue);
  if (started) notify_listener(queue, claim->job_id);
  return rc;
}

int64_t rl_queue_job_on_device(rl_queue *queue, const char *id) {
  const device *entry = find_device(queue, id);
  return entry != NULL ? entry->job_id : 0;
}

bool rl_queue_should_cancel(rl_queue *queue, int64_t job_id) {
  const device *entry = find_device_of_job(queue, job_id);
  return entry != NULL && entry->cancel;
}

/* Ignores errors, such as a full disk: the job continues without the event. */
static void store_progress(rl_store *store, int64_t job_id, int64_t run_id, const rl_progress *progress) {
  rl_error ignored;
  int64_t seq;
  cJSON *data = cJSON_CreateObject();
  cJSON_AddNumberToObject(data, "run_id", (double)run_id);
  rl_fields_encode(rl_progress_fields, progress, data);
  char *text = cJSON_PrintUnformatted(data);
  if (text != NULL) (void)rl_store_event_append(store, job_id, "progress", text, &seq, &ignored);
  free(text);
  cJSON_Delete(data);
}

void rl_queue_progress(rl_queue *queue, int64_t job_id, int64_t run_id, const rl_progress *progress) {
  int64_t now = rl_monotonic_ns();
  if (!try_lock(queue)) return; /* a pass of another device is being stored */
  device *entry = find_device_of_job(queue, job_id);
  bool kept = entry != NULL && !entry->cancel && (entry->progress_ns == 0 || now - entry->progress_ns >= PROGRESS_INTERVAL_NS);
  if (kept) {
    entry->progress_ns = now;
    store_progress(queue->store, job_id, run_id, progress);
  }
  unlock(queue);
  if (kept) notify_listener(queue, job_id);
}

/* Ignores errors, like store_progress. */
void rl_queue_log(rl_queue *queue, const rl_claim *claim, const char *text) {
  rl_error ignored;
  lock(queue);
  const device *entry = find_device_of_job(queue, claim->job_id);
  if (entry != NULL && !entry->cancel) (void)rl_store_run_log(queue->store, claim->run_id, text, &ignored);
  unlock(queue);
}

/* A claim ends in three steps: begin_claim_end locks the queue, the caller stores the outcome unless the job was cancelled, and
 * finish_claim_end unlocks the queue. */
typedef struct claim_end {
  device *entry;
  bool cancelled; /* the job was cancelled: the caller stores nothing */
} claim_end;

static claim_end begin_claim_end(rl_queue *queue, const rl_claim *claim) {
  lock(queue);
  claim_end end = {.entry = find_device_of_job(queue, claim->job_id)};
  end.cancelled = end.entry != NULL && end.entry->cancel;
  return end;
}

/* rc: of the store call, and the return value. If the job is over, removes it from its device before the unlock, so that a client
 * that sees the job's final state finds the device idle. */
static int finish_claim_end(rl_queue *queue, const rl_claim *claim, claim_end end, bool job_over, int rc) {
  if (rc == 0 && end.entry != NULL && (job_over || end.cancelled)) {
    end.entry->job_id = 0;
    end.entry->cancel = false;
  }
  if (rc == 0 && job_over && !end.cancelled) count_change(queue, claim->job_id, rl_job_statistics_finished);
  unlock(queue);
  if (rc == 0) notify_listener(queue, claim->job_id);
  return rc;
}

/* Submits a ceilings job if the ceilings of the pass's device are stale. Ignores errors: the next timing pass tries again. */
static void refresh_ceilings(rl_queue *queue, const rl_claim *claim, const char *id) {
  static const rl_job_policy policy = {.posting = RL_POSTING_OFF};
  rl_error err;
  rl_auto(rl_job_spec_clear) rl_job_spec spec = {0};
  char request[64];
  int64_t number;
  bool due = false, existing;
  if (rl_store_ceilings_due(queue->store, claim->pass_id, &due, &err) < 0 || !due) return;
  int length = snprintf(request, sizeof request, "{\"kind\":\"ceilings\",\"device\":\"%s\"}", id);
  if (rl_job_spec_parse(request, (size_t)length, &policy, &spec, &err) < 0) return;
  spec.automatic = true;
  if (rl_queue_submit(queue, &spec, NULL, NULL, &number, &existing, &err) >= 0)
    rl_log(RL_LOG_INFO,
           "%s has another driver or other clocks than when its ceilings were measured: job %lld measures them again", id,
           (long long)number);
}

static int commit_pass(rl_queue *queue, const rl_claim *claim, const rl_records *records, const char *reason, rl_error *err) {
  claim_end end = begin_claim_end(queue, claim);
  char id[sizeof end.entry->id];
  bool job_done = false;
  int rc = 0;
  if (!end.cancelled) rc = rl_store_pass_commit(queue->store, claim, records, reason, &job_done, err);
  bool check_ceilings = rc == 0 && !end.cancelled && end.entry != NULL && queue->refresh && claim->pass == RL_PASS_TIMING;
  if (check_ceilings) snprintf(id, sizeof id, "%s", end.entry->id);
  rc = finish_claim_end(queue, claim, end, job_done, rc);
  if (check_ceilings) refresh_ceilings(queue, claim, id);
  return rc;
}

int rl_queue_commit(rl_queue *queue, const rl_claim *claim, const rl_records *records, rl_error *err) {
  return commit_pass(queue, claim, records, NULL, err);
}

int rl_queue_unavailable(rl_queue *queue, const rl_claim *claim, const rl_records *records, const char *reason, rl_error *err) {
  return commit_pass(queue, claim, records, reason, err);
}

static int finish_job(rl_queue *queue, const rl_claim *claim, rl_job_state state, const rl_error *problem, rl_error *err) {
  claim_end end = begin_claim_end(queue, claim);
  int rc = end.cancelled ? 0 : rl_store_job_finish(queue->store, claim->job_id, state, problem, err);
  return finish_claim_end(queue, claim, end, true, rc);
}

int rl_queue_fail(rl_queue *queue, const rl_claim *claim, const rl_error *problem, rl_error *err) {
  return finish_job(queue, claim, RL_JOB_FAILED, problem, err);
}

int rl_queue_cancelled(rl_queue *queue, const rl_claim *claim, rl_error *err) {
  return finish_job(queue, claim, RL_JOB_CANCELLED, NULL, err);
}

int rl_queue_interrupted(rl_queue *queue, const rl_claim *claim, rl_error *err) {
  return finish_job(queue, claim, RL_JOB_INTERRUPTED, NULL, err);
}

int rl_queue_worker_died(rl_queue *queue, const rl_claim *claim, const char *reason, rl_error *err) {
  claim_end end = begin_claim_end(queue, claim);
  bool job_over = false;
  int rc = end.cancelled ? 0 : rl_store_pass_died(queue->store, claim, reason, WORKER_DEATHS_MAX, &job_over, err);
  return finish_claim_end(queue, claim, end, job_over, rc);
}

void rl_queue_stop(rl_queue *queue) {
  lock(queue);
  queue->stopping = true;
  pthread_cond_broadcast(&queue->changed);
  unlock(queue);
}
