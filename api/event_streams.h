/* Streams of server-sent events, one for each client that listens to a job. A stream's connection is suspended. It is resumed
 * when its job has a new event, and after 15 s without one to send a comment, which keeps proxies from closing the connection and
 * reveals clients that are gone. A stream whose token was revoked or whose login session ended is closed at its next resumption.
 * Thread-safe. */
#ifndef RL_API_EVENT_STREAMS_H
#define RL_API_EVENT_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rl_event_streams rl_event_streams;

rl_event_streams *rl_event_streams_new(int64_t limit); /* at most limit streams; NULL if memory is exhausted */
void rl_event_streams_free(rl_event_streams *streams);
/* Resumes the streams of this job. It is the callback for rl_queue_set_listener; context: the rl_event_streams. */
void rl_event_streams_notify(void *context, int64_t job_id);
/* Resumes the streams that a keep-alive comment is due for. */
void rl_event_streams_tick(rl_event_streams *streams, int64_t now_ns);
/* Ends every stream and refuses new ones. */
void rl_event_streams_stop(rl_event_streams *streams);
int64_t rl_event_streams_count(rl_event_streams *streams);

/* Returns one event as text, "id: 7\nevent: state\ndata: {...}\n\n", malloc'ed; each line of data gets a data field of its own.
 * NULL if memory is exhausted. */
char *rl_event_format(int64_t sequence, const char *type, const char *data);

#endif
