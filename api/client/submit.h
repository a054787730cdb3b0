/* Posts requests that add a job or a suite run. */
#ifndef RL_CLIENT_SUBMIT_H
#define RL_CLIENT_SUBMIT_H

#include "api/client/http.h"

/* Posts `body` to `path` and receives the response's body. If the connection breaks before the response, the daemon may or may
 * not have executed the request. So the function repeats the request with the same Idempotency-Key for at most 30 s; the daemon
 * executes it only once. */
int rl_submit_job(const rl_cli *cli, const char *path, const char *body, rl_body *response, rl_error *err);

#endif
