/* An answer whose text is made while its client reads. What is said is sent; when all of it is, more is asked for. The owner has
 * an rl_stream as its first member. */
#ifndef RL_API_STREAM_H
#define RL_API_STREAM_H

#include "api/internal.h"

typedef struct rl_stream rl_stream;

struct rl_stream {
  /* Say more. 0: that was done, or the connection is suspended; else how the answer ends (MHD_CONTENT_READER_END_*). */
  ssize_t (*more)(rl_stream *stream);
  void (*close)(rl_stream *stream); /* frees the owner; called when the response goes, or could not be made */
  rl_connections *connections;
  rl_connection *record;
  char *text;
  size_t used, sent, capacity;
};

int rl_stream_say(rl_stream *stream, const char *text, rl_error *err);
/* With more and close set; takes the stream. NULL when memory is out. block: bytes that are asked for at once. */
struct MHD_Response *rl_stream_response(rl_stream *stream, rl_call *call, size_t block, const char *type);
/* A stream of which no response was made. */
void rl_stream_free(rl_stream *stream);

#endif
