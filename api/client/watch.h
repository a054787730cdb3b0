/* Prints something again and again until it can't change any more. */
#ifndef RL_CLIENT_WATCH_H
#define RL_CLIENT_WATCH_H

#include <stdbool.h>
#include <stdio.h>

#include "api/client/cli.h"

/* Prints once. Sets *has_ended if it can't change any more. Returns an rl_exit, or −1 with err. */
typedef int (*rl_print_once)(rl_cli *cli, FILE *out, void *context, bool *has_ended, rl_error *err);

/* Removes a flag from the command's arguments. Returns whether it was there. */
bool rl_take_flag(rl_cli *cli, const char *flag);
/* Returns whether a job in this state has ended: "completed", "failed" or "cancelled". */
bool rl_job_state_has_ended(const char *state);
/* Prints to standard output each time the text has changed, every second, until it has ended; a terminal is cleared before.
 * Without `repeats` prints once. */
int rl_print_repeatedly(rl_cli *cli, bool repeats, rl_print_once print, void *context, rl_error *err);

#endif
