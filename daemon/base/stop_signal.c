/* Implements stop_signal.h. */
#include "base/stop_signal.h"

#include <signal.h>

bool rl_stop_signal_is_pending(void) {
  sigset_t pending;
  return sigpending(&pending) == 0 && (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}
