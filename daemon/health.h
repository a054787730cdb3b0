/* Do the daemon's handlers and its store still answer, and do the threads that serve clients come back from what they are at?
 * What feeds systemd's watchdog: a request to its own /healthz, and a question to the store. The request needs no place among the
 * clients' connections, of which none may be free; so the clients' threads are judged by how long they have been at requests. A
 * thread is at none while it waits for a client, be that one idle or a listener to events. */
#ifndef RL_HEALTH_H
#define RL_HEALTH_H

#include "api/server.h"

/* Takes a few milliseconds, at most about 10 s. patience_ns: how long all of the clients' threads may be at one request each. */
int rl_health_check(rl_server *server, rl_store *store, int64_t patience_ns, rl_error *err);

#endif
