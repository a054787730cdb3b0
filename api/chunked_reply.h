/* A reply whose text a callback produces in chunks, so that it is never in memory as a whole. A reply that fits the first 64 KiB,
 * or 512 KiB if it is cached (cached_reply.h), is sent with its length after its source is closed. A longer one is streamed,
 * and its source stays open until the client has read it. At most 16 replies stream at once; further ones are refused with 503,
 * so that slow clients don't hold all of the store's database connections. Text is read in the pool that runs the handler, and
 * later in RL_POOL_HEAVY. */
#ifndef RL_API_CHUNKED_REPLY_H
#define RL_API_CHUNKED_REPLY_H

#include "api/http_request.h"

typedef struct rl_chunk_source {
  /* Returns 1 and sets *text, which is valid until the next call, or 0 at the end. */
  int (*next)(void *context, const char **text, rl_error *err);
  void (*close)(void *context); /* called once, also when rl_reply_chunks fails */
  void *context;
} rl_chunk_source;

int rl_reply_chunks(rl_http_request *request, const rl_chunk_source *source, const char *content_type, rl_error *err);

#endif
