#include "api/http_stream.h"

#include <string.h>

#include "api/reply.h"
#include "api/server_internal.h"
#include "base/clock.h"

int rl_http_stream_write(rl_http_stream *stream, const char *text, rl_error *err) {
  size_t length = strlen(text);
  if (stream->used + length + 1 > stream->capacity) {
    size_t capacity = (stream->used + length + 1) * 2;
    char *grown = realloc(stream->text, capacity);
    if (grown == NULL) return rl_fail(err, RL_SYS, 0, "out of memory for a response");
    stream->text = grown;
    stream->capacity = capacity;
  }
  memcpy(stream->text + stream->used, text, length + 1);
  stream->used += length;
  return 0;
}

static ssize_t copy_next(rl_http_stream *stream, char *buffer, size_t capacity) {
  if (stream->sent == stream->used) {
    stream->sent = stream->used = 0;
    ssize_t end = stream->read_callback(stream);
    if (end != 0) return end;
  }
  size_t left = stream->used - stream->sent, count = left < capacity ? left : capacity;
  if (count > 0) memcpy(buffer, stream->text + stream->sent, count);
  stream->sent += count;
  return (ssize_t)count;
}

static ssize_t read_stream(void *context, uint64_t position, char *buffer, size_t capacity) {
  rl_http_stream *stream = context;
  (void)position;
  rl_connection_enter(stream->connections, stream->connection_record, rl_monotonic_ns());
  ssize_t count = copy_next(stream, buffer, capacity);
  rl_connection_leave(stream->connections, stream->connection_record);
  return count;
}

void rl_http_stream_free(rl_http_stream *stream) {
  free(stream->text);
  stream->close(stream);
}

static void free_context(void *context) { rl_http_stream_free(context); }

struct MHD_Response *rl_http_stream_response(rl_http_stream *stream, rl_call *call, size_t block_bytes, const char *type) {
  stream->connections = call->server->connections;
  stream->connection_record = call->connection_record;
  struct MHD_Response *response =
      MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, block_bytes, read_stream, stream, free_context);
  if (response == NULL) rl_http_stream_free(stream);
  else rl_response_add_header(response, "Content-Type", type);
  return response;
}
