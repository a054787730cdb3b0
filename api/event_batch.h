/* Events of a job or of a suite run, read from the store and formatted as server-sent events. */
#ifndef RL_API_EVENT_BATCH_H
#define RL_API_EVENT_BATCH_H

#include <stdbool.h>

#include "store/store.h"

enum { RL_EVENT_BATCH_MAX = 64 };

typedef struct rl_event_source { /* a job or a suite run */
  bool is_suite_run;             /* false: a job */
  int64_t id;
} rl_event_source;

typedef struct rl_event_batch {
  int count;
  int64_t sequences[RL_EVENT_BATCH_MAX]; /* numbers of the events, ascending */
  char *texts[RL_EVENT_BATCH_MAX];       /* formatted; malloc'ed */
  int64_t last_sequence; /* each event up to this number is in the batch, precedes the batch, or was deleted by retention */
  bool is_final;         /* the source has finished: no event follows last_sequence */
} rl_event_batch;

/* Sets *event_count to the number of events that the source has so far, and *is_final to true if the source has finished. Fails
 * with RL_HTTP 404 if there is no such source. */
int rl_event_source_read(rl_store *store, rl_event_source source, int64_t *event_count, bool *is_final, rl_error *err);
/* Reads the source's next events with numbers above `after`, at most RL_EVENT_BATCH_MAX. Fails with RL_HTTP 404 if there is
 * no such source. The caller clears *batch, also after a failure. */
int rl_event_batch_read(rl_store *store, rl_event_source source, int64_t after, rl_event_batch *batch, rl_error *err);
void rl_event_batch_clear(rl_event_batch *batch);

/* Returns one event as text, "id: 7\nevent: state\ndata: {...}\n\n", malloc'ed; each line of data becomes one data field.
 * Returns NULL if memory is exhausted. */
char *rl_event_format(int64_t sequence, const char *type, const char *data);

#endif
