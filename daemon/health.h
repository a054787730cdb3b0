/* Does the daemon still work? What feeds systemd's watchdog: a request to its own /healthz that has to be answered, and a
 * question to the store. */
#ifndef RL_HEALTH_H
#define RL_HEALTH_H

#include "config.h"
#include "store/store.h"

/* Takes a few milliseconds, at most about 10 s. curl_global_init must have been called. */
int rl_health_check(const rl_config *config, int port, rl_store *store, rl_error *err);

#endif
