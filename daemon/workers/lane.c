#include "workers/lane.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cache.h"
#include "base/clock.h"
#include "base/log.h"
#include "workers/process.h"
#include "workers/wire.h"

enum {
  TICK_MS = 100,          /* how late a cancel, a stop or a deadline is noticed at most */
  CLAIM_WAIT_MS = 1000,
  CANCEL_WAIT_MS = 5000,  /* how long a worker may take to obey a cancel */
  HELLO_WAIT_MS = 60000,  /* making a CUDA context on a cold machine takes seconds */
  COMMIT_ATTEMPTS = 5
};
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

typedef struct worker {
  const char *role;
  rl_process process; /* pid 0: not started */
  rl_frame_reader *reader;
  int64_t posted_job; /* whose posted code it ran, 0: nobody's */
} worker;

struct rl_lane {
  char program[RL_PATH_SIZE];
  const rl_config *config;
  rl_jobs *jobs;
  const staffing *staffing;
  worker workers[WORKERS_MAX];
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
  int64_t job_id = rl_jobs_on_device(lane->jobs, lane->state.id);
  pthread_mutex_lock(&lane->mutex);
  *state = lane->state;
  pthread_mutex_unlock(&lane->mutex);
  state->job_id = job_id;
  if (job_id == 0) snprintf(state->state, sizeof state->state, "idle");
}

static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = TICK_MS * MS}, NULL); }

/* --- one pass ----------------------------------------------------------------------------------------------------- */

/* How a pass went. All but the first four end the worker. */
typedef enum answer {
  ANSWER_DONE, ANSWER_UNAVAILABLE, ANSWER_FAILED, ANSWER_CANCELLED,
  ANSWER_IGNORED_CANCEL, ANSWER_LATE, ANSWER_STOPPED, ANSWER_DIED,
  ANSWER_NONE /* still at it */
} answer;

typedef struct pass {
  rl_lane *lane;
  const rl_claim *claim;
  worker *by;
  rl_records records;
  int64_t cancel_sent_ns; /* 0: not yet */
  rl_error why;           /* of every answer but DONE */
} pass;

/* What happened outside the worker: a stop, the deadline, a cancel. */
static answer interruption(pass *at) {
  int64_t now = rl_monotonic_ns();
  if (atomic_load(&at->lane->stopping)) return ANSWER_STOPPED;
  if (now >= at->claim->deadline_ns) {
    rl_fail(&at->why, RL_WIRE, RL_WIRE_TIMEOUT, "the job was not done by its deadline; its worker was killed");
    return ANSWER_LATE;
  }
  if (!rl_jobs_should_cancel(at->lane->jobs, at->claim->job_id)) return ANSWER_NONE;
  if (at->by->process.pid == 0) return ANSWER_CANCELLED;
  if (at->cancel_sent_ns == 0) {
    at->cancel_sent_ns = now;
    return rl_frame_write(at->by->process.input, RL_FRAME_CANCEL, NULL, 0, &at->why) < 0 ? ANSWER_IGNORED_CANCEL
                                                                                         : ANSWER_NONE;
  }
  return now - at->cancel_sent_ns > CANCEL_WAIT_MS * MS ? ANSWER_IGNORED_CANCEL : ANSWER_NONE;
}

static answer broken(pass *at, const char *what) {
  rl_fail(&at->why, RL_WIRE, RL_WIRE_PAYLOAD, "%s", what);
  return ANSWER_DIED;
}

static answer received(rl_lane *lane, const rl_frame *frame) {
  pthread_mutex_lock(&lane->mutex);
  lane->state.frames++;
  lane->state.bytes += RL_WIRE_HEADER + frame->length;
  pthread_mutex_unlock(&lane->mutex);
  return ANSWER_NONE;
}

/* The worker's next frame, or what ended the wait for it. until_ns: when its silence counts as death; 0: never. */
static answer next_frame(pass *at, int64_t until_ns, rl_frame *frame) {
  for (;;) {
    answer outside = interruption(at);
    if (outside != ANSWER_NONE) return outside;
    if (rl_frame_read(at->by->reader, TICK_MS, frame, &at->why) == 0) return received(at->lane, frame);
    if (at->why.domain != RL_WIRE || at->why.code != RL_WIRE_TIMEOUT) return ANSWER_DIED;
    if (until_ns != 0 && rl_monotonic_ns() >= until_ns) return broken(at, "it said nothing after it was started");
  }
}

static rl_domain domain_named(const char *name) {
  for (rl_domain domain = RL_SYS; domain <= RL_WIRE; domain++)
    if (strcmp(rl_domain_name(domain), name) == 0) return domain;
  return RL_SYS;
}

static answer take_failure(pass *at, const rl_frame *frame, answer meaning) {
  rl_failure failure = {0};
  if (rl_fields_parse(rl_failure_fields, (const char *)frame->payload, frame->length, &failure, sizeof failure,
                      &at->why) < 0)
    return ANSWER_DIED;
  rl_fail(&at->why, domain_named(failure.domain), (int)failure.code, "%s", failure.message);
  return meaning;
}

static answer take_frame(pass *at, const rl_frame *frame) {
  switch (frame->type) {
    case RL_FRAME_PROGRESS: {
      rl_progress progress = {0};
      if (rl_fields_parse(rl_progress_fields, (const char *)frame->payload, frame->length, &progress, sizeof progress,
                          &at->why) < 0)
        return ANSWER_DIED;
      rl_jobs_progress(at->lane->jobs, at->claim->job_id, at->claim->run_id, &progress);
      return ANSWER_NONE;
    }
    case RL_FRAME_LOG:
      rl_jobs_log(at->lane->jobs, at->claim, (const char *)frame->payload);
      return ANSWER_NONE;
    case RL_FRAME_DONE: return at->records.have_facts ? ANSWER_DONE : broken(at, "DONE came before FACTS");
    case RL_FRAME_UNAVAILABLE: return take_failure(at, frame, ANSWER_UNAVAILABLE);
    case RL_FRAME_FAILED: return take_failure(at, frame, ANSWER_FAILED);
    case RL_FRAME_CANCELLED: return at->cancel_sent_ns != 0 ? ANSWER_CANCELLED : broken(at, "CANCELLED came unasked");
    default: break;
  }
  if (!at->records.have_facts && frame->type != RL_FRAME_FACTS)
    return broken(at, "the first frame of a pass is not FACTS");
  int rc = rl_frame_collect(frame, &at->records, &at->why);
  if (rc == 0) return broken(at, "a frame came that workers don't send during a pass");
  return rc < 0 ? ANSWER_DIED : ANSWER_NONE;
}

/* --- workers ------------------------------------------------------------------------------------------------------ */

static void end_worker(worker *which, char ending[RL_ENDING_SIZE], int grace_ms) {
  rl_process_end(&which->process, grace_ms, ending);
  rl_frame_reader_free(which->reader);
  which->reader = NULL;
  which->posted_job = 0;
}

/* Nothing may come while no pass runs: whatever does, an end of file above all, ends the worker. */
static void check_idle(rl_lane *lane, worker *which) {
  rl_frame frame;
  rl_error err;
  char ending[RL_ENDING_SIZE];
  if (which->process.pid == 0) return;
  if (rl_frame_read(which->reader, 0, &frame, &err) < 0 && err.domain == RL_WIRE && err.code == RL_WIRE_TIMEOUT) return;
  end_worker(which, ending, TICK_MS);
  rl_log(RL_LOG_WARNING, "%s: the idle %s worker %s", lane->state.id, which->role, ending);
}

static answer check_hello(pass *at, const rl_frame *frame) {
  rl_hello hello = {0};
  if (frame->type != RL_FRAME_HELLO) return broken(at, "the worker's first frame is not HELLO");
  if (rl_fields_parse(rl_hello_fields, (const char *)frame->payload, frame->length, &hello, sizeof hello, &at->why) < 0)
    return ANSWER_DIED;
  if (hello.protocol != RL_WIRE_VERSION || strcmp(hello.device, at->lane->state.id) != 0 ||
      strcmp(hello.role, at->by->role) != 0)
    return broken(at, "the worker's HELLO names another protocol, device or role");
  if (!hello.usable) return broken(at, hello.reason);
  return ANSWER_NONE;
}

/* Have the worker of this pass running: wait for the back-off, start it, hear its hello. */
static answer start_worker(pass *at) {
  rl_lane *lane = at->lane;
  show(lane, "starting");
  while (rl_monotonic_ns() < lane->not_before_ns) {
    answer outside = interruption(at);
    if (outside != ANSWER_NONE) return outside;
    nap();
  }
  char mnist[RL_PATH_SIZE + 32], cache[RL_PATH_SIZE + 32], threads[64];
  snprintf(mnist, sizeof mnist, "ROOFLINED_MNIST_DIR=%s", lane->config->mnist_dir);
  snprintf(threads, sizeof threads, "ROOFLINED_THREADS=%lld", (long long)lane->config->threads);
  snprintf(cache, sizeof cache, "ROOFLINED_CACHE_DIR=%s/" RL_CACHE_FOLDER, lane->config->state);
  const char *const variables[] = {mnist, cache, threads, NULL};
  const char *const arguments[] = {lane->program, "--device", lane->state.id, "--role", at->by->role, NULL};
  if (rl_process_start(arguments, variables, -1, &at->by->process, &at->why) < 0) return ANSWER_DIED;
  at->by->reader = rl_frame_reader_new(at->by->process.output);
  if (at->by->reader == NULL) return broken(at, "no memory for a worker's frames");
  rl_log(RL_LOG_INFO, "%s: started the %s worker, process %d", lane->state.id, at->by->role, (int)at->by->process.pid);
  rl_frame frame;
  answer got = next_frame(at, rl_monotonic_ns() + HELLO_WAIT_MS * MS, &frame);
  return got == ANSWER_NONE ? check_hello(at, &frame) : got;
}

/* Posted code may leave anything in the memory of the device that its process shares with nobody: what ran it does no other
 * job, be that one's code posted too. */
static void recycle(pass *at) {
  char ending[RL_ENDING_SIZE];
  if (at->by->posted_job != 0 && at->by->posted_job != at->claim->job_id) end_worker(at->by, ending, 2 * TICK_MS);
}

/* The text that the request will name goes ahead of it. */
static answer send_source(pass *at) {
  const char *text = at->claim->source;
  if (text == NULL) return ANSWER_NONE;
  at->by->posted_job = at->claim->job_id;
  return rl_frame_write(at->by->process.input, RL_FRAME_SOURCE, text, strlen(text), &at->why) < 0 ? ANSWER_DIED : ANSWER_NONE;
}

static answer do_pass(pass *at) {
  rl_request request = {.pass = (int)at->claim->pass};
  check_idle(at->lane, at->by);
  recycle(at);
  answer got = at->by->process.pid == 0 ? start_worker(at) : interruption(at);
  if (got != ANSWER_NONE) return got;
  snprintf(request.workload, sizeof request.workload, "%s", at->claim->run.workload);
  snprintf(request.params, sizeof request.params, "%s", at->claim->run.params);
  snprintf(request.profile, sizeof request.profile, "%s", at->claim->profile);
  show(at->lane, "busy");
  if (send_source(at) != ANSWER_NONE ||
      rl_message_write(at->by->process.input, RL_FRAME_REQUEST, rl_request_fields, &request, &at->why) < 0)
    return ANSWER_DIED;
  while (got == ANSWER_NONE) {
    rl_frame frame;
    got = next_frame(at, 0, &frame);
    if (got == ANSWER_NONE) got = take_frame(at, &frame);
  }
  return got;
}

/* --- the lane ----------------------------------------------------------------------------------------------------- */

/* End a worker that did not answer, and pause before the next start if it is to blame. */
static void punish(pass *at, answer got) {
  rl_lane *lane = at->lane;
  char ending[RL_ENDING_SIZE] = "was not started";
  bool by_itself = got == ANSWER_DIED && at->why.domain == RL_WIRE &&
                   (at->why.code == RL_WIRE_CLOSED || at->why.code == RL_WIRE_TRUNCATED);
  end_worker(at->by, ending, by_itself ? 10 * TICK_MS : 0);
  if (got != ANSWER_DIED) return;
  lane->pause_ms = lane->pause_ms == 0                  ? PAUSE_FIRST_MS
                   : lane->pause_ms * 2 < PAUSE_MOST_MS ? lane->pause_ms * 2
                                                        : PAUSE_MOST_MS;
  lane->not_before_ns = rl_monotonic_ns() + lane->pause_ms * MS;
  pthread_mutex_lock(&lane->mutex);
  lane->state.restarts++;
  pthread_mutex_unlock(&lane->mutex);
  if (by_itself) /* how it ended says more than that it closed its pipe */
    rl_fail(&at->why, RL_WIRE, RL_WIRE_CLOSED, "the %s worker %s", at->by->role, ending);
  else
    rl_wrap(&at->why, "the %s worker was ended", at->by->role);
  rl_log(RL_LOG_WARNING, "job %lld, %s pass of %s on %s: %s", (long long)at->claim->job_id,
         rl_pass_names[at->claim->pass], at->claim->run.variant, lane->state.id, at->why.message);
}

static int settle_once(pass *at, answer got, rl_error *err) {
  rl_jobs *jobs = at->lane->jobs;
  switch (got) {
    case ANSWER_DONE: return rl_jobs_commit(jobs, at->claim, &at->records, err);
    case ANSWER_UNAVAILABLE: return rl_jobs_unavailable(jobs, at->claim, &at->records, at->why.message, err);
    case ANSWER_CANCELLED:
    case ANSWER_IGNORED_CANCEL: return rl_jobs_cancelled(jobs, at->claim, err);
    case ANSWER_STOPPED: return rl_jobs_interrupted(jobs, at->claim, err);
    case ANSWER_DIED: return rl_jobs_worker_died(jobs, at->claim, at->why.message, err);
    case ANSWER_FAILED:
    case ANSWER_LATE:
    case ANSWER_NONE: break;
  }
  return rl_jobs_fail(jobs, at->claim, &at->why, err);
}

/* Get the outcome onto the disk. The disk may be full for a while: results are offered again a few times, and then the
 * job is failed, which needs less room. What can't be written at all is taken up again at the next start. */
static void settle(pass *at, answer got) {
  rl_error err;
  int64_t pause_ms = PAUSE_FIRST_MS;
  for (int attempt = 1; settle_once(at, got, &err) < 0; attempt++) {
    rl_log(RL_LOG_ERROR, "job %lld: can't store how its %s pass went: %s", (long long)at->claim->job_id,
           rl_pass_names[at->claim->pass], err.message);
    if (err.domain == RL_HTTP) return; /* the job is over or gone: there is nothing to store */
    if (attempt >= COMMIT_ATTEMPTS && (got == ANSWER_DONE || got == ANSWER_UNAVAILABLE)) {
      at->why = err;
      rl_wrap(&at->why, "can't store the results");
      got = ANSWER_FAILED;
    }
    int64_t until = rl_monotonic_ns() + pause_ms * MS;
    pause_ms = pause_ms * 2 < PAUSE_MOST_MS ? pause_ms * 2 : PAUSE_MOST_MS;
    while (rl_monotonic_ns() < until) {
      if (atomic_load(&at->lane->stopping)) return;
      nap();
    }
  }
}

static void perform(rl_lane *lane, const rl_claim *claim) {
  pass at = {.lane = lane, .claim = claim, .records.limit_bytes = RECORDS_LIMIT,
             .by = &lane->workers[lane->staffing->worker_of_pass[claim->pass]]};
  answer got = do_pass(&at);
  if (got > ANSWER_CANCELLED)
    punish(&at, got);
  else
    lane->pause_ms = 0;
  settle(&at, got);
  rl_records_clear(&at.records);
}

static void *run(void *argument) {
  rl_lane *lane = argument;
  while (!atomic_load(&lane->stopping)) {
    rl_claim claim;
    rl_error err;
    int rc = rl_jobs_claim(lane->jobs, lane->state.id, CLAIM_WAIT_MS, &claim, &err);
    if (rc == 1) {
      perform(lane, &claim);
      rl_claim_clear(&claim);
    }
    if (rc == 0)
      for (int i = 0; i < WORKERS_MAX; i++) check_idle(lane, &lane->workers[i]);
    if (rc >= 0) continue;
    rl_log(RL_LOG_ERROR, "%s: can't take the next pass: %s", lane->state.id, err.message);
    for (int i = 0; i < CLAIM_WAIT_MS / TICK_MS && !atomic_load(&lane->stopping); i++) nap();
  }
  for (int i = 0; i < WORKERS_MAX; i++) {
    char ending[RL_ENDING_SIZE];
    end_worker(&lane->workers[i], ending, 2 * TICK_MS); /* its input closes, so it exits at once */
  }
  return NULL;
}

int rl_lane_open(const char *program, const rl_device_state *device, const rl_config *config, rl_jobs *jobs,
                 rl_lane **lane, rl_error *err) {
  const staffing *found = find_staffing(device->kind);
  if (found == NULL) return rl_fail(err, RL_INPUT, 0, "this daemon knows no devices of the kind %s", device->kind);
  rl_lane *made = calloc(1, sizeof *made);
  if (made == NULL) return rl_fail(err, RL_SYS, ENOMEM, "no memory for %s", device->id);
  snprintf(made->program, sizeof made->program, "%s", program);
  made->config = config;
  made->jobs = jobs;
  made->staffing = found;
  for (int i = 0; i < WORKERS_MAX; i++) made->workers[i].role = found->roles[i];
  made->state = *device;
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
