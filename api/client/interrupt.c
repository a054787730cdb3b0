#include "api/client/interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t noted;

static void note(int signal_number) {
  (void)signal_number;
  noted = 1;
}

void rl_interrupt_catch(void) {
  struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESETHAND};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
}

bool rl_interrupted(void) { return noted != 0; }
