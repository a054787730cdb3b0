/* Follows a job until it ends: a progress line on a terminal, otherwise a line for each change. */
#ifndef RL_CLIENT_FOLLOW_H
#define RL_CLIENT_FOLLOW_H

#include "api/client/cli.h"

/* Prints the job's result (with --json, one document with job, results and comparison) and returns its rl_exit;
 * RL_EXIT_INTERRUPTED after Ctrl-C; −1 with err when the daemon refuses or does not respond for 30 s. Does not wait for a daemon
 * that has never responded (daemon_was_reached: it responded to an earlier request). */
int rl_follow_job(rl_cli *cli, long long id, bool daemon_was_reached, rl_error *err);

#endif
