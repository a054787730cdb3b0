/* Follows a job until it ends. If standard error is a terminal, shows one progress line; otherwise prints a line for each epoch
 * and phase. */
#ifndef RL_CLIENT_FOLLOW_H
#define RL_CLIENT_FOLLOW_H

#include "api/client/cli.h"

/* Prints the job's result (with --json, one document with job, results and comparison) and returns the rl_exit of the job's
 * state; returns RL_EXIT_INTERRUPTED after Ctrl-C. Returns −1 with err when the daemon refuses the request or has not responded
 * for 30 s; at once if the daemon has never responded. daemon_was_reached: the daemon has responded to an earlier request. */
int rl_follow_job(rl_cli *cli, long long id, bool daemon_was_reached, rl_error *err);

#endif
