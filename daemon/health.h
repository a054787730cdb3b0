/* The health check that must pass before each notification to systemd's watchdog. It sends GET /healthz over a connection that is
 * reserved for it, because clients may occupy all other connections, reads from the store, and checks how long each thread that
 * serves clients has worked on its current request. Waiting for a client or for a job's events does not count as work on a
 * request. */
#ifndef RL_HEALTH_H
#define RL_HEALTH_H

#include "api/server.h"

/* Runs the check, which takes a few milliseconds and at most about 10 s. Returns -1 if a handler or the store does not answer, or
 * if each of the threads that serve clients has worked on one request for request_limit_ns. */
int rl_health_check(rl_server *server, rl_store *store, int64_t request_limit_ns, rl_error *err);

#endif
