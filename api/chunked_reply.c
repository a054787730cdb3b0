#include "api/chunked_reply.h"

#include "api/http_stream.h"
#include "api/reply.h"
#include "api/server_internal.h"
#include "base/log.h"

enum { BUFFER_BYTES = 64 << 10, SEND_BYTES = 16 << 10, MAX_STREAMED_REPLIES = 16 };

typedef struct chunked_reply {
  rl_http_stream stream;
  rl_chunk_source source;
  bool closed;       /* the source was read to its end and closed */
  rl_server *server; /* counts this reply in streamed_replies; NULL: it does not */
} chunked_reply;

static void close_source(chunked_reply *reply) {
  if (reply->closed) return;
  reply->closed = true;
  reply->source.close(reply->source.context);
  if (reply->server != NULL) atomic_fetch_sub(&reply->server->streamed_replies, 1);
}

/* Reads chunks until there are BUFFER_BYTES or the source ends. */
static int fill_buffer(chunked_reply *reply, rl_error *err) {
  while (!reply->closed && reply->stream.used < BUFFER_BYTES) {
    const char *text;
    int found = reply->source.next(reply->source.context, &text, err);
    if (found < 0 || (found > 0 && rl_http_stream_write(&reply->stream, text, err) < 0)) return -1;
    if (found == 0) close_source(reply);
  }
  return 0;
}

static ssize_t read_chunks(rl_http_stream *stream) {
  chunked_reply *reply = (chunked_reply *)stream;
  rl_error err;
  if (fill_buffer(reply, &err) < 0) {
    rl_log(RL_LOG_ERROR, "a reply was cut: %s", err.message);
    return MHD_CONTENT_READER_END_WITH_ERROR;
  }
  return stream->used > 0 ? 0 : MHD_CONTENT_READER_END_OF_STREAM;
}

static void close_reply(rl_http_stream *stream) {
  chunked_reply *reply = (chunked_reply *)stream;
  close_source(reply);
  free(reply);
}

static int send_whole(rl_call *call, chunked_reply *reply, const char *type, rl_error *err) {
  char *text = rl_steal(&reply->stream.text);
  rl_http_stream_free(&reply->stream);
  return rl_reply_text(call, 200, text, type, err);
}

static int send_streamed(rl_call *call, chunked_reply *reply, const char *type, rl_error *err) {
  reply->server = call->server;
  if (atomic_fetch_add(&call->server->streamed_replies, 1) >= MAX_STREAMED_REPLIES) {
    rl_http_stream_free(&reply->stream);
    return rl_fail(err, RL_HTTP, 503,
                   "Other clients are reading as many large replies as the daemon sends at once; try again later.");
  }
  return rl_reply(call, 200, rl_http_stream_response(&reply->stream, call, SEND_BYTES, type), err);
}

int rl_reply_chunks(rl_call *call, const rl_chunk_source *source, const char *type, rl_error *err) {
  chunked_reply *reply = calloc(1, sizeof *reply);
  if (reply == NULL) {
    source->close(source->context);
    return rl_fail(err, RL_SYS, 0, "out of memory for a response");
  }
  *reply = (chunked_reply){.stream = {.read_callback = read_chunks, .close = close_reply}, .source = *source};
  if (rl_http_stream_write(&reply->stream, "", err) < 0 || fill_buffer(reply, err) < 0) {
    rl_http_stream_free(&reply->stream);
    return -1;
  }
  return reply->closed ? send_whole(call, reply, type, err) : send_streamed(call, reply, type, err);
}
