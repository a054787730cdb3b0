/* Server-sent events: each listener is a suspended connection that is woken when its job has a new event, and every 15 s to
 * send a comment, which keeps middle boxes content and finds listeners that went away. A listener whose token is revoked or whose
 * session ends is told nothing more: its stream ends when it would have been woken. Thread-safe. */
#ifndef RL_API_EVENTS_H
#define RL_API_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rl_events rl_events;

rl_events *rl_events_new(int64_t listener_limit); /* NULL when memory is out */
void rl_events_free(rl_events *events);
/* rl_queue_set_listener's callback; context is the rl_events. */
void rl_events_heard(void *context, int64_t job_id);
/* Wake who has been silent for 15 s. */
void rl_events_tick(rl_events *events, int64_t now_ns);
/* End every stream; no new ones. */
void rl_events_stop(rl_events *events);
int64_t rl_events_listeners(rl_events *events);

/* One event as text: "id: 7\nevent: state\ndata: {...}\n\n"; a line break in data starts a new data line.
 * malloc'ed; NULL when memory is out. */
char *rl_event_format(int64_t seq, const char *type, const char *data);

#endif
