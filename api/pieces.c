/* An answer made a piece at a time. What fits the first buffer is sent whole, with its length, and its source is closed before
 * the answer starts; more is streamed, a buffer at a time, and the source goes with the response. */
#include "api/stream.h"
#include "base/log.h"

enum { FILL = 64 << 10, STREAMING_MOST = 16 };

typedef struct stream {
  rl_stream out;
  rl_pieces pieces;
  bool ended;        /* all has been read, and the pieces are closed */
  rl_server *server; /* where a streamed answer is counted; NULL before it is one */
} stream;

static void end(stream *all) {
  if (all->ended) return;
  all->ended = true;
  all->pieces.close(all->pieces.context);
  if (all->server != NULL) atomic_fetch_sub(&all->server->streaming, 1);
}

/* Read pieces until the buffer has FILL bytes or all has been read. */
static int fill(stream *all, rl_error *err) {
  while (!all->ended && all->out.used < FILL) {
    const char *text;
    int rc = all->pieces.next(all->pieces.context, &text, err);
    if (rc < 0 || (rc > 0 && rl_stream_say(&all->out, text, err) < 0)) return -1;
    if (rc == 0) end(all);
  }
  return 0;
}

static ssize_t more(rl_stream *out) {
  stream *all = (stream *)out;
  rl_error err;
  if (fill(all, &err) < 0) {
    rl_log(RL_LOG_ERROR, "answer: %s", err.message);
    return MHD_CONTENT_READER_END_WITH_ERROR;
  }
  return out->used > 0 ? 0 : MHD_CONTENT_READER_END_OF_STREAM;
}

static void close_stream(rl_stream *out) {
  stream *all = (stream *)out;
  end(all);
  free(all);
}

int rl_reply_pieces(rl_call *call, const rl_pieces *pieces, const char *type, rl_error *err) {
  stream *all = calloc(1, sizeof *all);
  if (all == NULL) {
    pieces->close(pieces->context);
    return rl_fail(err, RL_SYS, 0, "out of memory for an answer");
  }
  *all = (stream){.out = {.more = more, .close = close_stream}, .pieces = *pieces};
  if (rl_stream_say(&all->out, "", err) < 0 || fill(all, err) < 0) {
    rl_stream_free(&all->out);
    return -1;
  }
  if (all->ended) {
    char *text = rl_steal(&all->out.text);
    rl_stream_free(&all->out);
    return rl_reply_text(call, 200, text, type, err);
  }
  all->server = call->server;
  if (atomic_fetch_add(&call->server->streaming, 1) >= STREAMING_MOST) {
    rl_stream_free(&all->out);
    return rl_fail(err, RL_HTTP, 503, "As many large answers as the daemon takes are being read; ask again later.");
  }
  return rl_reply(call, 200, rl_stream_response(&all->out, call, 16 << 10, type), err);
}
