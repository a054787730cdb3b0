/* Follows a suite run until it ends. If standard error is a terminal, shows one progress line; otherwise prints a line for each
 * change of the progress. */
#ifndef RL_CLIENT_SUITE_FOLLOW_H
#define RL_CLIENT_SUITE_FOLLOW_H

#include <cjson/cJSON.h>

#include "api/client/cli.h"

/* Returns RL_EXIT_COMPLETED and sets *run to the document of the ended run, which the caller deletes. Returns RL_EXIT_INTERRUPTED
 * without a document after Ctrl-C. Returns -1 with err if the daemon refuses the request or has been unreachable for 30 s.
 * daemon_was_reached: the daemon has responded to an earlier request. Before a first response, an unreachable daemon is not
 * waited for: the function fails at once. */
int rl_suite_follow(const rl_cli *cli, long long id, bool daemon_was_reached, cJSON **run, rl_error *err);
/* Returns the exit code for the document of an ended suite run. */
rl_exit rl_suite_exit_code(const cJSON *run);

#endif
