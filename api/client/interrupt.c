/* Implements interrupt.h. The handler of SIGINT sets a flag. SA_RESETHAND then restores the default action, so that a second
 * Ctrl-C ends the program. */
#include "api/client/interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number) {
  (void)signal_number;
  interrupted = 1;
}

void rl_catch_interrupt(void) {
  struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
}

bool rl_was_interrupted(void) { return interrupted != 0; }

bool rl_clear_interrupt(void) {
  const bool was_set = rl_was_interrupted();
  interrupted = 0;
  return was_set;
}
