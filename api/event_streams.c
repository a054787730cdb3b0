#include "api/event_streams.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "api/auth.h"
#include "api/handlers.h"
#include "api/http_stream.h"
#include "api/http_syntax.h"
#include "api/reply.h"
#include "api/server_internal.h"
#include "base/clock.h"
#include "base/log.h"

enum { EVENTS_PER_QUERY = 64, SEND_BYTES = 8 << 10 };
static const int64_t keepalive_ns = INT64_C(15000000000);

typedef struct event_stream {
  rl_http_stream http;
  rl_event_streams *streams;
  rl_server *server;
  struct MHD_Connection *connection;
  rl_credential credential; /* authorizes the stream where the server requires a token */
  int64_t job_id;
  int64_t last_sequence; /* of the last event that was written */
  int64_t last_write_ns;
  bool pending; /* the store may have new events, or a keep-alive is due */
  bool suspended, ended;
  LIST_ENTRY(event_stream) link;
} event_stream;

struct rl_event_streams {
  pthread_mutex_t lock; /* guards everything below, and pending and suspended of each stream */
  LIST_HEAD(, event_stream) list;
  int64_t count, limit;
  bool stopping;
};

rl_event_streams *rl_event_streams_new(int64_t limit) {
  rl_event_streams *streams = calloc(1, sizeof *streams);
  if (streams == NULL) return NULL;
  pthread_mutex_init(&streams->lock, NULL);
  LIST_INIT(&streams->list);
  streams->limit = limit;
  return streams;
}

void rl_event_streams_free(rl_event_streams *streams) {
  if (streams == NULL) return;
  pthread_mutex_destroy(&streams->lock);
  free(streams);
}

/* The caller holds the lock. */
static void resume(event_stream *stream) {
  stream->pending = true;
  if (!stream->suspended) return;
  stream->suspended = false;
  MHD_resume_connection(stream->connection);
}

void rl_event_streams_notify(void *context, int64_t job_id) {
  rl_event_streams *streams = context;
  event_stream *stream;
  pthread_mutex_lock(&streams->lock);
  LIST_FOREACH (stream, &streams->list, link)
    if (stream->job_id == job_id) resume(stream);
  pthread_mutex_unlock(&streams->lock);
}

static bool keepalive_is_due(const event_stream *stream, int64_t now_ns) {
  return now_ns - stream->last_write_ns >= keepalive_ns;
}

void rl_event_streams_tick(rl_event_streams *streams, int64_t now_ns) {
  event_stream *stream;
  pthread_mutex_lock(&streams->lock);
  LIST_FOREACH (stream, &streams->list, link)
    if (stream->suspended && keepalive_is_due(stream, now_ns)) resume(stream);
  pthread_mutex_unlock(&streams->lock);
}

void rl_event_streams_stop(rl_event_streams *streams) {
  event_stream *stream;
  pthread_mutex_lock(&streams->lock);
  streams->stopping = true;
  LIST_FOREACH (stream, &streams->list, link) resume(stream);
  pthread_mutex_unlock(&streams->lock);
}

int64_t rl_event_streams_count(rl_event_streams *streams) {
  pthread_mutex_lock(&streams->lock);
  int64_t count = streams->count;
  pthread_mutex_unlock(&streams->lock);
  return count;
}

char *rl_event_format(int64_t sequence, const char *type, const char *data) {
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  if (out == NULL) return NULL;
  fprintf(out, "id: %lld\nevent: %s\n", (long long)sequence, type);
  for (const char *line = data;;) {
    size_t length = strcspn(line, "\r\n");
    fprintf(out, "data: %.*s\n", (int)length, line);
    if (line[length] == '\0') break;
    line += length + (line[length] == '\r' && line[length + 1] == '\n' ? 2 : 1);
  }
  fputc('\n', out);
  if (fclose(out) == 0) return text;
  free(text);
  return NULL;
}

static int write_event(event_stream *stream, rl_cursor *cursor, const char *json, rl_error *err) {
  int64_t sequence = rl_cursor_integer(cursor, 1);
  rl_auto(rl_free_text) char *text = rl_event_format(sequence, rl_cursor_text(cursor, 2), json);
  if (text == NULL) return rl_fail(err, RL_SYS, 0, "out of memory for events");
  if (rl_http_stream_write(&stream->http, text, err) < 0) return -1;
  stream->last_sequence = sequence;
  return 0;
}

/* Writes the events that follow the last written one. The final state is stored in the same transaction as the last event: when
 * the job was final before the query and the query returned fewer rows than its limit, the stream has ended. */
static int drain(event_stream *stream, rl_error *err) {
  rl_store *store = stream->server->store;
  rl_auto(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  rl_binding bindings[] = {{":job", RL_BIND_INT, .integer = stream->job_id},
                           {":after", RL_BIND_INT, .integer = stream->last_sequence},
                           {":limit", RL_BIND_INT, .integer = EVENTS_PER_QUERY}};
  rl_job_state state;
  const char *json;
  int found, count = 0;
  if (rl_store_job_state(store, stream->job_id, &state, err) < 0) return -1;
  if (rl_store_query(store, RL_QUERY_EVENTS, bindings, 3, &cursor, err) < 0) return -1;
  for (; (found = rl_cursor_next(cursor, &json, err)) > 0; count++)
    if (write_event(stream, cursor, json, err) < 0) return -1;
  stream->ended = rl_job_is_final(state) && count < EVENTS_PER_QUERY;
  return found;
}

/* Writes new events, or ends the stream when its token was revoked or its login session has ended. The store is asked each time,
 * because rooflinectl revokes tokens in another process. */
static int poll_store(event_stream *stream, rl_error *err) {
  bool valid = !stream->server->token_required;
  if (!valid && rl_credential_check(stream->server, &stream->credential, &valid, err) < 0) return -1;
  stream->ended = !valid;
  return valid ? drain(stream, err) : 0;
}

/* Suspends the connection and returns true, unless something is pending. */
static bool suspend_until_pending(event_stream *stream) {
  rl_event_streams *streams = stream->streams;
  pthread_mutex_lock(&streams->lock);
  bool suspend = !stream->pending && !streams->stopping;
  if (suspend) {
    stream->suspended = true;
    MHD_suspend_connection(stream->connection);
  }
  pthread_mutex_unlock(&streams->lock);
  return suspend;
}

/* Clears pending; returns true when the server stops. */
static bool begin_poll(event_stream *stream) {
  pthread_mutex_lock(&stream->streams->lock);
  stream->pending = false;
  bool stopping = stream->streams->stopping;
  pthread_mutex_unlock(&stream->streams->lock);
  return stopping;
}

static int write_events_or_keepalive(event_stream *stream, rl_error *err) {
  int64_t now_ns = rl_monotonic_ns();
  if (poll_store(stream, err) < 0) return -1;
  if (stream->http.used == 0 && keepalive_is_due(stream, now_ns) &&
      rl_http_stream_write(&stream->http, ": still here\n\n", err) < 0)
    return -1;
  if (stream->http.used > 0) stream->last_write_ns = now_ns;
  return 0;
}

static ssize_t read_events(rl_http_stream *http) {
  event_stream *stream = (event_stream *)http;
  rl_error err;
  while (http->used == 0) {
    if (stream->ended || begin_poll(stream)) return MHD_CONTENT_READER_END_OF_STREAM;
    if (write_events_or_keepalive(stream, &err) < 0) {
      rl_log(RL_LOG_ERROR, "the event stream of job %lld was cut: %s", (long long)stream->job_id, err.message);
      return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    if (http->used == 0 && !stream->ended && suspend_until_pending(stream)) return 0;
  }
  return 0;
}

static void close_stream(rl_http_stream *http) {
  event_stream *stream = (event_stream *)http;
  rl_event_streams *streams = stream->streams;
  pthread_mutex_lock(&streams->lock);
  LIST_REMOVE(stream, link);
  streams->count--;
  pthread_mutex_unlock(&streams->lock);
  free(stream);
}

/* Adds the stream to the list; -1 (503) when the list is full or the server stops. */
static int add_stream(event_stream *stream, rl_error *err) {
  rl_event_streams *streams = stream->streams;
  pthread_mutex_lock(&streams->lock);
  bool fits = streams->count < streams->limit && !streams->stopping;
  if (fits) {
    LIST_INSERT_HEAD(&streams->list, stream, link);
    streams->count++;
  }
  pthread_mutex_unlock(&streams->lock);
  return fits ? 0 : rl_fail(err, RL_HTTP, 503, "All event streams that the daemon allows are in use; try again later.");
}

/* Opens a stream of the job's events after last_sequence. The first poll happens here, so that an unknown job is a 404. NULL on
 * failure. */
static event_stream *open_stream(rl_call *call, int64_t last_sequence, rl_error *err) {
  event_stream *stream = calloc(1, sizeof *stream);
  if (stream == NULL) {
    rl_fail(err, RL_SYS, 0, "out of memory for an event stream");
    return NULL;
  }
  *stream = (event_stream){.http = {.read_callback = read_events, .close = close_stream},
                           .streams = call->server->event_streams,
                           .server = call->server,
                           .connection = call->connection,
                           .credential = call->credential,
                           .job_id = call->id,
                           .last_sequence = last_sequence,
                           .last_write_ns = rl_monotonic_ns()};
  if (rl_http_stream_write(&stream->http, "retry: 2000\n\n", err) < 0 || poll_store(stream, err) < 0 ||
      add_stream(stream, err) < 0) {
    free(stream->http.text);
    free(stream);
    return NULL;
  }
  return stream;
}

int rl_handle_stream_events(rl_call *call, rl_error *err) {
  int64_t last_sequence = 0;
  const char *header = rl_call_header(call, "Last-Event-ID");
  if (header != NULL && !rl_decimal_parse(header, &last_sequence))
    return rl_call_fail_parameter(call, err, "Last-Event-ID", "must be the number of an event");
  event_stream *stream = open_stream(call, last_sequence, err);
  if (stream == NULL) return -1;
  if (stream->ended && stream->last_sequence == last_sequence) { /* no events are left; 204 keeps a browser from reconnecting */
    rl_http_stream_free(&stream->http);
    return rl_reply(call, 204, rl_response_empty(), err);
  }
  struct MHD_Response *response = rl_http_stream_response(&stream->http, call, SEND_BYTES, "text/event-stream");
  if (response != NULL) {
    rl_response_add_header(response, "X-Accel-Buffering", "no");
    rl_connection_set_deadline(call->server->connections, call->connection_record, 0);
  }
  return rl_reply(call, 200, response, err);
}
