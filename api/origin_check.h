/* Checks from which web site a request comes, by its headers. dispatch.c calls this module for each request. A Host header
 * with a foreign name indicates DNS rebinding; a foreign Origin header means that a page of another site sent the request.
 * Stateless, thread-safe. */
#ifndef RL_API_ORIGIN_CHECK_H
#define RL_API_ORIGIN_CHECK_H

#include <stdbool.h>

/* Returns true when the Host header names one of these: loopback, the configured address, the server's address on this connection
 * (local_address; NULL: unknown), or a name in the comma-separated list allowed_hosts. Ignores the port, because tunnels change
 * it. */
bool rl_host_is_allowed(const char *host, const char *address, const char *local_address, const char *allowed_hosts);
/* Returns true when origin is NULL (no browser, or a same-origin GET) or names the same host and port as the Host header. */
bool rl_origin_is_allowed(const char *origin, const char *host);
/* Returns false when Sec-Fetch-Site is cross-site; site is NULL when the header is absent. */
bool rl_fetch_site_is_allowed(const char *site);

#endif
