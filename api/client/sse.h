/* A parser of server-sent events (WHATWG HTML, section 9.2.6). It performs no I/O. */
#ifndef RL_CLIENT_SSE_H
#define RL_CLIENT_SSE_H

#include <stdbool.h>
#include <stddef.h>

enum { RL_SSE_TYPE_SIZE = 32, RL_SSE_ID_SIZE = 24, RL_SSE_LINE_SIZE = 8192 };

typedef struct rl_sse {
  /* Called for each event with data. Returns false to stop the stream. */
  bool (*on_event)(void *context, const char *type, const char *data);
  void *context;
  char id[RL_SSE_ID_SIZE]; /* id of the last event, for Last-Event-ID */
  bool stopped;
  /* The event and the line that have not been received completely. */
  char type[RL_SSE_TYPE_SIZE], data[RL_SSE_LINE_SIZE], line[RL_SSE_LINE_SIZE];
  size_t data_length, line_length;
  bool too_long; /* the event does not fit into `data`, or one of its lines into `line`; it will be dropped */
} rl_sse;        /* the caller sets on_event, context and id, and zeroes the rest */

/* Parses the next bytes of the stream. Returns false after on_event has returned false. */
bool rl_sse_parse(rl_sse *parser, const char *bytes, size_t count);
/* Discards an incomplete event after a broken connection. */
void rl_sse_reset(rl_sse *parser);

#endif
