/* An answer made a piece at a time. What fits the first buffer is sent whole, with its length, and its source is closed before
 * the answer starts; more is streamed, a buffer at a time, and the source goes with the response. */
#include <string.h>

#include "api/internal.h"
#include "base/clock.h"
#include "base/log.h"

enum { FILL = 64 << 10, STREAMING_MOST = 16 };

typedef struct stream {
  rl_pieces pieces;
  bool ended;        /* all has been read, and the pieces are closed */
  rl_server *server; /* where a streamed answer is counted; NULL before it is one */
  rl_connection *record;
  char *text;
  size_t used, sent, capacity;
} stream;

static int append(stream *all, const char *text, rl_error *err) {
  size_t length = strlen(text);
  if (all->used + length + 1 > all->capacity) {
    size_t capacity = (all->used + length + 1) * 2;
    char *grown = realloc(all->text, capacity);
    if (grown == NULL) return rl_fail(err, RL_SYS, 0, "out of memory for an answer");
    all->text = grown;
    all->capacity = capacity;
  }
  memcpy(all->text + all->used, text, length + 1);
  all->used += length;
  return 0;
}

static void end(stream *all) {
  if (all->ended) return;
  all->ended = true;
  all->pieces.close(all->pieces.context);
  if (all->server != NULL) atomic_fetch_sub(&all->server->streaming, 1);
}

/* Read pieces until the buffer has FILL bytes or all has been read. */
static int fill(stream *all, rl_error *err) {
  while (!all->ended && all->used < FILL) {
    const char *text;
    int rc = all->pieces.next(all->pieces.context, &text, err);
    if (rc < 0 || (rc > 0 && append(all, text, err) < 0)) return -1;
    if (rc == 0) end(all);
  }
  return 0;
}

static ssize_t read_pieces(stream *all, char *buffer, size_t room) {
  if (all->sent == all->used) {
    rl_error err;
    all->sent = all->used = 0;
    if (all->ended) return MHD_CONTENT_READER_END_OF_STREAM;
    if (fill(all, &err) < 0) {
      rl_log(RL_LOG_ERROR, "answer: %s", err.message);
      return MHD_CONTENT_READER_END_WITH_ERROR;
    }
  }
  size_t part = all->used - all->sent < room ? all->used - all->sent : room;
  memcpy(buffer, all->text + all->sent, part);
  all->sent += part;
  return (ssize_t)part;
}

static ssize_t read_stream(void *context, uint64_t position, char *buffer, size_t room) {
  stream *all = context;
  rl_connections *connections = all->server->connections;
  (void)position;
  rl_connection_enter(connections, all->record, rl_monotonic_ns());
  ssize_t got = read_pieces(all, buffer, room);
  rl_connection_leave(connections, all->record);
  return got;
}

static void stream_free(void *context) {
  stream *all = context;
  end(all);
  free(all->text);
  free(all);
}

int rl_reply_pieces(rl_call *call, const rl_pieces *pieces, const char *type, rl_error *err) {
  stream *all = calloc(1, sizeof *all);
  if (all == NULL) {
    pieces->close(pieces->context);
    return rl_fail(err, RL_SYS, 0, "out of memory for an answer");
  }
  all->pieces = *pieces;
  if (append(all, "", err) < 0 || fill(all, err) < 0) {
    stream_free(all);
    return -1;
  }
  if (all->ended) {
    char *text = rl_steal(&all->text);
    stream_free(all);
    return rl_reply_text(call, 200, text, type, err);
  }
  all->server = call->server;
  all->record = call->record;
  if (atomic_fetch_add(&call->server->streaming, 1) >= STREAMING_MOST) {
    stream_free(all);
    return rl_fail(err, RL_HTTP, 503, "As many large answers as the daemon takes are being read; ask again later.");
  }
  struct MHD_Response *response =
      MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16 << 10, read_stream, all, stream_free);
  if (response == NULL) stream_free(all);
  else rl_header(response, "Content-Type", type);
  return rl_reply(call, 200, response, err);
}
