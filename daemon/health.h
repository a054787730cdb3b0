/* Do the daemon's handlers and its store still answer? What feeds systemd's watchdog: a request to its own /healthz, and a
 * question to the store. The request needs no place among the clients' connections, of which none may be free, so it says nothing
 * of threads that clients keep busy. */
#ifndef RL_HEALTH_H
#define RL_HEALTH_H

#include "api/server.h"

/* Takes a few milliseconds, at most about 10 s. */
int rl_health_check(rl_server *server, rl_store *store, rl_error *err);

#endif
