/* The check before each notification to systemd's watchdog: the daemon's handlers and its store must answer, and the threads that
 * serve clients must finish their requests. It sends GET /healthz over a separate connection, because clients may occupy all of
 * the others, and reads from the store. Threads are judged by how long each has been in one request; a thread that waits for a
 * client or for a job's events is in none. */
#ifndef RL_HEALTH_H
#define RL_HEALTH_H

#include "api/server.h"

/* Makes the check, which takes a few milliseconds, at most about 10 s. Returns -1 if a handler or the store does not answer, or
 * if all threads that serve clients have been in one request each for request_limit_ns. */
int rl_health_check(rl_server *server, rl_store *store, int64_t request_limit_ns, rl_error *err);

#endif
