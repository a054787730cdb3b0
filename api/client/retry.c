/* Implements retry.h. */
#include "api/client/retry.h"

#include <time.h>

#include "base/clock.h"

static const int64_t MAX_UNREACHABLE_NS = 30 * INT64_C(1000000000);
enum { PAUSE_MS = 500 };

void rl_retry_pause(void) { nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL); }

void rl_retry_record_answer(rl_retry *retry) { *retry = (rl_retry){.daemon_was_reached = true}; }

bool rl_retry_wait(rl_retry *retry, const rl_error *failure) {
  const bool unreachable = failure->domain == RL_WIRE || (failure->domain == RL_HTTP && failure->code == 503);
  if (!unreachable || !retry->daemon_was_reached) return false;
  const int64_t now = rl_monotonic_ns();
  if (retry->unreachable_since_ns == 0) retry->unreachable_since_ns = now;
  rl_retry_pause();
  return now - retry->unreachable_since_ns < MAX_UNREACHABLE_NS;
}
