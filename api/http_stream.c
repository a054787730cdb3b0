/* Implements http_stream.h. Copies the written bytes into MHD's buffer. When all of them are sent, calls the callback, which
 * writes more. */
#include "api/http_stream.h"

#include <string.h>

#include "api/reply.h"
#include "api/server_internal.h"
#include "base/clock.h"

int rl_http_stream_write(rl_http_stream *stream, const char *bytes, size_t length, rl_error *err) {
  if (stream->used + length + 1 > stream->capacity) {
    size_t capacity = (stream->used + length + 1) * 2;
    char *grown = realloc(stream->bytes, capacity);
    if (grown == NULL) return rl_fail(err, RL_ERRNO, 0, "out of memory for a response");
    stream->bytes = grown;
    stream->capacity = capacity;
  }
  memcpy(stream->bytes + stream->used, bytes, length);
  stream->used += length;
  stream->bytes[stream->used] = '\0';
  return 0;
}

int rl_http_stream_write_text(rl_http_stream *stream, const char *text, rl_error *err) {
  return rl_http_stream_write(stream, text, strlen(text), err);
}

static ssize_t copy_to_buffer(rl_http_stream *stream, char *buffer, size_t capacity) {
  if (stream->sent == stream->used) {
    stream->sent = stream->used = 0;
    ssize_t result = stream->read_callback(stream);
    if (result <= 0)
      return result; /* after 0, a pool's thread may already write to the stream, so this thread must not access it */
  }
  size_t left = stream->used - stream->sent, count = left < capacity ? left : capacity;
  if (count > 0) memcpy(buffer, stream->bytes + stream->sent, count);
  stream->sent += count;
  return (ssize_t)count;
}

static ssize_t read_stream(void *context, uint64_t position, char *buffer, size_t capacity) {
  rl_http_stream *stream = context;
  (void)position;
  rl_connection_begin_service(stream->connections, stream->tracked_connection, rl_monotonic_ns());
  ssize_t count = copy_to_buffer(stream, buffer, capacity);
  rl_connection_end_service(stream->connections, stream->tracked_connection);
  return count;
}

void rl_http_stream_free(rl_http_stream *stream) {
  free(stream->bytes);
  stream->free_owner(stream);
}

static void free_context(void *context) { rl_http_stream_free(context); }

struct MHD_Response *rl_http_stream_response(rl_http_stream *stream, rl_http_request *request, size_t block_bytes,
                                             const char *content_type) {
  stream->connections = request->server->connections;
  stream->tracked_connection = request->tracked_connection;
  struct MHD_Response *response =
      MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, block_bytes, read_stream, stream, free_context);
  if (response == NULL) {
    rl_http_stream_free(stream);
    return NULL;
  }
  rl_response_add_header(response, "Content-Type", content_type);
  /* MHD 0.9.75 wrongly sends the last chunk, "0\r\n\r\n", after the headers of a reply to HEAD. */
  if (strcmp(request->method, "HEAD") == 0) rl_response_add_header(response, "Connection", "close");
  return response;
}
