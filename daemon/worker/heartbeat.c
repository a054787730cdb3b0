/* The thread waits until a request is served, then writes a frame every 5 s until it ends. frames_lock guards `busy` and `stage`,
 * and each frame that either thread writes to the daemon. */
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
  MAX_QUIET_BEATS = 6, /* beats in a row without CPU time, after which the main thread counts as hung */
  /* one second less than these beats take, so that the limit is exceeded at the last of them */
  QUIET_LIMIT_MS = MAX_QUIET_BEATS * INTERVAL_S * 1000 - 1000
};
static const int64_t QUIET_CPU_NS = 10000000; /* a beat is quiet if the process used less CPU time since the previous one */

static struct heartbeat {
  pthread_mutex_t frames_lock; /* held while a frame is written; guards busy and stage */
  pthread_cond_t busy_changed;
  bool busy; /* the main thread executes a request */
  char stage[sizeof((rl_heartbeat *)0)->stage];
  _Atomic int64_t check_point_ns; /* monotonic */
  bool computes_on_cpu;
  int64_t cpu_ns;  /* of the process, at the last beat */
  int quiet_beats; /* in a row, up to the last beat */
  int descriptor;
  void (*failed)(const rl_error *err);
} heart = {.frames_lock = PTHREAD_MUTEX_INITIALIZER, .busy_changed = PTHREAD_COND_INITIALIZER};

/* Counts the quiet beats in a row. */
static void watch_cpu_time(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  int64_t cpu_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
  heart.quiet_beats = cpu_ns - heart.cpu_ns < QUIET_CPU_NS ? heart.quiet_beats + 1 : 0;
  heart.cpu_ns = cpu_ns;
}

static bool is_iterating(const char *stage) {
  static const char *const stages[] = {"warmup", "epoch", "evaluate"};
  for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
    if (strcmp(stage, stages[i]) == 0) return true;
  return false;
}

/* Returns whether a main thread that makes progress uses CPU time in this stage, so that a process without CPU time hangs. It
 * need not while it opens an instance, since it may wait for a slow disk. On a GPU it does in iterations, where the driver spins
 * while it waits for a launch (the default, cudaDeviceScheduleAuto); in other stages the profiler may wait otherwise. */
static bool must_use_cpu(bool computes_on_cpu, const char *stage) {
  return computes_on_cpu ? strcmp(stage, "open") != 0 : is_iterating(stage);
}

int64_t rl_heartbeat_limit_ms(bool computes_on_cpu, const char *stage, int quiet_beats) {
  if (quiet_beats >= MAX_QUIET_BEATS && must_use_cpu(computes_on_cpu, stage)) return QUIET_LIMIT_MS;
  return is_iterating(stage) ? 300000 : 900000;
}

static int beat(rl_error *err) {
  watch_cpu_time();
  rl_heartbeat message = {.idle_ms = (rl_monotonic_ns() - atomic_load(&heart.check_point_ns)) / 1000000,
                          .limit_ms = rl_heartbeat_limit_ms(heart.computes_on_cpu, heart.stage, heart.quiet_beats)};
  snprintf(message.stage, sizeof message.stage, "%s", heart.stage);
  return rl_message_write(heart.descriptor, RL_FRAME_HEARTBEAT, rl_heartbeat_fields, &message, err);
}

static void *run_heartbeat_thread(void *unused) {
  (void)unused;
  rl_error err;
  pthread_mutex_lock(&heart.frames_lock);
  for (;;) {
    while (!heart.busy) pthread_cond_wait(&heart.busy_changed, &heart.frames_lock);
    const struct timespec until = rl_condition_deadline(INTERVAL_S * INT64_C(1000000000));
    int waited = pthread_cond_timedwait(&heart.busy_changed, &heart.frames_lock, &until);
    if (waited == ETIMEDOUT && heart.busy && beat(&err) < 0) heart.failed(&err);
  }
  return NULL;
}

int rl_heartbeat_start(int descriptor, bool computes_on_cpu, void (*failed)(const rl_error *err), rl_error *err) {
  pthread_t thread;
  heart.descriptor = descriptor;
  heart.computes_on_cpu = computes_on_cpu;
  heart.failed = failed;
  rl_condition_init(&heart.busy_changed);
  int code = pthread_create(&thread, NULL, run_heartbeat_thread, NULL);
  if (code != 0) return rl_fail(err, RL_ERRNO, code, "can't start the heartbeat thread: %s", strerror(code));
  pthread_detach(thread);
  return 0;
}

void rl_heartbeat_check_point(void) { atomic_store_explicit(&heart.check_point_ns, rl_monotonic_ns(), memory_order_relaxed); }

void rl_heartbeat_lock_frames(void) { pthread_mutex_lock(&heart.frames_lock); }

void rl_heartbeat_unlock_frames(void) {
  rl_heartbeat_check_point();
  pthread_mutex_unlock(&heart.frames_lock);
}

void rl_heartbeat_enter_stage(const char *stage) {
  rl_heartbeat_lock_frames();
  snprintf(heart.stage, sizeof heart.stage, "%s", stage);
  rl_heartbeat_unlock_frames();
}

void rl_heartbeat_begin_request(void) {
  rl_heartbeat_lock_frames();
  heart.busy = true;
  heart.quiet_beats = 0;
  pthread_cond_signal(&heart.busy_changed);
  rl_heartbeat_unlock_frames();
}

void rl_heartbeat_end_request(void) {
  heart.busy = false;
  pthread_cond_signal(&heart.busy_changed);
}
