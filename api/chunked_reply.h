/* Sends a reply whose bytes a callback produces in chunks, so that a long reply is never in memory as a whole. A reply of up to
 * 64 KiB, or 512 KiB if it is cached (cached_reply.h), is produced completely before it is sent with a Content-Length. A longer
 * reply is streamed: its source, usually a database cursor, stays open until the client has read the reply. At most 16 replies
 * are streamed at a time, so that slow clients can't occupy all database connections of the store; further ones are refused with
 * 503. While streamed replies keep a large write-ahead log from being reset (server.c), those that began longest ago are ended,
 * and further ones are refused too. The pool that runs the handler reads the first chunks from the source; RL_POOL_HEAVY reads
 * the later ones. */
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
  void (*close)(void *context); /* called once, even if rl_reply_chunks fails */
  void *context;
  bool renews_deadline; /* request_deadline_s limits the time for each 64 KiB, not for the whole reply */
  bool is_file;         /* the source reads a file, not a snapshot of the database */
} rl_chunk_source;

/* Replies with the source's bytes and takes ownership of the source. Fails with RL_LIMIT_BUSY if 16 replies are being
 * streamed, or if the write-ahead log is too large. */
int rl_reply_chunks(rl_http_request *request, const rl_chunk_source *source, const char *content_type, rl_error *err);

#endif
