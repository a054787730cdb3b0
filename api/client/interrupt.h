/* Ctrl-C while following a job: sets a flag, so that the command can report that the job continues. */
#ifndef RL_CLIENT_INTERRUPT_H
#define RL_CLIENT_INTERRUPT_H

#include <stdbool.h>

void rl_interrupt_catch(void); /* the first SIGINT from now on sets the flag; the second ends the program */
bool rl_interrupted(void);

#endif
