/* Caches replies (body_cache.h) until the data from which they were made changes (rl_store_revision). Each reply has an ETag. A
 * request with a current cached reply is answered without a query: with 304 if the client already has the body, else with 200. A
 * body of more than 1 KiB is sent with gzip if the client accepts it. For each request, dispatch.c calls rl_cached_reply_find and
 * then rl_cached_reply_begin. If neither finds a reply, the handler makes one with rl_cached_reply_make. */
#ifndef RL_API_CACHED_REPLY_H
#define RL_API_CACHED_REPLY_H

#include "api/http_request.h"

enum { RL_MAX_CACHED_BODY_BYTES = 512 << 10 };

/* Called by MHD's thread. Returns true if it has set the response from the cache. Otherwise returns false, and sets
 * request->cache_key if the reply may be cached. */
bool rl_cached_reply_find(rl_http_request *request);
/* Called by the pool's thread before the handler. Returns true if it has set the response from the cache, for example because
 * another thread has cached it meanwhile. Otherwise returns false, and sets request->revision: the handler's later queries then
 * see this revision of the data or a newer one. */
bool rl_cached_reply_begin(rl_http_request *request);
/* Changes the cache key: replaces the value of the query parameter `parameter` by shared_value, or adds the parameter if the
 * request does not have it. Then looks up the new key. Returns true if it has set the response from the cache; false if the cache
 * has no reply with this key, or the reply may not be cached. A handler calls this function in two cases. First, its reply is the
 * same for several values of the parameter, which then share one cached reply. Second, its reply depends on a value that is not
 * in the request; the handler then chooses a name for this value. */
bool rl_cached_reply_share(rl_http_request *request, const char *parameter, const char *shared_value);
/* Sets the response, 200 with this text or 304, and caches it. Takes ownership of the malloc'ed text. If text is NULL, fails
 * because memory is exhausted. */
int rl_cached_reply_make(rl_http_request *request, char *text, const char *content_type, rl_error *err);

#endif
