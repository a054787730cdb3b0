/* Implements event_streams.h. Each job or suite run that clients follow has one feed, which holds its newest events in memory.
 * When the store has new events, a task in a request pool reads them into the feed and resumes the suspended streams. Then MHD's
 * threads copy the events from the feed to the streams. Another task in a pool queries the store for events that are no longer in
 * the feed, and checks a stream's token. The events of a job or suite run are numbered from 1 without gaps. */
#include "api/event_streams.h"

#include <pthread.h>
#include <sys/queue.h>

#include "api/auth.h"
#include "api/event_batch.h"
#include "api/handlers.h"
#include "api/http_stream.h"
#include "api/http_syntax.h"
#include "api/reply.h"
#include "api/server_internal.h"
#include "base/clock.h"
#include "base/log.h"

enum {
  FEED_EVENTS = 256,   /* capacity of a feed */
  SEND_BYTES = 8 << 10 /* size of MHD's send buffer for one stream */
};
static const int64_t keepalive_ns = INT64_C(15000000000); /* a stream sends a comment after this time without an event */

/* The newest events of a source, that is, of a job or a suite run. rl_event_streams.lock guards it. */
typedef struct event_feed {
  rl_event_streams *streams;
  rl_event_source source;
  int64_t first_sequence;   /* number of the first event in the feed */
  int64_t last_sequence;    /* number of the last event; first_sequence - 1 if the feed is empty */
  char *texts[FEED_EVENTS]; /* texts[s % FEED_EVENTS]: text of event s, malloc'ed */
  bool is_final;            /* the source has finished: no event follows last_sequence */
  bool is_reading;          /* read_task is queued or running */
  bool is_stale;            /* the store may have events that read_task has not read */
  int64_t stream_count;
  rl_pool_task read_task;
  LIST_ENTRY(event_feed) link;
} event_feed;

typedef struct event_stream {
  rl_http_stream http;
  rl_event_streams *streams;
  event_feed *feed;
  struct MHD_Connection *connection;
  rl_credential credential; /* checked before each write if the server requires a token */
  bool credential_checked;  /* the credential was checked after the last write */
  int64_t last_sequence;    /* number of the event that was written last */
  int64_t last_write_ns;    /* monotonic time of the last write */
  bool is_suspended;        /* the connection is suspended; guarded by the lock */
  bool ended, failed;       /* the response ends after the text that is already written */
  rl_pool_task refill_task;
  LIST_ENTRY(event_stream) link;
} event_stream;

struct rl_event_streams {
  rl_server *server;
  pthread_mutex_t lock; /* guards everything below, and the feeds */
  LIST_HEAD(, event_stream) list;
  LIST_HEAD(, event_feed) feeds;
  int64_t count, limit;
  bool stopping;
};

rl_event_streams *rl_event_streams_new(rl_server *server, int64_t limit) {
  rl_event_streams *streams = calloc(1, sizeof *streams);
  if (streams == NULL) return NULL;
  pthread_mutex_init(&streams->lock, NULL);
  LIST_INIT(&streams->list);
  LIST_INIT(&streams->feeds);
  streams->server = server;
  streams->limit = limit;
  return streams;
}

/* --- feeds. The caller holds the lock. --------------------------------------------------------------------------------- */

static event_feed *find_feed(rl_event_streams *streams, rl_event_source source) {
  event_feed *feed;
  LIST_FOREACH (feed, &streams->feeds, link)
    if (feed->source.id == source.id && feed->source.is_suite_run == source.is_suite_run) return feed;
  return NULL;
}

static void free_feed(event_feed *feed) {
  LIST_REMOVE(feed, link);
  for (int i = 0; i < FEED_EVENTS; i++) free(feed->texts[i]);
  free(feed);
}

static void free_unused_feed(event_feed *feed) {
  if (feed->stream_count == 0 && !feed->is_reading) free_feed(feed);
}

void rl_event_streams_free(rl_event_streams *streams) {
  if (streams == NULL) return;
  while (!LIST_EMPTY(&streams->feeds)) free_feed(LIST_FIRST(&streams->feeds));
  pthread_mutex_destroy(&streams->lock);
  free(streams);
}

/* Resumes the connection of a suspended stream. */
static void resume(event_stream *stream) {
  if (!stream->is_suspended) return;
  stream->is_suspended = false;
  MHD_resume_connection(stream->connection);
}

/* Queues the task that reads the feed's new events. A task that is already queued or running reads once more instead. */
static void start_read(event_feed *feed) {
  feed->is_stale = true;
  if (!feed->is_reading)
    feed->is_reading = rl_request_pools_continue(feed->streams->server->pools, RL_POOL_CONTROL, &feed->read_task);
}

/* Appends an event. If the feed is full, the event replaces the oldest one. Takes ownership of *text and sets *text to NULL; does
 * nothing if the feed already has the event. */
static void append_event(event_feed *feed, int64_t sequence, char **text) {
  if (sequence <= feed->last_sequence) return;
  if (sequence != feed->last_sequence + 1) feed->first_sequence = sequence; /* after a gap */
  if (sequence - feed->first_sequence >= FEED_EVENTS) feed->first_sequence = sequence - FEED_EVENTS + 1;
  feed->last_sequence = sequence;
  free(feed->texts[sequence % FEED_EVENTS]);
  feed->texts[sequence % FEED_EVENTS] = rl_take_ownership(text);
}

static void append_batch(event_feed *feed, rl_event_batch *batch) {
  event_stream *stream;
  for (int i = 0; i < batch->count; i++) append_event(feed, batch->sequences[i], &batch->texts[i]);
  if (batch->last_sequence > feed->last_sequence) { /* retention has deleted the last events */
    feed->last_sequence = batch->last_sequence;
    feed->first_sequence = feed->last_sequence + 1;
  }
  feed->is_final = batch->is_final;
  if (batch->count == RL_EVENT_BATCH_MAX) feed->is_stale = true;
  if (batch->count == 0 && !batch->is_final) return;
  LIST_FOREACH (stream, &feed->streams->list, link)
    if (stream->feed == feed) resume(stream);
}

static const char *source_name(rl_event_source source) { return source.is_suite_run ? "suite run" : "job"; }

/* --- feeds, in a pool -------------------------------------------------------------------------------------------------- */

/* Reads the next batch of events with numbers above `after`. A deleted source counts as finished. Returns -1 if the store failed;
 * the read must then be repeated later. */
static int read_batch(event_feed *feed, int64_t after, rl_event_batch *batch) {
  rl_error err;
  if (rl_event_batch_read(feed->streams->server->store, feed->source, after, batch, &err) == 0) return 0;
  if (err.domain == RL_HTTP && err.code == 404) {
    batch->is_final = true;
    return 0;
  }
  rl_log(RL_LOG_WARNING, "the events of %s %lld can't be read now: %s", source_name(feed->source), (long long)feed->source.id,
         err.message);
  return -1;
}

static void read_feed(rl_pool_task *task) {
  event_feed *feed = (event_feed *)((char *)task - offsetof(event_feed, read_task));
  rl_event_streams *streams = feed->streams;
  bool failed = false;
  pthread_mutex_lock(&streams->lock);
  while (feed->is_stale && !failed && !streams->stopping) {
    int64_t after = feed->last_sequence;
    feed->is_stale = false;
    pthread_mutex_unlock(&streams->lock);
    rl_event_batch batch = {0};
    failed = read_batch(feed, after, &batch) < 0;
    pthread_mutex_lock(&streams->lock);
    if (failed) feed->is_stale = true;
    else append_batch(feed, &batch);
    rl_event_batch_clear(&batch);
  }
  feed->is_reading = false;
  free_unused_feed(feed);
  pthread_mutex_unlock(&streams->lock);
}

/* --- notifications ----------------------------------------------------------------------------------------------------- */

static void notify(rl_event_streams *streams, rl_event_source source) {
  pthread_mutex_lock(&streams->lock);
  event_feed *feed = find_feed(streams, source);
  if (feed != NULL) start_read(feed);
  pthread_mutex_unlock(&streams->lock);
}

void rl_event_streams_notify(void *context, int64_t job_id) { notify(context, (rl_event_source){false, job_id}); }
void rl_event_streams_notify_suite_run(void *context, int64_t run_id) { notify(context, (rl_event_source){true, run_id}); }

static bool keepalive_is_due(const event_stream *stream, int64_t now_ns) {
  return now_ns - stream->last_write_ns >= keepalive_ns;
}

void rl_event_streams_tick(rl_event_streams *streams, int64_t now_ns) {
  event_stream *stream;
  event_feed *feed;
  pthread_mutex_lock(&streams->lock);
  LIST_FOREACH (feed, &streams->feeds, link)
    if (feed->is_stale) start_read(feed);
  LIST_FOREACH (stream, &streams->list, link)
    if (keepalive_is_due(stream, now_ns)) resume(stream);
  pthread_mutex_unlock(&streams->lock);
}

static bool is_abandoned(const event_stream *stream) {
  return rl_connection_is_abandoned(stream->http.connections, stream->http.tracked_connection);
}

void rl_event_streams_end_abandoned(rl_event_streams *streams) {
  event_stream *stream;
  pthread_mutex_lock(&streams->lock);
  LIST_FOREACH (stream, &streams->list, link)
    if (stream->is_suspended && is_abandoned(stream)) resume(stream);
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

/* --- one stream -------------------------------------------------------------------------------------------------------- */

/* Reads the batch of events after last_sequence from the store and writes it. */
static int write_stored_events(event_stream *stream, rl_event_source source, rl_error *err) {
  rl_event_batch batch = {0};
  int rc = rl_event_batch_read(stream->streams->server->store, source, stream->last_sequence, &batch, err);
  for (int i = 0; rc == 0 && i < batch.count; i++) rc = rl_http_stream_write_text(&stream->http, batch.texts[i], err);
  if (rc == 0) {
    stream->last_sequence = batch.last_sequence;
    stream->ended = batch.is_final;
  }
  rl_event_batch_clear(&batch);
  return rc;
}

/* Returns true if the stream's next events must be read from the store. The caller holds the lock. */
static bool is_behind_feed(const event_stream *stream) {
  return stream->last_sequence < stream->feed->last_sequence && stream->last_sequence + 1 < stream->feed->first_sequence;
}

/* Checks the credential in the store, because rooflinectl (another process) may have revoked the token. Then writes the events
 * that are no longer in the feed. */
static int refill(event_stream *stream, rl_error *err) {
  rl_event_streams *streams = stream->streams;
  bool valid = !streams->server->token_required;
  if (!valid && rl_credential_check(streams->server, &stream->credential, &valid, err) < 0) return -1;
  stream->credential_checked = true;
  stream->ended = !valid;
  if (!valid) return 0;
  pthread_mutex_lock(&streams->lock);
  bool is_behind = is_behind_feed(stream);
  pthread_mutex_unlock(&streams->lock);
  return is_behind ? write_stored_events(stream, stream->feed->source, err) : 0;
}

static void run_refill(rl_pool_task *task) {
  event_stream *stream = (event_stream *)((char *)task - offsetof(event_stream, refill_task));
  rl_error err;
  if (refill(stream, &err) == 0) return;
  stream->failed = true;
  rl_log(RL_LOG_ERROR, "the event stream of %s %lld was ended early: %s", source_name(stream->feed->source),
         (long long)stream->feed->source.id, err.message);
}

/* Writes the feed's events after last_sequence. Returns -1 if memory is exhausted. */
static int write_feed_events(event_stream *stream) {
  const event_feed *feed = stream->feed;
  while (stream->last_sequence < feed->last_sequence) {
    if (rl_http_stream_write_text(&stream->http, feed->texts[(stream->last_sequence + 1) % FEED_EVENTS], NULL) < 0) return -1;
    stream->last_sequence++;
  }
  return 0;
}

static ssize_t start_refill(event_stream *stream) {
  bool started = rl_request_pools_continue(stream->streams->server->pools, RL_POOL_CONTROL, &stream->refill_task);
  return started ? 0 : MHD_CONTENT_READER_END_OF_STREAM;
}

/* Returns true if a query is needed to find out whether the stream's credential is still valid. */
static bool must_check_credential(const event_stream *stream) {
  rl_server *server = stream->streams->server;
  return server->token_required && !stream->credential_checked && !rl_credential_is_known(server, &stream->credential);
}

/* Writes new events or a keep-alive, starts a refill, or suspends the connection if none of these is due. Returns like
 * rl_http_stream.read_callback. The caller holds the lock. */
static ssize_t write_due(event_stream *stream) {
  const event_feed *feed = stream->feed;
  int64_t now_ns = rl_monotonic_ns();
  bool has_new_events = stream->last_sequence < feed->last_sequence, keepalive = keepalive_is_due(stream, now_ns);
  /* Returns END_OF_STREAM even after a failure: MHD 0.9.75 frees a resumed connection that ended with END_WITH_ERROR only after
   * other connections have ended. */
  if (stream->ended || stream->streams->stopping || is_abandoned(stream)) return MHD_CONTENT_READER_END_OF_STREAM;
  if (!has_new_events && !feed->is_final && !keepalive) {
    stream->is_suspended = true;
    MHD_suspend_connection(stream->connection);
    return 0;
  }
  if (is_behind_feed(stream) || must_check_credential(stream)) return start_refill(stream);
  if (!has_new_events && feed->is_final) return MHD_CONTENT_READER_END_OF_STREAM;
  stream->credential_checked = false;
  stream->last_write_ns = now_ns;
  int rc = has_new_events ? write_feed_events(stream) : rl_http_stream_write_text(&stream->http, ": still here\n\n", NULL);
  return rc == 0 ? 1 : MHD_CONTENT_READER_END_WITH_ERROR;
}

static ssize_t read_events(rl_http_stream *http) {
  event_stream *stream = (event_stream *)http;
  if (stream->failed) return MHD_CONTENT_READER_END_WITH_ERROR;
  pthread_mutex_lock(&stream->streams->lock);
  ssize_t result = write_due(stream);
  pthread_mutex_unlock(&stream->streams->lock);
  return result;
}

static void close_stream(rl_http_stream *http) {
  event_stream *stream = (event_stream *)http;
  rl_event_streams *streams = stream->streams;
  pthread_mutex_lock(&streams->lock);
  LIST_REMOVE(stream, link);
  streams->count--;
  stream->feed->stream_count--;
  free_unused_feed(stream->feed);
  pthread_mutex_unlock(&streams->lock);
  free(stream);
}

/* --- opening a stream -------------------------------------------------------------------------------------------------- */

/* Returns the source's feed; adds one if there is none. A new feed is empty; its first read begins after last_sequence. Returns
 * NULL if memory is exhausted. The caller holds the lock. */
static event_feed *find_or_add_feed(rl_event_streams *streams, rl_event_source source, int64_t last_sequence) {
  event_feed *feed = find_feed(streams, source);
  if (feed != NULL) return feed;
  feed = calloc(1, sizeof *feed);
  if (feed == NULL) return NULL;
  *feed = (event_feed){.streams = streams,
                       .source = source,
                       .first_sequence = last_sequence + 1,
                       .last_sequence = last_sequence,
                       .read_task = {.run = read_feed}};
  LIST_INSERT_HEAD(&streams->feeds, feed, link);
  return feed;
}

/* Adds the stream to the list and to the source's feed. event_count: number of the source's last event. The caller holds the
 * lock. */
static int add_stream_locked(event_stream *stream, rl_event_source source, int64_t event_count, rl_error *err) {
  rl_event_streams *streams = stream->streams;
  if (streams->stopping) return rl_fail(err, RL_HTTP, 503, "The daemon is stopping.");
  if (streams->count >= streams->limit)
    return rl_fail(err, RL_LIMIT, RL_LIMIT_BUSY, "All event streams that the daemon allows are in use; try again later.");
  stream->feed = find_or_add_feed(streams, source, event_count);
  if (stream->feed == NULL) return rl_fail(err, RL_ERRNO, 0, "out of memory for an event stream");
  LIST_INSERT_HEAD(&streams->list, stream, link);
  streams->count++;
  stream->feed->stream_count++;
  if (!stream->ended) start_read(stream->feed); /* an event may have been stored since the stream's own read */
  return 0;
}

static int add_stream(event_stream *stream, rl_event_source source, int64_t event_count, rl_error *err) {
  pthread_mutex_lock(&stream->streams->lock);
  int rc = add_stream_locked(stream, source, event_count, err);
  pthread_mutex_unlock(&stream->streams->lock);
  return rc;
}

/* Writes the first batch of events and adds the stream. Fails with RL_HTTP 404 if there is no such source. */
static int begin_stream(event_stream *stream, rl_event_source source, rl_error *err) {
  int64_t event_count;
  bool is_final;
  if (rl_event_source_read(stream->streams->server->store, source, &event_count, &is_final, err) < 0) return -1;
  if (rl_http_stream_write_text(&stream->http, "retry: 2000\n\n", err) < 0) return -1;
  if (write_stored_events(stream, source, err) < 0) return -1;
  return add_stream(stream, source, event_count, err);
}

/* Opens a stream of the source's events after last_sequence. Returns NULL on failure. */
static event_stream *open_stream(rl_http_request *request, rl_event_source source, int64_t last_sequence, rl_error *err) {
  event_stream *stream = calloc(1, sizeof *stream);
  if (stream == NULL) {
    rl_fail(err, RL_ERRNO, 0, "out of memory for an event stream");
    return NULL;
  }
  *stream = (event_stream){.http = {.read_callback = read_events, .free_owner = close_stream},
                           .streams = request->server->event_streams,
                           .connection = request->connection,
                           .credential = request->credential,
                           .last_sequence = last_sequence,
                           .last_write_ns = rl_monotonic_ns(),
                           .refill_task = {.run = run_refill, .connection = request->connection}};
  if (begin_stream(stream, source, err) == 0) return stream;
  free(stream->http.bytes);
  free(stream);
  return NULL;
}

static int stream_events(rl_http_request *request, rl_event_source source, rl_error *err) {
  int64_t last_sequence = 0;
  const char *header = rl_http_request_header(request, "Last-Event-ID");
  if (header != NULL && !rl_decimal_parse(header, &last_sequence))
    return rl_http_request_fail_parameter(request, err, "Last-Event-ID", "must be the number of an event");
  event_stream *stream = open_stream(request, source, last_sequence, err);
  if (stream == NULL) return -1;
  if (stream->ended && stream->last_sequence == last_sequence) { /* no later events; 204 keeps a browser from reconnecting */
    rl_http_stream_free(&stream->http);
    return rl_reply(request, 204, rl_response_empty(), err);
  }
  struct MHD_Response *response = rl_http_stream_response(&stream->http, request, SEND_BYTES, "text/event-stream");
  if (response != NULL) {
    rl_response_add_header(response, "X-Accel-Buffering", "no");
    rl_connection_set_deadline(request->server->connections, request->tracked_connection, 0);
  }
  return rl_reply(request, 200, response, err);
}

int rl_handle_stream_job_events(rl_http_request *request, rl_error *err) {
  return stream_events(request, (rl_event_source){false, request->id}, err);
}

int rl_handle_stream_suite_run_events(rl_http_request *request, rl_error *err) {
  return stream_events(request, (rl_event_source){true, request->id}, err);
}
