/* Ctrl-C while following a job: it is noted, so that the command can say that the job goes on. */
#ifndef RL_CLIENT_INTERRUPT_H
#define RL_CLIENT_INTERRUPT_H

#include <stdbool.h>

void rl_interrupt_catch(void); /* from now on, the first SIGINT is noted; the second ends the program */
bool rl_interrupted(void);

#endif
