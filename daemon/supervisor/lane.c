#include "supervisor/lane.h"

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

enum { CLAIM_WAIT_MS = 1000, HOLD_MS = 200, DEATH_GRACE_MS = 1000, STOP_GRACE_MS = 200, COMMIT_ATTEMPTS = 5 };
static const int64_t MS = 1000000, PAUSE_FIRST_MS = 250, PAUSE_MOST_MS = 30000;
static const size_t RECORDS_LIMIT = (size_t)512 << 20;

/* Which worker does which pass. The timing pass has a worker to itself, which never loads a profiler; the CPU has none
 * to load. */
enum { WORKERS_MAX = 2 };
typedef struct staffing {
  const char *kind;
  const char *roles[WORKERS_MAX];
  int worker_of_pass[RL_PASSES];
} staffing;
static const staffing staffings[] = {
    {"cpu", {"any", NULL}, {0, 0, 0}},
    {"cuda", {"clean", "profiled"}, {[RL_PASS_TIMING] = 0, [RL_PASS_ACTIVITY] = 1, [RL_PASS_COUNTERS] = 1}},
};

static const staffing *find_staffing(const char *kind) {
  for (size_t i = 0; i < sizeof staffings / sizeof *staffings; i++)
    if (strcmp(staffings[i].kind, kind) == 0) return &staffings[i];
  return NULL;
}

bool rl_lane_serves(const char *kind) { return find_staffing(kind) != NULL; }

struct rl_lane {
  char program[RL_PATH_SIZE];
  rl_queue *jobs;
  const staffing *staffing;
  rl_worker workers[WORKERS_MAX];
  int64_t pause_ms, not_before_ns; /* back-off of the next start */
  atomic_bool stopping;
  pthread_t thread;
  pthread_mutex_t mutex;
  rl_device_state state; /* under the mutex; the job and whether there is one are the queue's to say */
};

static void show(rl_lane *lane, const char *what) {
  pthread_mutex_lock(&lane->mutex);
  snprintf(lane->state.state, sizeof lane->state.state, "%s", what);
  pthread_mutex_unlock(&lane->mutex);
}

void rl_lane_state(rl_lane *lane, rl_device_state *state) {
  int64_t job_id = rl_queue_job_on_device(lane->jobs, lane->state.id);
  pthread_mutex_lock(&lane->mutex);
  *state = lane->state;
  pthread_mutex_unlock(&lane->mutex);
  state->job_id = job_id;
  for (int i = 0; i < WORKERS_MAX; i++) {
    state->frames += lane->workers[i].frames;
    state->bytes += lane->workers[i].bytes;
  }
  if (job_id == 0) snprintf(state->state, sizeof state->state, "idle");
}

static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = RL_TICK_MS * MS}, NULL); }

/* How long after a death the next start waits. */
static void lengthen_pause(rl_lane *lane) {
  int64_t longer = lane->pause_ms == 0 ? PAUSE_FIRST_MS : lane->pause_ms * 2;
  lane->pause_ms = longer < PAUSE_MOST_MS ? longer : PAUSE_MOST_MS;
  lane->not_before_ns = rl_monotonic_ns() + lane->pause_ms * MS;
}

/* --- one pass ---------------------------------------------------------------------------------------------------------- */

/* Have the worker of this pass running: wait for the back-off, start it, hear its hello. */
static rl_answer start_worker(rl_lane *lane, rl_attempt *at) {
  show(lane, "starting");
  while (rl_monotonic_ns() < lane->not_before_ns) {
    rl_answer outside = rl_attempt_interruption(at);
    if (outside != RL_ANSWER_NONE) return outside;
    nap();
  }
  return rl_worker_start(at->worker, &at->why) < 0 ? RL_ANSWER_DIED : rl_attempt_meet(at);
}

/* What they keep of the device; but: NULL where all are to. */
static void release_workers(rl_lane *lane, const rl_worker *but) {
  for (rl_worker *worker = lane->workers; worker < lane->workers + WORKERS_MAX; worker++)
    if (worker != but) rl_worker_release(worker);
}

static rl_answer do_pass(rl_lane *lane, rl_attempt *at) {
  release_workers(lane, at->worker);
  rl_worker_check_idle(at->worker);
  rl_worker_recycle(at->worker, at->claim->job_id);
  rl_answer got = at->worker->process.pid == 0 ? start_worker(lane, at) : rl_attempt_interruption(at);
  if (got != RL_ANSWER_NONE) return got;
  show(lane, "busy");
  return rl_attempt_perform(at);
}

/* End a worker that did not answer, and pause before the next start if it is to blame. */
static void punish(rl_lane *lane, rl_attempt *at, rl_answer got) {
  char ending[RL_EXIT_STATUS_SIZE] = "was not started";
  bool by_itself =
      got == RL_ANSWER_DIED && at->why.domain == RL_WIRE && (at->why.code == RL_WIRE_CLOSED || at->why.code == RL_WIRE_TRUNCATED);
  rl_worker_end(at->worker, by_itself ? DEATH_GRACE_MS : 0, ending);
  if (got != RL_ANSWER_DIED) return;
  lengthen_pause(lane);
  pthread_mutex_lock(&lane->mutex);
  lane->state.restarts++;
  pthread_mutex_unlock(&lane->mutex);
  if (by_itself) /* how it ended says more than that it closed its pipe */
    rl_fail(&at->why, RL_WIRE, RL_WIRE_CLOSED, "the %s worker %s", at->worker->role, ending);
  else rl_wrap(&at->why, "the %s worker was ended", at->worker->role);
  rl_log(RL_LOG_WARNING, "job %lld, %s pass of %s on %s: %s", (long long)at->claim->job_id, rl_pass_names[at->claim->pass],
         at->claim->run.variant, lane->state.id, at->why.message);
}

/* --- its outcome ------------------------------------------------------------------------------------------------------- */

static int settle_once(const rl_attempt *at, rl_answer got, rl_error *err) {
  rl_queue *jobs = at->jobs;
  switch (got) {
    case RL_ANSWER_DONE: return rl_queue_commit(jobs, at->claim, &at->records, err);
    case RL_ANSWER_UNAVAILABLE: return rl_queue_unavailable(jobs, at->claim, &at->records, at->why.message, err);
    case RL_ANSWER_CANCELLED:
    case RL_ANSWER_IGNORED_CANCEL: return rl_queue_cancelled(jobs, at->claim, err);
    case RL_ANSWER_STOPPED: return rl_queue_interrupted(jobs, at->claim, err);
    case RL_ANSWER_DIED: return rl_queue_worker_died(jobs, at->claim, at->why.message, err);
    case RL_ANSWER_FAILED:
    case RL_ANSWER_LATE:
    case RL_ANSWER_NONE: break;
  }
  return rl_queue_fail(jobs, at->claim, &at->why, err);
}

/* What the worker sent says two things of one: no waiting changes that. SQLITE_CONSTRAINT: sqlite3.h stays in the store. */
static bool contradictory(const rl_error *err) {
  enum { CONSTRAINT = 19 };
  return err->domain == RL_SQLITE && (err->code & 0xff) == CONSTRAINT;
}

/* Get the outcome onto the disk. The disk may be full for a while: results are offered again a few times, and then the
 * job is failed, which needs less room. What can't be written at all is taken up again at the next start. */
static void settle(rl_attempt *at, rl_answer got) {
  rl_error err;
  int64_t pause_ms = PAUSE_FIRST_MS;
  for (int attempt = 1; settle_once(at, got, &err) < 0; attempt++) {
    rl_log(RL_LOG_ERROR, "job %lld: can't store how its %s pass went: %s", (long long)at->claim->job_id,
           rl_pass_names[at->claim->pass], err.message);
    if (err.domain == RL_HTTP) return; /* the job is over or gone: there is nothing to store */
    bool has_results = got == RL_ANSWER_DONE || got == RL_ANSWER_UNAVAILABLE;
    if (has_results && (attempt >= COMMIT_ATTEMPTS || contradictory(&err))) {
      at->why = err;
      rl_wrap(&at->why, contradictory(&err) ? "the results contradict themselves" : "can't store the results");
      got = RL_ANSWER_FAILED;
      continue;
    }
    int64_t until = rl_monotonic_ns() + pause_ms * MS;
    pause_ms = pause_ms * 2 < PAUSE_MOST_MS ? pause_ms * 2 : PAUSE_MOST_MS;
    while (rl_monotonic_ns() < until) {
      if (atomic_load(at->stopping)) return;
      nap();
    }
  }
}

static void perform(rl_lane *lane, const rl_claim *claim) {
  rl_attempt at = {.jobs = lane->jobs,
                   .claim = claim,
                   .worker = &lane->workers[lane->staffing->worker_of_pass[claim->pass]],
                   .stopping = &lane->stopping,
                   .records.limit_bytes = RECORDS_LIMIT};
  rl_answer got = do_pass(lane, &at);
  if (got > RL_ANSWER_CANCELLED) punish(lane, &at, got);
  else lane->pause_ms = 0;
  settle(&at, got);
  rl_records_clear(&at.records);
}

/* --- the lane ---------------------------------------------------------------------------------------------------------- */

static void *run(void *argument) {
  rl_lane *lane = argument;
  int wait_ms = CLAIM_WAIT_MS;
  while (!atomic_load(&lane->stopping)) {
    rl_claim claim;
    rl_error err;
    int rc = rl_queue_claim(lane->jobs, lane->state.id, wait_ms, &claim, &err);
    wait_ms = rc == 1 ? HOLD_MS : CLAIM_WAIT_MS;
    if (rc == 1) {
      perform(lane, &claim);
      rl_claim_clear(&claim);
    }
    if (rc == 0) release_workers(lane, NULL); /* whoever profiles by hand finds the device free: ncu needs longer to start */
    if (rc >= 0) continue;
    rl_log(RL_LOG_ERROR, "%s: can't take the next pass: %s", lane->state.id, err.message);
    for (int i = 0; i < CLAIM_WAIT_MS / RL_TICK_MS && !atomic_load(&lane->stopping); i++) nap();
  }
  for (int i = 0; i < WORKERS_MAX; i++) {
    char ending[RL_EXIT_STATUS_SIZE];
    rl_worker_end(&lane->workers[i], STOP_GRACE_MS, ending); /* its input closes, so it exits at once */
  }
  return NULL;
}

int rl_lane_open(const char *program, const rl_device_state *device, const rl_config *config, rl_queue *jobs, rl_lane **lane,
                 rl_error *err) {
  const staffing *found = find_staffing(device->kind);
  if (found == NULL) return rl_fail(err, RL_INPUT, 0, "this daemon knows no devices of the kind %s", device->kind);
  rl_lane *made = calloc(1, sizeof *made);
  if (made == NULL) return rl_fail(err, RL_SYS, ENOMEM, "no memory for %s", device->id);
  snprintf(made->program, sizeof made->program, "%s", program);
  made->jobs = jobs;
  made->staffing = found;
  made->state = *device;
  for (int i = 0; i < WORKERS_MAX; i++) {
    rl_worker *worker = &made->workers[i];
    worker->program = made->program;
    worker->device = made->state.id;
    worker->role = found->roles[i];
    worker->config = config;
  }
  snprintf(made->state.state, sizeof made->state.state, "starting");
  pthread_mutex_init(&made->mutex, NULL);
  int code = pthread_create(&made->thread, NULL, run, made);
  if (code != 0) {
    pthread_mutex_destroy(&made->mutex);
    free(made);
    return rl_fail(err, RL_SYS, code, "can't start a thread for %s: %s", device->id, strerror(code));
  }
  *lane = made;
  return 0;
}

void rl_lane_stop(rl_lane *lane) { atomic_store(&lane->stopping, true); }

void rl_lane_close(rl_lane *lane) {
  if (lane == NULL) return;
  rl_lane_stop(lane);
  pthread_join(lane->thread, NULL);
  pthread_mutex_destroy(&lane->mutex);
  free(lane);
}
