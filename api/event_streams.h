/* Streams of server-sent events, one for each client that follows a job or a suite run. The streams of one share a feed: each new
 * event is read and formatted once, by a thread of RL_POOL_CONTROL. A stream whose next event is no longer in the feed reads the
 * store itself, in the same pool. A stream's connection is suspended while it has nothing to send. It is resumed when the feed
 * has a new event, after 15 s without an event to send a keep-alive comment, which keeps proxies from closing the connection, and
 * when its client has disconnected. A stream whose token was revoked or whose login session ended is closed at its next
 * resumption. Thread-safe. */
#ifndef RL_API_EVENT_STREAMS_H
#define RL_API_EVENT_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rl_event_streams rl_event_streams;
typedef struct rl_server rl_server;

/* At most limit streams. The server's pools must be stopped before the streams are freed. NULL if memory is exhausted. */
rl_event_streams *rl_event_streams_new(rl_server *server, int64_t limit);
void rl_event_streams_free(rl_event_streams *streams);
/* Starts the read of the job's new events into its feed. Callback for rl_queue_set_listener; context: the rl_event_streams. */
void rl_event_streams_notify(void *context, int64_t job_id);
/* The same for suite runs and rl_suite_runner_set_listener. */
void rl_event_streams_notify_suite_run(void *context, int64_t run_id);
/* Called each second: resumes the streams that have been silent for 15 s, so that they send a keep-alive comment, and repeats
 * failed reads. */
void rl_event_streams_tick(rl_event_streams *streams, int64_t now_ns);
/* Ends the streams whose clients have disconnected (rl_connection_is_abandoned). */
void rl_event_streams_end_abandoned(rl_event_streams *streams);
/* Ends every stream and refuses new ones. */
void rl_event_streams_stop(rl_event_streams *streams);
int64_t rl_event_streams_count(rl_event_streams *streams);

#endif
