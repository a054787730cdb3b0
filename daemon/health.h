/* The check before each notification to systemd's watchdog: do the daemon's handlers and its store answer, and do the threads
 * that serve clients finish their requests? It sends GET /healthz over a connection of its own, because clients may have taken
 * all of theirs, and reads from the store. The clients' threads are judged by how long each has been in one request; a thread
 * that waits for a client, or for a job's events, is in none. */
#ifndef RL_HEALTH_H
#define RL_HEALTH_H

#include "api/server.h"

/* Takes a few milliseconds, at most about 10 s. -1 when something does not answer, or when every clients' thread has been in one
 * request for request_limit_ns. */
int rl_health_check(rl_server *server, rl_store *store, int64_t request_limit_ns, rl_error *err);

#endif
