/* Decides whether a failed request is repeated, so that a command continues when the daemon restarts. Not thread-safe. */
#ifndef RL_CLIENT_RETRY_H
#define RL_CLIENT_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct rl_retry { /* initially zero */
  /* the daemon has answered a request, so a daemon that is unreachable now is assumed to be restarting */
  bool daemon_was_reached;
  int64_t unreachable_since_ns; /* 0: the last request was answered */
} rl_retry;

/* Records that a request was answered. */
void rl_retry_record_answer(rl_retry *retry);
/* Returns whether to repeat a failed request, and waits 0.5 s before it returns true. Returns true if the daemon has answered a
 * request before, the failure is that it does not respond or responds with 503, and the failures began less than 30 s ago. */
bool rl_retry_wait(rl_retry *retry, const rl_error *failure);
/* Sleeps for 0.5 s, or until a signal arrives. */
void rl_retry_pause(void);

#endif
