/* Who may talk to the daemon, decided from headers alone: pure functions, no state. A foreign Host means DNS rebinding, a
 * foreign Origin a page of somebody else's. */
#ifndef RL_API_GUARD_H
#define RL_API_GUARD_H

#include <stdbool.h>

/* Split "name[:port]", "1.2.3.4[:port]" or "[::1][:port]" into the name alone, lower-case, without brackets.
 * False when it is not such a thing. */
bool rl_guard_host_name(const char *host, char *name, int size);
/* A Host header is ours when it names loopback, the configured address, the address that the connection reached us on
 * (`local`, NULL when not known) or one of the comma-separated names in `allowed`. The port does not matter: tunnels change
 * it. */
bool rl_guard_host(const char *host, const char *address, const char *local, const char *allowed);
/* origin is NULL (not a browser, or a same-origin GET), or must name the same host and port as the Host header. */
bool rl_guard_origin(const char *origin, const char *host);
/* Sec-Fetch-Site: anything but cross-site; NULL when absent. */
bool rl_guard_fetch_site(const char *site);

#endif
