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

enum { DEATHS_MAX = 2 /* of the worker */, DAEMON_DEATHS_MAX = 5, DEFAULT_DEADLINE_S = 3600 };
static const int64_t PROGRESS_INTERVAL_NS = 250000000, LOCK_WAIT_NS = 100000000;

/* A device does one job at a time, so what is to be known about a running job stands with its device. Changed under the mutex;
 * what is atomic is read without it, since a transition may take seconds. */
typedef struct device {
  char id[16];
  bool usable;
  _Atomic int64_t job_id; /* the job that it works on, 0: none */
  atomic_bool cancel;     /* that job was cancelled meanwhile */
  int64_t started_ns;     /* rl_monotonic_ns of that job's first claim in this process */
  int64_t progress_ns;    /* of the last progress that was kept */
} device;

struct rl_queue {
  rl_store *store;
  int64_t queue_limit, deadline_s;
  pthread_mutex_t mutex; /* held through a whole transition, its store call included: transitions never interleave */
  pthread_cond_t changed;
  device devices[RL_DEVICES_MAX];
  int device_count;
  char fallback[16];
  bool stopping, refresh;
  rl_job_statistics tally;
  pthread_mutex_t hearing; /* held while `heard` runs, so that rl_queue_set_listener can take it away safely */
  void (*heard)(void *context, int64_t job_id);
  void *heard_context;
};

static struct timespec moment(int64_t ns) {
  return (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
}

static void lock(rl_queue *jobs) { pthread_mutex_lock(&jobs->mutex); }

/* false: somebody holds it for long. By the wall clock, as ThreadSanitizer does not know pthread_mutex_clocklock: when it is
 * set back, this waits until the holder is done. */
static bool lock_soon(rl_queue *jobs) {
  struct timespec until = moment(rl_now_ns() + LOCK_WAIT_NS);
  return pthread_mutex_timedlock(&jobs->mutex, &until) == 0;
}

static void unlock(rl_queue *jobs) { pthread_mutex_unlock(&jobs->mutex); }

int rl_queue_open(rl_store *store, int64_t queue_limit, rl_queue **jobs, rl_error *err) {
  int64_t requeued;
  if (rl_store_jobs_requeue(store, DAEMON_DEATHS_MAX, &requeued, err) < 0) return -1;
  rl_queue *made = calloc(1, sizeof *made);
  if (made == NULL) return rl_fail(err, RL_SYS, ENOMEM, "no memory for the queue");
  made->store = store;
  made->queue_limit = queue_limit;
  made->deadline_s = DEFAULT_DEADLINE_S;
  pthread_mutex_init(&made->mutex, NULL);
  pthread_mutex_init(&made->hearing, NULL);
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&made->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  *jobs = made;
  return 0;
}

void rl_queue_close(rl_queue *jobs) {
  if (jobs == NULL) return;
  pthread_cond_destroy(&jobs->changed);
  pthread_mutex_destroy(&jobs->hearing);
  pthread_mutex_destroy(&jobs->mutex);
  free(jobs);
}

/* --- devices ----------------------------------------------------------------------------------------------------------- */

static device *find_device(rl_queue *jobs, const char *id) {
  for (int i = 0; i < jobs->device_count; i++)
    if (strcmp(jobs->devices[i].id, id) == 0) return &jobs->devices[i];
  return NULL;
}

/* The device whose lane works on the job. */
static device *find_job(rl_queue *jobs, int64_t job_id) {
  for (int i = 0; i < jobs->device_count; i++)
    if (jobs->devices[i].job_id == job_id) return &jobs->devices[i];
  return NULL;
}

int rl_queue_set_devices(rl_queue *jobs, const char *const *ids, const bool *usable, int count, const char *fallback,
                         rl_error *err) {
  if (count > RL_DEVICES_MAX) return rl_fail(err, RL_INPUT, 0, "%d devices are more than %d", count, RL_DEVICES_MAX);
  lock(jobs);
  jobs->device_count = count;
  for (int i = 0; i < count; i++) {
    jobs->devices[i] = (device){.usable = usable[i]};
    snprintf(jobs->devices[i].id, sizeof jobs->devices[i].id, "%s", ids[i]);
  }
  snprintf(jobs->fallback, sizeof jobs->fallback, "%s", fallback != NULL ? fallback : "");
  unlock(jobs);
  return 0;
}

void rl_queue_set_deadline(rl_queue *jobs, int64_t seconds) {
  lock(jobs);
  jobs->deadline_s = seconds;
  unlock(jobs);
}

void rl_queue_set_refresh(rl_queue *jobs, bool refresh) {
  lock(jobs);
  jobs->refresh = refresh;
  unlock(jobs);
}

static int choose_device(rl_queue *jobs, rl_job_spec *spec, rl_error *err) {
  char *id = spec->device;
  if (id[0] == '\0') {
    if (jobs->fallback[0] == '\0') return rl_fail(err, RL_HTTP, 503, "no device can take jobs now; /devices says why");
    if (spec->needs_gpu && strncmp(jobs->fallback, "gpu", 3) != 0)
      return rl_fail_at(err, "/device", "this kind of job needs a GPU, and none is usable here; /devices says why");
    snprintf(id, sizeof spec->device, "%s", jobs->fallback);
    return 0;
  }
  const device *chosen = find_device(jobs, id);
  if (chosen == NULL) return rl_fail_at(err, "/device", "there is no device %s; /devices lists them", id);
  if (!chosen->usable) return rl_fail_at(err, "/device", "%s can't take jobs; /devices says why", id);
  return 0;
}

/* --- events ------------------------------------------------------------------------------------------------------------ */

void rl_queue_set_listener(rl_queue *jobs, void (*heard)(void *context, int64_t job_id), void *context) {
  pthread_mutex_lock(&jobs->hearing);
  jobs->heard = heard;
  jobs->heard_context = context;
  pthread_mutex_unlock(&jobs->hearing);
}

static void announce(rl_queue *jobs, int64_t job_id) {
  pthread_mutex_lock(&jobs->hearing);
  if (jobs->heard != NULL) jobs->heard(jobs->heard_context, job_id);
  pthread_mutex_unlock(&jobs->hearing);
}

/* --- the tally --------------------------------------------------------------------------------------------------------- */

const rl_job_statistics *rl_queue_statistics(const rl_queue *jobs) { return &jobs->tally; }

/* After a job has begun or ended. What the store can't tell now is not counted. */
static void count_change(rl_queue *jobs, int64_t job_id, void (*count)(rl_job_statistics *tally, const rl_job_status *life)) {
  rl_job_status life;
  rl_error ignored;
  if (rl_store_job_status(jobs->store, job_id, &life, &ignored) == 0) count(&jobs->tally, &life);
}

/* --- clients ----------------------------------------------------------------------------------------------------------- */

/* What a key stands for is answered first: a retry gets its job, whatever became of the device since. */
static int submit_locked(rl_queue *jobs, rl_job_spec *spec, const char *key, const char *body_sha256, int64_t *id, bool *existing,
                         rl_error *err) {
  int seen = key != NULL ? rl_store_job_by_key(jobs->store, key, body_sha256, id, err) : 0;
  *existing = seen > 0;
  if (seen != 0) return seen < 0 ? -1 : 0;
  if (jobs->stopping) return rl_fail(err, RL_HTTP, 503, "the daemon is stopping; submit again when it is back");
  if (choose_device(jobs, spec, err) < 0 || rl_job_spec_fit(spec, err) < 0) return -1;
  return rl_store_job_insert(jobs->store, spec, key, body_sha256, jobs->queue_limit, id, existing, err);
}

int rl_queue_submit(rl_queue *jobs, rl_job_spec *spec, const char *key, const char *body_sha256, int64_t *id, bool *existing,
                    rl_error *err) {
  lock(jobs);
  int rc = submit_locked(jobs, spec, key, body_sha256, id, existing, err);
  if (rc == 0 && !*existing) pthread_cond_broadcast(&jobs->changed);
  unlock(jobs);
  if (rc != 0 || *existing) return rc;
  rl_job_statistics_submitted(&jobs->tally, spec->kind);
  announce(jobs, *id);
  return rc;
}

/* The cancel is on disk at once, also when a worker still has to be told: whatever it yet yields is thrown away. */
int rl_queue_cancel(rl_queue *jobs, int64_t id, rl_error *err) {
  lock(jobs);
  int rc = rl_store_job_finish(jobs->store, id, RL_JOB_CANCELLED, NULL, err);
  if (rc == 0) {
    device *on = find_job(jobs, id);
    if (on != NULL) on->cancel = true;
    count_change(jobs, id, rl_job_statistics_finished);
  }
  unlock(jobs);
  if (rc == 0) announce(jobs, id);
  return rc;
}

int rl_queue_count(rl_queue *jobs, rl_job_counts *counts, rl_error *err) { return rl_store_jobs_count(jobs->store, counts, err); }

/* --- lanes ------------------------------------------------------------------------------------------------------------- */

/* 1: *claim is the next pass. *started says that its job begins with it. */
static int claim_locked(rl_queue *jobs, device *on, rl_claim *claim, bool *started, rl_error *err) {
  rl_claim next;
  int rc = rl_store_pass_claim(jobs->store, on->id, &next, err);
  if (rc == 0) on->job_id = 0; /* whatever became of the last one */
  if (rc != 1) return rc;
  *started = on->job_id != next.job_id;
  on->cancel = false;
  if (*started) {
    on->job_id = next.job_id;
    on->started_ns = rl_monotonic_ns();
    on->progress_ns = 0;
    count_change(jobs, next.job_id, rl_job_statistics_started);
  }
  int64_t allowed_ns = next.deadline_ns > 0 ? next.deadline_ns : jobs->deadline_s * 1000000000;
  next.deadline_ns = on->started_ns + allowed_ns;
  *claim = next;
  return 1;
}

int rl_queue_claim(rl_queue *jobs, const char *id, int timeout_ms, rl_claim *claim, rl_error *err) {
  struct timespec until = moment(rl_monotonic_ns() + (int64_t)timeout_ms * 1000000);
  bool started = false;
  int rc = 0, waited = 0;
  lock(jobs);
  device *on = find_device(jobs, id);
  if (on == NULL) rc = rl_fail(err, RL_INPUT, 0, "there is no device %s", id);
  while (rc == 0 && !jobs->stopping) {
    rc = claim_locked(jobs, on, claim, &started, err);
    if (rc != 0 || waited == ETIMEDOUT) break;
    waited = pthread_cond_timedwait(&jobs->changed, &jobs->mutex, &until);
  }
  unlock(jobs);
  if (started) announce(jobs, claim->job_id);
  return rc;
}

int64_t rl_queue_job_on_device(rl_queue *jobs, const char *id) {
  const device *on = find_device(jobs, id);
  return on != NULL ? on->job_id : 0;
}

bool rl_queue_should_cancel(rl_queue *jobs, int64_t job_id) {
  const device *on = find_job(jobs, job_id);
  return on != NULL && on->cancel;
}

/* On a full disk it is left out: the job goes on without it. */
static void keep_progress(rl_store *store, int64_t job_id, int64_t run_id, const rl_progress *progress) {
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

void rl_queue_progress(rl_queue *jobs, int64_t job_id, int64_t run_id, const rl_progress *progress) {
  int64_t now = rl_monotonic_ns();
  if (!lock_soon(jobs)) return; /* a pass of another device is being stored: there will be more progress */
  device *on = find_job(jobs, job_id);
  bool kept = on != NULL && !on->cancel && (on->progress_ns == 0 || now - on->progress_ns >= PROGRESS_INTERVAL_NS);
  if (kept) {
    on->progress_ns = now;
    keep_progress(jobs->store, job_id, run_id, progress);
  }
  unlock(jobs);
  if (kept) announce(jobs, job_id);
}

/* Like progress, it is left out when the disk is full. */
void rl_queue_log(rl_queue *jobs, const rl_claim *claim, const char *text) {
  rl_error ignored;
  lock(jobs);
  const device *on = find_job(jobs, claim->job_id);
  if (on != NULL && !on->cancel) (void)rl_store_run_log(jobs->store, claim->run_id, text, &ignored);
  unlock(jobs);
}

/* How a lane's claim can end. Each ending locks, asks settle_begin, does its store call, and hands the result to
 * settle_end. */
typedef struct ending {
  device *on;
  bool cancelled; /* the job was cancelled meanwhile: nothing more is to be stored */
} ending;

static ending settle_begin(rl_queue *jobs, const rl_claim *claim) {
  lock(jobs);
  ending end = {.on = find_job(jobs, claim->job_id)};
  end.cancelled = end.on != NULL && end.on->cancel;
  return end;
}

/* On success the claim is over, and with job_over the job is no longer the device's: at once, for those who read its end. */
static int settle_end(rl_queue *jobs, const rl_claim *claim, ending end, bool job_over, int rc) {
  if (rc == 0 && end.on != NULL && (job_over || end.cancelled)) {
    end.on->job_id = 0;
    end.on->cancel = false;
  }
  if (rc == 0 && job_over && !end.cancelled) count_change(jobs, claim->job_id, rl_job_statistics_finished);
  unlock(jobs);
  if (rc == 0) announce(jobs, claim->job_id);
  return rc;
}

/* Once a pass has shown that the ceilings of its device are stale. A failure is no reason to fail the pass: the next one asks
 * again. */
static void refresh_ceilings(rl_queue *jobs, const rl_claim *claim, const char *id) {
  static const rl_job_policy policy = {.posting = RL_POSTING_OFF};
  rl_error err;
  rl_auto(rl_job_spec_clear) rl_job_spec spec = {0};
  char request[64];
  int64_t number;
  bool due = false, existing;
  if (rl_store_ceilings_due(jobs->store, claim->pass_id, &due, &err) < 0 || !due) return;
  int length = snprintf(request, sizeof request, "{\"kind\":\"ceilings\",\"device\":\"%s\"}", id);
  if (rl_job_spec_parse(request, (size_t)length, &policy, &spec, &err) < 0) return;
  spec.automatic = true;
  if (rl_queue_submit(jobs, &spec, NULL, NULL, &number, &existing, &err) == 0)
    rl_log(RL_LOG_INFO, "%s is not as it was when its ceilings were measured: job %lld measures them again", id,
           (long long)number);
}

static int commit_as(rl_queue *jobs, const rl_claim *claim, const rl_records *records, const char *reason, rl_error *err) {
  ending end = settle_begin(jobs, claim);
  char id[sizeof end.on->id];
  bool job_done = false;
  int rc = 0;
  if (!end.cancelled) rc = rl_store_pass_commit(jobs->store, claim, records, reason, &job_done, err);
  bool look = rc == 0 && !end.cancelled && end.on != NULL && jobs->refresh && claim->pass == RL_PASS_TIMING;
  if (look) snprintf(id, sizeof id, "%s", end.on->id);
  rc = settle_end(jobs, claim, end, job_done, rc);
  if (look) refresh_ceilings(jobs, claim, id);
  return rc;
}

int rl_queue_commit(rl_queue *jobs, const rl_claim *claim, const rl_records *records, rl_error *err) {
  return commit_as(jobs, claim, records, NULL, err);
}

int rl_queue_unavailable(rl_queue *jobs, const rl_claim *claim, const rl_records *records, const char *reason, rl_error *err) {
  return commit_as(jobs, claim, records, reason, err);
}

static int finish_as(rl_queue *jobs, const rl_claim *claim, rl_job_state state, const rl_error *problem, rl_error *err) {
  ending end = settle_begin(jobs, claim);
  int rc = end.cancelled ? 0 : rl_store_job_finish(jobs->store, claim->job_id, state, problem, err);
  return settle_end(jobs, claim, end, true, rc);
}

int rl_queue_fail(rl_queue *jobs, const rl_claim *claim, const rl_error *why, rl_error *err) {
  return finish_as(jobs, claim, RL_JOB_FAILED, why, err);
}

int rl_queue_cancelled(rl_queue *jobs, const rl_claim *claim, rl_error *err) {
  return finish_as(jobs, claim, RL_JOB_CANCELLED, NULL, err);
}

int rl_queue_interrupted(rl_queue *jobs, const rl_claim *claim, rl_error *err) {
  return finish_as(jobs, claim, RL_JOB_INTERRUPTED, NULL, err);
}

int rl_queue_worker_died(rl_queue *jobs, const rl_claim *claim, const char *reason, rl_error *err) {
  ending end = settle_begin(jobs, claim);
  bool job_over = false;
  int rc = end.cancelled ? 0 : rl_store_pass_died(jobs->store, claim, reason, DEATHS_MAX, &job_over, err);
  return settle_end(jobs, claim, end, job_over, rc);
}

void rl_queue_stop(rl_queue *jobs) {
  lock(jobs);
  jobs->stopping = true;
  pthread_cond_broadcast(&jobs->changed);
  unlock(jobs);
}
