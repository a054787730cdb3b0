#include "api/stream.h"

#include <string.h>

#include "base/clock.h"

int rl_stream_say(rl_stream *stream, const char *text, rl_error *err) {
  size_t length = strlen(text);
  if (stream->used + length + 1 > stream->capacity) {
    size_t capacity = (stream->used + length + 1) * 2;
    char *grown = realloc(stream->text, capacity);
    if (grown == NULL) return rl_fail(err, RL_SYS, 0, "out of memory for an answer");
    stream->text = grown;
    stream->capacity = capacity;
  }
  memcpy(stream->text + stream->used, text, length + 1);
  stream->used += length;
  return 0;
}

static ssize_t send_some(rl_stream *stream, char *buffer, size_t room) {
  if (stream->sent == stream->used) {
    stream->sent = stream->used = 0;
    ssize_t end = stream->more(stream);
    if (end != 0) return end;
  }
  size_t part = stream->used - stream->sent < room ? stream->used - stream->sent : room;
  if (part > 0) memcpy(buffer, stream->text + stream->sent, part);
  stream->sent += part;
  return (ssize_t)part;
}

static ssize_t read_stream(void *context, uint64_t position, char *buffer, size_t room) {
  rl_stream *stream = context;
  (void)position;
  rl_connection_enter(stream->connections, stream->record, rl_monotonic_ns());
  ssize_t got = send_some(stream, buffer, room);
  rl_connection_leave(stream->connections, stream->record);
  return got;
}

void rl_stream_free(rl_stream *stream) {
  free(stream->text);
  stream->close(stream);
}

static void free_context(void *context) { rl_stream_free(context); }

struct MHD_Response *rl_stream_response(rl_stream *stream, rl_call *call, size_t block, const char *type) {
  stream->connections = call->server->connections;
  stream->record = call->record;
  struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, block, read_stream, stream, free_context);
  if (response == NULL) rl_stream_free(stream);
  else rl_header(response, "Content-Type", type);
  return response;
}
