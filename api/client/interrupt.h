/* Handles Ctrl-C. The first SIGINT only sets a flag, so that a command that waits for a job can report that the job continues. */
#ifndef RL_CLIENT_INTERRUPT_H
#define RL_CLIENT_INTERRUPT_H

#include <stdbool.h>

/* Installs the handler: the first SIGINT sets the flag, the second ends the program. */
void rl_catch_interrupt(void);
bool rl_was_interrupted(void);
/* Clears the flag, so that it does not stop the HTTP requests and subprocesses of a command's clean-up. Returns whether the flag
 * was set. */
bool rl_clear_interrupt(void);

#endif
