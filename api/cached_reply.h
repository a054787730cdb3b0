/* Caches replies (body_cache.h) until the data that they were made from changes (rl_store_revision). Each reply has an ETag. A
 * request with a valid cached reply is answered without a query: with 304 if the client has the body already, with gzip if the
 * client accepts it and the body is larger than 1 KB. */
#ifndef RL_API_CACHED_REPLY_H
#define RL_API_CACHED_REPLY_H

#include "api/http_request.h"

enum { RL_MAX_CACHED_BODY_BYTES = 512 << 10 };

/* Called before the handler, by any thread. Returns true after it has set the response. Else, if the reply may be cached,
 * sets request->cache_key. */
bool rl_cached_reply_find(rl_http_request *request);
/* Called by the pool's thread before the handler. Returns true after it has set the response. Else reads the revision before
 * the handler's queries, which see this revision or a later one. */
bool rl_cached_reply_begin(rl_http_request *request);
/* For a handler whose reply is the same for several values of a query parameter, or depends on a value that is not in the request
 * (then `parameter` is a name of the handler): caches the reply under `shared` instead of the request's value. Returns true after
 * it has set the response from the cache; false if there is none, or the reply is not cached.
 */
bool rl_cached_reply_share(rl_http_request *request, const char *parameter, const char *shared);
/* Sets the response 200 or 304 with this text, which it takes (NULL: memory is exhausted), and caches it. */
int rl_cached_reply_make(rl_http_request *request, char *text, const char *content_type, rl_error *err);

#endif
