/* A reply whose bytes a callback produces in chunks, so that it is never in memory as a whole. A reply that fits the first 64
 * KiB, or 512 KiB if it is cached (cached_reply.h), is sent with its length after its source is closed. A longer one is streamed,
 * and its source stays open until the client has read it. At most 16 replies stream at once; further ones are refused with 503,
 * so that slow clients don't hold all of the store's database connections. Chunks are read in the pool that runs the handler, and
 * later in RL_POOL_HEAVY. */
#ifndef RL_API_CHUNKED_REPLY_H
#define RL_API_CHUNKED_REPLY_H

#include <string.h>

#include "api/http_request.h"

typedef struct rl_chunk {
  const char *bytes;
  size_t length;
} rl_chunk;

static inline rl_chunk rl_chunk_of_text(const char *text) { return (rl_chunk){text, strlen(text)}; }

typedef struct rl_chunk_source {
  /* Returns 1 and sets *chunk, whose bytes are valid until the next call, or 0 at the end. */
  int (*next)(void *context, rl_chunk *chunk, rl_error *err);
  void (*close)(void *context); /* called once, also when rl_reply_chunks fails */
  void *context;
  bool renews_deadline; /* request_deadline_s limits the time for each 64 KiB, not for the whole reply */
} rl_chunk_source;

int rl_reply_chunks(rl_http_request *request, const rl_chunk_source *source, const char *content_type, rl_error *err);

#endif
