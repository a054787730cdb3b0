/* Following one job until it is over: its events drive a progress line on a terminal, or a line a change elsewhere. */
#ifndef RL_CLIENT_FOLLOW_H
#define RL_CLIENT_FOLLOW_H

#include "api/client/cli.h"

/* Returns the job's rl_exit and prints its result (or, under --json, one document with job, results and comparison);
 * RL_EXIT_INTERRUPTED after Ctrl-C; -1 and err when the daemon stays away for 30 s or refuses. One that
 * has not answered yet (answered: it has before) is not waited for. */
int rl_follow(rl_cli *cli, long long id, bool answered, rl_error *err);

#endif
