/* Caches replies (body_cache.h) until the data from which they were made changes (rl_store_revision). Each reply has an ETag. If
 * a cached reply is current, the request is answered without a query: with 304 if the client has the body already, else with 200.
 * The body is sent with gzip if the client accepts it and the body is larger than 1 KB. */
#ifndef RL_API_CACHED_REPLY_H
#define RL_API_CACHED_REPLY_H

#include "api/http_request.h"

enum { RL_MAX_CACHED_BODY_BYTES = 512 << 10 };

/* Called before the handler, by any thread. Sets the response from the cache and returns true, or returns false. If it returns
 * false, sets request->cache_key if the reply may be cached. */
bool rl_cached_reply_find(rl_http_request *request);
/* Called by the pool's thread before the handler. Sets the response from the cache and returns true, or returns false. If it
 * returns false, sets request->revision before the handler's queries, so that they see this revision or a later one. */
bool rl_cached_reply_begin(rl_http_request *request);
/* Changes the key: `parameter` gets the value `shared`. A handler calls this if its reply is the same for several values of a
 * query parameter, or if the reply depends on a value that is not in the request; then `parameter` can be any name. Sets the
 * response from the cache and returns true. Returns false if the cache has no reply with this key, or the reply is not cached. */
bool rl_cached_reply_share(rl_http_request *request, const char *parameter, const char *shared);
/* Sets the response 200 or 304 with this text and caches it. Takes ownership of the text; NULL means that its allocation failed.
 * */
int rl_cached_reply_make(rl_http_request *request, char *text, const char *content_type, rl_error *err);

#endif
