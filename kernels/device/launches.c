/* Implements launches.h for CPU and CUDA: calls rl_launch.enqueue inside NVTX ranges, and measures the host times of launches. */
#include "device/launches.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "device/ranges.h"

int rl_launch_enqueue(const rl_launch *launch, rl_stream stream, rl_error *err) {
  return launch->enqueue(launch->arg, stream, err) < 0 ? rl_wrap(err, "%s", launch->name) : 0;
}

int rl_sequence_restore(const rl_sequence *sequence, rl_stream stream, rl_error *err) {
  return sequence->restore_launch ? rl_launch_enqueue(sequence->restore_launch, stream, err) : 0;
}

int rl_sequence_check(const rl_sequence *sequence, rl_stream stream, rl_error *err) {
  return sequence->check_launch ? rl_launch_enqueue(sequence->check_launch, stream, err) : 0;
}

void rl_sequence_pause(const rl_sequence *sequence) {
  enum { NS_PER_MS = 1000000 };
  struct timespec remaining = {.tv_nsec = (long)sequence->pause_ms * NS_PER_MS};
  while (nanosleep(&remaining, &remaining) < 0 && errno == EINTR) continue;
}

static int run_launch(const rl_launch *launch, rl_stream stream, const rl_observer *observer, rl_error *err) {
  if (rl_observer_check_cancellation(observer, err) < 0) return -1;
  rl_span span = {.launch = launch, .start_ns = rl_monotonic_ns()};
  rl_nvtx_range_push(launch->name);
  int rc = rl_launch_enqueue(launch, stream, err);
  rl_nvtx_range_pop();
  span.end_ns = rl_monotonic_ns();
  if (rc == 0 && observer && observer->span) observer->span(observer->context, &span);
  return rc;
}

int rl_sequence_run_once(const rl_sequence *sequence, rl_stream stream, const rl_observer *observer, rl_error *err) {
  const char *phase = NULL;
  int rc = rl_sequence_restore(sequence, stream, err);
  for (size_t i = 0; i < sequence->launch_count && rc == 0; i++) {
    const rl_launch *launch = &sequence->launches[i];
    if (!phase || strcmp(phase, launch->nvtx_range) != 0) {
      if (phase) rl_nvtx_range_pop();
      rl_nvtx_range_push(phase = launch->nvtx_range);
    }
    rc = run_launch(launch, stream, observer, err);
  }
  if (phase) rl_nvtx_range_pop();
  return rc;
}
