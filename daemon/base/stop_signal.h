/* Tells long operations of the start whether the daemon has been asked to stop. */
#ifndef RL_BASE_STOP_SIGNAL_H
#define RL_BASE_STOP_SIGNAL_H

#include <stdbool.h>

/* Returns whether SIGTERM or SIGINT is pending. Both must be blocked; otherwise they are never pending. */
bool rl_stop_signal_is_pending(void);

#endif
