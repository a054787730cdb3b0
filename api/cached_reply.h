/* Replies that are kept in memory (body_cache.h) until what they were made from changes (rl_store_revision). Each has an ETag. A
 * request that finds a current one is answered without a query: with 304 if the client has the body already, with gzip if the
 * client accepts it and the body is larger than 1 KB. */
#ifndef RL_API_CACHED_REPLY_H
#define RL_API_CACHED_REPLY_H

#include "api/http_request.h"

enum { RL_MAX_CACHED_BODY_BYTES = 512 << 10 };

/* Called before the handler, by any thread. Returns true after it has set the response. Else, if the reply may be kept, sets
 * request->cache_key. */
bool rl_cached_reply_find(rl_http_request *request);
/* Called by the pool's thread before the handler. Returns true after it has set the response. Else reads the revision that the
 * handler's queries will see at least. */
bool rl_cached_reply_begin(rl_http_request *request);
/* For a handler that finds that several values of a query parameter have the same reply: keeps it with `shared` instead of the
 * request's value. Returns true after it has set the response, which an earlier request has made; false also if the reply is not
 * kept. */
bool rl_cached_reply_share(rl_http_request *request, const char *parameter, const char *shared);
/* Sets the response 200 or 304 with this text, which it takes (NULL: memory is exhausted), and keeps it. */
int rl_cached_reply_make(rl_http_request *request, char *text, const char *content_type, rl_error *err);

#endif
