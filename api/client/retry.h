/* Repeats requests while the daemon restarts. One thread. */
#ifndef RL_CLIENT_RETRY_H
#define RL_CLIENT_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct rl_retry {       /* initially zero */
  bool daemon_was_reached;      /* a request was answered: an unreachable daemon is restarting */
  int64_t unreachable_since_ns; /* 0: the last request was answered */
} rl_retry;

/* Notes that a request was answered. */
void rl_retry_reached(rl_retry *retry);
/* Decides after a failed request. Returns true after 0.5 s if it is to be repeated: the daemon was reached before, does not
 * respond or answers 503, and has done so for less than 30 s. */
bool rl_retry_wait(rl_retry *retry, const rl_error *failure);
/* Sleeps for 0.5 s, or until a signal arrives. */
void rl_retry_pause(void);

#endif
