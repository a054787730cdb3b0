/* The heartbeat thread waits until the main thread executes a request, and then writes a HEARTBEAT frame every 5 s until the
 * request ends. */
#include "worker/heartbeat.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/condition.h"
#include "wire/wire.h"

enum {
  INTERVAL_S = 5,
  MAX_QUIET_BEATS = 6, /* number of quiet heartbeats in a row after which the limit falls to QUIET_LIMIT_MS */
  /* one second less than the interval of these heartbeats, so that the idle time in the last one exceeds the limit */
  QUIET_LIMIT_MS = MAX_QUIET_BEATS * INTERVAL_S * 1000 - 1000
};
/* A heartbeat is quiet if the process used less CPU time than this since the previous heartbeat. */
static const int64_t QUIET_CPU_NS = 10000000;

static struct heartbeat_state {
  pthread_mutex_t frames_lock; /* held while the main or the heartbeat thread writes a frame; guards busy and stage */
  pthread_cond_t request_began_or_ended;
  bool busy; /* the main thread executes a request */
  char stage[sizeof((rl_heartbeat *)0)->stage];
  _Atomic int64_t check_point_ns; /* monotonic time of the last check point */
  bool computes_on_cpu;
  int64_t cpu_ns;  /* CPU time of the process at the last heartbeat */
  int quiet_beats; /* number of quiet heartbeats in a row, up to the last one */
  int descriptor;
  void (*failed)(const rl_error *err);
} state = {.frames_lock = PTHREAD_MUTEX_INITIALIZER, .request_began_or_ended = PTHREAD_COND_INITIALIZER};

/* Updates quiet_beats from the CPU time that the process used since the previous heartbeat. */
static void count_quiet_beats(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  int64_t cpu_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
  state.quiet_beats = cpu_ns - state.cpu_ns < QUIET_CPU_NS ? state.quiet_beats + 1 : 0;
  state.cpu_ns = cpu_ns;
}

static bool is_iterating(const char *stage) {
  static const char *const stages[] = {"warmup", "epoch", "evaluate"};
  for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
    if (strcmp(stage, stages[i]) == 0) return true;
  return false;
}

/* Returns whether a main thread that makes progress must use CPU time in this stage. On the CPU this holds in every stage except
 * "open", where the thread may wait for a slow disk. On a GPU it holds in iterations, where the driver spins while it waits for a
 * launch (the default, cudaDeviceScheduleAuto); in other stages the profiler may block instead. */
static bool must_use_cpu(bool computes_on_cpu, const char *stage) {
  return computes_on_cpu ? strcmp(stage, "open") != 0 : is_iterating(stage);
}

int64_t rl_heartbeat_limit_ms(bool computes_on_cpu, const char *stage, int quiet_beats) {
  if (quiet_beats >= MAX_QUIET_BEATS && must_use_cpu(computes_on_cpu, stage)) return QUIET_LIMIT_MS;
  return is_iterating(stage) ? 300000 : 900000;
}

static int send_heartbeat(rl_error *err) {
  count_quiet_beats();
  rl_heartbeat message = {.idle_ms = (rl_monotonic_ns() - atomic_load(&state.check_point_ns)) / 1000000,
                          .limit_ms = rl_heartbeat_limit_ms(state.computes_on_cpu, state.stage, state.quiet_beats)};
  snprintf(message.stage, sizeof message.stage, "%s", state.stage);
  return rl_frame_write_json(state.descriptor, RL_FRAME_HEARTBEAT, rl_heartbeat_fields, &message, err);
}

static void *run_heartbeat_thread(void *unused) {
  (void)unused;
  rl_error err;
  pthread_mutex_lock(&state.frames_lock);
  for (;;) {
    while (!state.busy) pthread_cond_wait(&state.request_began_or_ended, &state.frames_lock);
    const struct timespec until = rl_condition_deadline(INTERVAL_S * INT64_C(1000000000));
    int waited = pthread_cond_timedwait(&state.request_began_or_ended, &state.frames_lock, &until);
    if (waited == ETIMEDOUT && state.busy && send_heartbeat(&err) < 0) state.failed(&err);
  }
  return NULL;
}

int rl_heartbeat_start(int descriptor, bool computes_on_cpu, void (*failed)(const rl_error *err), rl_error *err) {
  pthread_t thread;
  state.descriptor = descriptor;
  state.computes_on_cpu = computes_on_cpu;
  state.failed = failed;
  rl_condition_init(&state.request_began_or_ended);
  int code = pthread_create(&thread, NULL, run_heartbeat_thread, NULL);
  if (code != 0) return rl_fail(err, RL_ERRNO, code, "can't start the heartbeat thread: %s", strerror(code));
  pthread_detach(thread);
  return 0;
}

void rl_heartbeat_check_point(void) { atomic_store_explicit(&state.check_point_ns, rl_monotonic_ns(), memory_order_relaxed); }

void rl_heartbeat_lock_frames(void) { pthread_mutex_lock(&state.frames_lock); }

void rl_heartbeat_unlock_frames(void) {
  rl_heartbeat_check_point();
  pthread_mutex_unlock(&state.frames_lock);
}

void rl_heartbeat_enter_stage(const char *stage) {
  rl_heartbeat_lock_frames();
  snprintf(state.stage, sizeof state.stage, "%s", stage);
  rl_heartbeat_unlock_frames();
}

void rl_heartbeat_begin_request(void) {
  rl_heartbeat_lock_frames();
  state.busy = true;
  state.quiet_beats = 0;
  pthread_cond_signal(&state.request_began_or_ended);
  rl_heartbeat_unlock_frames();
}

void rl_heartbeat_end_request(void) {
  state.busy = false;
  pthread_cond_signal(&state.request_began_or_ended);
}
