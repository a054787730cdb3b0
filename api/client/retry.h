/* Repeats requests while the daemon restarts. One thread. */
#ifndef RL_CLIENT_RETRY_H
#define RL_CLIENT_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct rl_retry {       /* initially zero */
  bool daemon_was_reached;      /* a request was answered, so an unreachable daemon is assumed to restart */
  int64_t unreachable_since_ns; /* 0: the last request was answered */
} rl_retry;

/* Records that a request was answered. */
void rl_retry_record_answer(rl_retry *retry);
/* Returns whether to repeat a failed request; if so, waits 0.5 s first. True if the daemon has answered before and, for less than
 * 30 s, has not responded or has answered with 503. */
bool rl_retry_wait(rl_retry *retry, const rl_error *failure);
/* Sleeps for 0.5 s, or until a signal arrives. */
void rl_retry_pause(void);

#endif
