/* Implements chunked_reply.h. If the source ends within the first buffer, the reply is sent whole. Otherwise the reply is
 * streamed: MHD sends the buffer, then a pool refills the buffer while the connection is suspended, until the source ends. An
 * error during streaming ends the reply early. */
#include "api/chunked_reply.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "api/cached_reply.h"
#include "api/connections.h"
#include "api/http_stream.h"
#include "api/reply.h"
#include "api/server_internal.h"
#include "base/clock.h"
#include "base/log.h"

enum { BUFFER_BYTES = 64 << 10, SEND_BYTES = 16 << 10, MAX_STREAMED_REPLIES = 16 };

typedef struct chunked_reply {
  rl_http_stream stream;
  rl_chunk_source source;
  bool source_closed; /* the source has ended or failed, and was closed */
  bool failed;        /* reading the source failed */
  rl_server *server;  /* server whose streamed_replies counts this reply; NULL: the reply is sent whole and not counted */
  rl_pool_task fill_task;
  rl_request_budget *budget; /* budget of the request while the handler runs, then own_budget */
  rl_request_budget own_budget;
} chunked_reply;

static void close_source(chunked_reply *reply) {
  if (reply->source_closed) return;
  reply->source_closed = true;
  reply->source.close(reply->source.context);
  if (reply->server != NULL) atomic_fetch_sub(&reply->server->streamed_replies, 1);
}

/* Reads chunks until the buffer has max_bytes or the source ends. */
static int fill_buffer(chunked_reply *reply, size_t max_bytes, rl_error *err) {
  while (!reply->source_closed && reply->stream.used < max_bytes) {
    rl_chunk chunk;
    if (rl_request_budget_check(reply->budget, err) < 0) return -1;
    int found = reply->source.next(reply->source.context, &chunk, err);
    if (found < 0 || (found > 0 && rl_http_stream_write(&reply->stream, chunk.bytes, chunk.length, err) < 0)) return -1;
    if (found == 0) close_source(reply);
  }
  return 0;
}

static void run_fill(rl_pool_task *task) {
  chunked_reply *reply = (chunked_reply *)((char *)task - offsetof(chunked_reply, fill_task));
  rl_request_budget *budget = reply->budget;
  rl_error err;
  if (reply->source.renews_deadline) rl_request_budget_renew(budget);
  rl_request_budget_begin(budget);
  reply->failed = fill_buffer(reply, BUFFER_BYTES, &err) < 0;
  rl_request_budget_end(budget);
  if (reply->source_closed)
    (void)rl_connection_use_resource(reply->stream.connections, reply->stream.tracked_connection, RL_RESOURCE_SNAPSHOTS, 0, 0);
  if (!reply->failed) return;
  close_source(reply); /* releases the database connection before MHD ends the reply */
  rl_request_budget_explain(budget, &err);
  rl_log(budget->client_left ? RL_LOG_DEBUG : RL_LOG_WARNING, "a reply was ended early: %s", err.message);
}

/* Ends the reply without the last chunk, so that the client notices that it is incomplete. Does not return
 * MHD_CONTENT_READER_END_WITH_ERROR, because MHD 0.9.75 then closes a resumed connection only after other connections end. Shuts
 * the socket down instead: MHD's next send fails, and MHD closes the connection. */
static ssize_t end_early(const chunked_reply *reply) {
  shutdown(reply->budget->client_socket, SHUT_RDWR);
  return MHD_CONTENT_READER_END_OF_STREAM;
}

/* Starts the task that fills the buffer; the connection is suspended until the task has run. */
static ssize_t read_chunks(rl_http_stream *stream) {
  chunked_reply *reply = (chunked_reply *)stream;
  if (reply->failed) return end_early(reply);
  if (reply->source_closed) return MHD_CONTENT_READER_END_OF_STREAM;
  bool accepted = rl_request_pools_continue(reply->server->pools, RL_POOL_HEAVY, &reply->fill_task);
  return accepted ? 0 : end_early(reply);
}

static void close_reply(rl_http_stream *stream) {
  chunked_reply *reply = (chunked_reply *)stream;
  close_source(reply);
  free(reply);
}

static int send_whole(rl_http_request *request, chunked_reply *reply, const char *content_type, rl_error *err) {
  const size_t length = reply->stream.used;
  /* Copies the text, because realloc would leave a free block too small for the next reply's buffer. */
  char *bytes = malloc(length + 1);
  if (bytes != NULL) memcpy(bytes, reply->stream.bytes, length + 1);
  rl_http_stream_free(&reply->stream);
  if (request->cache_key != NULL) return rl_reply_text(request, 200, bytes, content_type, err);
  return rl_reply(request, 200, rl_response_text(bytes, length, content_type), err);
}

/* Counts a streamed reply of the request. The count ends with close_source. */
static int claim_stream(rl_http_request *request, const rl_chunk_source *source, rl_error *err) {
  rl_server *server = request->server;
  if (atomic_fetch_add(&server->streamed_replies, 1) >= MAX_STREAMED_REPLIES)
    return rl_fail(err, RL_LIMIT, RL_LIMIT_BUSY,
                   "The daemon is already sending its maximum number of large replies; try again later.");
  if (source->is_file) return 0;
  if (rl_server_check_log(server, err) < 0) return -1;
  (void)rl_connection_use_resource(server->connections, request->tracked_connection, RL_RESOURCE_SNAPSHOTS, 1, rl_monotonic_ns());
  return 0;
}

static int send_streamed(rl_http_request *request, chunked_reply *reply, const char *content_type, rl_error *err) {
  reply->server = request->server;
  rl_request_budget_end(&request->budget);
  reply->own_budget = request->budget;
  reply->budget = &reply->own_budget;
  reply->fill_task = (rl_pool_task){.run = run_fill, .connection = request->connection};
  if (claim_stream(request, &reply->source, err) < 0) {
    rl_http_stream_free(&reply->stream);
    return -1;
  }
  return rl_reply(request, 200, rl_http_stream_response(&reply->stream, request, SEND_BYTES, content_type), err);
}

int rl_reply_chunks(rl_http_request *request, const rl_chunk_source *source, const char *content_type, rl_error *err) {
  size_t max_whole_bytes = request->cache_key != NULL ? RL_MAX_CACHED_BODY_BYTES : BUFFER_BYTES;
  chunked_reply *reply = calloc(1, sizeof *reply);
  if (reply == NULL) {
    source->close(source->context);
    return rl_fail(err, RL_ERRNO, 0, "out of memory for a response");
  }
  *reply = (chunked_reply){
      .stream = {.read_callback = read_chunks, .free_owner = close_reply}, .source = *source, .budget = &request->budget};
  if (rl_http_stream_write(&reply->stream, "", 0, err) < 0 || fill_buffer(reply, max_whole_bytes, err) < 0) {
    rl_http_stream_free(&reply->stream);
    return -1;
  }
  return reply->source_closed ? send_whole(request, reply, content_type, err) : send_streamed(request, reply, content_type, err);
}
