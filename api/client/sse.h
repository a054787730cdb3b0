/* Server-sent events, decoded as they come in (WHATWG HTML, section 9.2.6). Pure: no input or output of its own. */
#ifndef RL_CLIENT_SSE_H
#define RL_CLIENT_SSE_H

#include <stdbool.h>
#include <stddef.h>

enum { RL_SSE_TYPE_SIZE = 32, RL_SSE_ID_SIZE = 24, RL_SSE_LINE_SIZE = 8192 };

typedef struct rl_sse {
  /* Called for each event with data; false stops the stream. */
  bool (*heard)(void *context, const char *type, const char *data);
  void *context;
  char id[RL_SSE_ID_SIZE]; /* of the last event: what Last-Event-ID says after a broken connection */
  bool stopped;
  /* the event being put together */
  char type[RL_SSE_TYPE_SIZE], data[RL_SSE_LINE_SIZE], line[RL_SSE_LINE_SIZE];
  size_t data_length, line_length;
  bool too_long; /* the line or the data did not fit: the event is dropped */
} rl_sse;        /* zeroed but for heard, context and id */

/* Take the next bytes of the stream; false once `heard` has said to stop. */
bool rl_sse_take(rl_sse *parser, const char *bytes, size_t count);
/* Forget the event that a broken connection left half read. */
void rl_sse_reset(rl_sse *parser);

#endif
