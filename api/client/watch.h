/* Prints a text again each time it has changed, for the option --watch, until its subject, such as a job, has ended. */
#ifndef RL_CLIENT_WATCH_H
#define RL_CLIENT_WATCH_H

#include <stdbool.h>
#include <stdio.h>

#include "api/client/cli.h"

/* Prints the text once to `out`. Sets *has_ended to true if the text can't change any more. Returns an rl_exit, or −1 with
 * err. */
typedef int (*rl_print_once)(rl_cli *cli, FILE *out, void *context, bool *has_ended, rl_error *err);

/* Removes a flag from the command's arguments. Returns whether the arguments contained it. */
bool rl_remove_flag(rl_cli *cli, const char *flag);
/* Returns whether a job in this state has ended: "completed", "failed" or "cancelled". */
bool rl_job_state_has_ended(const char *state);
/* Calls `print` every second until it sets *has_ended, and writes the text to standard output if it has changed; a terminal is
 * cleared before each text. If `repeats` is false, calls `print` once. */
int rl_print_repeatedly(rl_cli *cli, bool repeats, rl_print_once print, void *context, rl_error *err);

#endif
