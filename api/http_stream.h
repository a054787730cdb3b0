/* A response that is produced while the client reads it. MHD's thread calls read_callback, which writes bytes to the stream, and
 * calls it again when all of these bytes have been sent. An rl_http_stream is the first member of the struct that owns it. */
#ifndef RL_API_HTTP_STREAM_H
#define RL_API_HTTP_STREAM_H

#include <microhttpd.h>

#include "api/http_request.h"

typedef struct rl_http_stream rl_http_stream;

struct rl_http_stream {
  /* Does one of the following: writes with rl_http_stream_write or rl_http_stream_write_text and returns 1; suspends the
   * connection and returns 0, after which another thread may write; or ends the response and returns MHD_CONTENT_READER_END_*. */
  ssize_t (*read_callback)(rl_http_stream *stream);
  void (*free_owner)(rl_http_stream *stream); /* called once, at the end of the response */
  rl_connections *connections;
  rl_connection *tracked_connection;
  char *bytes;     /* what read_callback has written; a NUL follows the first `used` bytes */
  size_t used;     /* bytes written since `bytes` was last sent completely */
  size_t sent;     /* how many of the `used` bytes were copied to MHD's buffer */
  size_t capacity; /* allocated bytes */
};

int rl_http_stream_write(rl_http_stream *stream, const char *bytes, size_t length, rl_error *err);
int rl_http_stream_write_text(rl_http_stream *stream, const char *text, rl_error *err);
/* Makes a response that reads from the stream, whose callbacks must be set, and takes ownership of the stream. block_bytes:
 * size of MHD's send buffer. Returns NULL if memory is exhausted. */
struct MHD_Response *rl_http_stream_response(rl_http_stream *stream, rl_http_request *request, size_t block_bytes,
                                             const char *content_type);
/* Frees a stream that has no response. */
void rl_http_stream_free(rl_http_stream *stream);

#endif
