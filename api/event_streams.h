/* Streams of server-sent events: one for each client that follows a job or a suite run. All streams of the same job or suite run
 * share a feed, so that each new event is read and formatted once, in RL_POOL_CONTROL. If the next event of a stream is no longer
 * in the feed, a task of the same pool reads it for this stream alone.
 *
 * The connection of a stream that has nothing to send is suspended. It is resumed when the feed has a new event, when the client
 * has disconnected, and after 15 s without an event. In the last case the stream sends a comment, so that proxies don't close the
 * connection. A stream whose token was revoked or whose login session has ended is closed at its next resumption. Thread-safe. */
#ifndef RL_API_EVENT_STREAMS_H
#define RL_API_EVENT_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rl_event_streams rl_event_streams;
typedef struct rl_server rl_server;

/* Makes the list of a server's streams, which is empty at first. limit: maximum number of streams. The server's pools must be
 * stopped before the list is freed. Returns NULL if memory is exhausted. */
rl_event_streams *rl_event_streams_new(rl_server *server, int64_t limit);
void rl_event_streams_free(rl_event_streams *streams);
/* Starts the read of the job's new events into its feed. Callback for rl_queue_set_listener; context: the rl_event_streams. */
void rl_event_streams_notify(void *context, int64_t job_id);
/* Starts the read of the suite run's new events into its feed. Callback for rl_suite_runner_set_listener. */
void rl_event_streams_notify_suite_run(void *context, int64_t run_id);
/* Called once per second. Resumes streams that have sent nothing for 15 s, so that they send a comment. Repeats failed reads. */
void rl_event_streams_tick(rl_event_streams *streams, int64_t now_ns);
/* Ends the streams whose clients have disconnected (rl_connection_is_abandoned). */
void rl_event_streams_end_abandoned(rl_event_streams *streams);
/* Ends every stream and refuses new ones. */
void rl_event_streams_stop(rl_event_streams *streams);
int64_t rl_event_streams_count(rl_event_streams *streams);

#endif
