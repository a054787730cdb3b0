#include "api/events.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "api/stream.h"
#include "base/clock.h"
#include "base/log.h"

enum { EVENTS_AT_ONCE = 64, SILENCE_S = 15 };

typedef struct stream {
  rl_stream out;
  rl_events *events;
  rl_server *server;
  struct MHD_Connection *connection;
  rl_credential shown;   /* what it may listen by, where a token is needed */
  int64_t job_id, after; /* the last event that was sent */
  int64_t spoke_ns;
  bool news; /* something happened since the last look into the store */
  bool suspended, ended;
  LIST_ENTRY(stream) link;
} stream;

struct rl_events {
  pthread_mutex_t lock; /* of the list, and of news and suspended in each stream */
  LIST_HEAD(, stream) streams;
  int64_t count, limit;
  bool stopping;
};

rl_events *rl_events_new(int64_t listener_limit) {
  rl_events *events = calloc(1, sizeof *events);
  if (events == NULL) return NULL;
  pthread_mutex_init(&events->lock, NULL);
  LIST_INIT(&events->streams);
  events->limit = listener_limit;
  return events;
}

void rl_events_free(rl_events *events) {
  if (events == NULL) return;
  pthread_mutex_destroy(&events->lock);
  free(events);
}

static void wake(stream *listener) { /* under the lock */
  listener->news = true;
  if (!listener->suspended) return;
  listener->suspended = false;
  MHD_resume_connection(listener->connection);
}

void rl_events_heard(void *context, int64_t job_id) {
  rl_events *events = context;
  stream *listener;
  pthread_mutex_lock(&events->lock);
  LIST_FOREACH(listener, &events->streams, link)
  if (listener->job_id == job_id) wake(listener);
  pthread_mutex_unlock(&events->lock);
}

static bool silent(const stream *listener, int64_t now_ns) {
  return now_ns - listener->spoke_ns >= SILENCE_S * INT64_C(1000000000);
}

void rl_events_tick(rl_events *events, int64_t now_ns) {
  stream *listener;
  pthread_mutex_lock(&events->lock);
  LIST_FOREACH(listener, &events->streams, link)
  if (listener->suspended && silent(listener, now_ns)) wake(listener);
  pthread_mutex_unlock(&events->lock);
}

void rl_events_stop(rl_events *events) {
  stream *listener;
  pthread_mutex_lock(&events->lock);
  events->stopping = true;
  LIST_FOREACH(listener, &events->streams, link) wake(listener);
  pthread_mutex_unlock(&events->lock);
}

int64_t rl_events_listeners(rl_events *events) {
  pthread_mutex_lock(&events->lock);
  int64_t count = events->count;
  pthread_mutex_unlock(&events->lock);
  return count;
}

char *rl_event_format(int64_t seq, const char *type, const char *data) {
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  if (out == NULL) return NULL;
  fprintf(out, "id: %lld\nevent: %s\n", (long long)seq, type);
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

/* Take what the store has beyond the last event. A job's final state comes with its last event, so when it was there before the
 * look and the look is not full, that was all. */
static int take(stream *listener, rl_error *err) {
  rl_server *server = listener->server;
  rl_auto(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  rl_binding bindings[] = {{":job", RL_BIND_INT, .integer = listener->job_id},
                           {":after", RL_BIND_INT, .integer = listener->after},
                           {":limit", RL_BIND_INT, .integer = EVENTS_AT_ONCE}};
  rl_job_state state;
  const char *json;
  int rc, count = 0;
  if (rl_store_job_state(server->store, listener->job_id, &state, err) < 0) return -1;
  if (rl_store_query(server->store, RL_QUERY_EVENTS, bindings, 3, &cursor, err) < 0) return -1;
  for (; (rc = rl_cursor_next(cursor, &json, err)) > 0; count++) {
    int64_t seq = rl_cursor_integer(cursor, 1);
    rl_auto(rl_free_text) char *text = rl_event_format(seq, rl_cursor_text(cursor, 2), json);
    if (text == NULL) return rl_fail(err, RL_SYS, 0, "out of memory for events");
    if (rl_stream_say(&listener->out, text, err) < 0) return -1;
    listener->after = seq;
  }
  listener->ended = rl_job_is_final(state) && count < EVENTS_AT_ONCE;
  return rc;
}

/* Who was let in by a token that has gone hears nothing more. Asked of the store, once a look: another program may revoke it. */
static int look(stream *listener, rl_error *err) {
  bool may = !listener->server->token_needed;
  if (!may && rl_credential_holds(listener->server, &listener->shown, &may, err) < 0) return -1;
  listener->ended = !may;
  return may ? take(listener, err) : 0;
}

/* True when there is nothing to do until somebody wakes the stream. */
static bool sleep_until_woken(stream *listener) {
  rl_events *events = listener->events;
  pthread_mutex_lock(&events->lock);
  bool sleeps = !listener->news && !events->stopping;
  if (sleeps) {
    listener->suspended = true;
    MHD_suspend_connection(listener->connection);
  }
  pthread_mutex_unlock(&events->lock);
  return sleeps;
}

static bool stopping(rl_events *events, stream *listener) {
  pthread_mutex_lock(&events->lock);
  listener->news = false;
  bool is = events->stopping;
  pthread_mutex_unlock(&events->lock);
  return is;
}

/* A look into the store, or a sign of life after a long silence. */
static int speak(stream *listener, rl_error *err) {
  int64_t now = rl_monotonic_ns();
  if (look(listener, err) < 0) return -1;
  if (listener->out.used == 0 && silent(listener, now) && rl_stream_say(&listener->out, ": still here\n\n", err) < 0) return -1;
  if (listener->out.used > 0) listener->spoke_ns = now;
  return 0;
}

static ssize_t more(rl_stream *out) {
  stream *listener = (stream *)out;
  rl_error err;
  while (out->used == 0) {
    if (listener->ended || stopping(listener->events, listener)) return MHD_CONTENT_READER_END_OF_STREAM;
    if (speak(listener, &err) < 0) {
      rl_log(RL_LOG_ERROR, "events of job %lld: %s", (long long)listener->job_id, err.message);
      return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    if (out->used == 0 && !listener->ended && sleep_until_woken(listener)) return 0;
  }
  return 0;
}

static void close_stream(rl_stream *out) {
  stream *listener = (stream *)out;
  rl_events *events = listener->events;
  pthread_mutex_lock(&events->lock);
  LIST_REMOVE(listener, link);
  events->count--;
  pthread_mutex_unlock(&events->lock);
  free(listener);
}

/* Enters the list, or -1 (503) when it is full or the daemon stops. */
static int enlist(stream *listener, rl_error *err) {
  rl_events *events = listener->events;
  pthread_mutex_lock(&events->lock);
  bool room = events->count < events->limit && !events->stopping;
  if (room) {
    LIST_INSERT_HEAD(&events->streams, listener, link);
    events->count++;
  }
  pthread_mutex_unlock(&events->lock);
  return room ? 0 : rl_fail(err, RL_HTTP, 503, "There are as many listeners as the daemon takes; ask again later.");
}

int rl_handle_job_events(rl_call *call, rl_error *err) {
  int64_t after = 0;
  const char *last = rl_call_header(call, "Last-Event-ID");
  if (last != NULL && !rl_decimal_parse(last, &after))
    return rl_call_bad_parameter(call, err, "Last-Event-ID", "must be the number of an event");
  stream *listener = calloc(1, sizeof *listener);
  if (listener == NULL) return rl_fail(err, RL_SYS, 0, "out of memory for a listener");
  *listener = (stream){.out = {.more = more, .close = close_stream},
                       .events = call->server->events,
                       .server = call->server,
                       .connection = call->connection,
                       .shown = call->shown,
                       .job_id = call->id,
                       .after = after,
                       .spoke_ns = rl_monotonic_ns()};
  /* The first look is taken here, so that an unknown job is a 404 and not a stream. */
  if (rl_stream_say(&listener->out, "retry: 2000\n\n", err) < 0 || look(listener, err) < 0 || enlist(listener, err) < 0) {
    free(listener->out.text);
    free(listener);
    return -1;
  }
  if (listener->ended && listener->after == after) { /* nothing left to tell: 204 keeps a browser from coming again */
    rl_stream_free(&listener->out);
    return rl_reply(call, 204, rl_response_empty(), err);
  }
  struct MHD_Response *response = rl_stream_response(&listener->out, call, 8 << 10, "text/event-stream");
  if (response != NULL) {
    rl_header(response, "X-Accel-Buffering", "no");
    rl_connection_deadline(call->server->connections, call->record, 0);
  }
  return rl_reply(call, 200, response, err);
}
