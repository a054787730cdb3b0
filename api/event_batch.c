/* Implements event_batch.h. */
#include "api/event_batch.h"

#include <stdio.h>
#include <string.h>

#include "store/suites.h"

char *rl_event_format(int64_t sequence, const char *type, const char *data) {
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  if (out == NULL) return NULL;
  fprintf(out, "id: %lld\nevent: %s\n", (long long)sequence, type);
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

static int add_event(rl_event_batch *batch, rl_cursor *cursor, const char *json, rl_error *err) {
  int64_t sequence = rl_cursor_integer(cursor, 1);
  char *text = rl_event_format(sequence, rl_cursor_text(cursor, 2), json);
  if (text == NULL) return rl_fail(err, RL_ERRNO, 0, "out of memory for events");
  batch->sequences[batch->count] = sequence;
  batch->texts[batch->count++] = text;
  batch->last_sequence = sequence;
  return 0;
}

int rl_event_source_read(rl_store *store, rl_event_source source, int64_t *event_count, bool *is_final, rl_error *err) {
  rl_job_status status;
  char state[16];
  if (source.is_suite_run) {
    if (rl_store_suite_run_state(store, source.id, state, event_count, err) < 0) return -1;
    *is_final = rl_store_suite_state_is_final(state);
    return 0;
  }
  if (rl_store_job_status(store, source.id, &status, err) < 0) return -1;
  *event_count = status.events;
  *is_final = rl_job_is_final(status.state);
  return 0;
}

/* Reads the source's state before its events. The final state and the last event are stored in one transaction, so a batch that
 * was read after a final state also has the last event. */
int rl_event_batch_read(rl_store *store, rl_event_source source, int64_t after, rl_event_batch *batch, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  rl_binding bindings[] = {{source.is_suite_run ? ":run" : ":job", RL_SQL_INTEGER, .integer = source.id},
                           {":after", RL_SQL_INTEGER, .integer = after},
                           {":limit", RL_SQL_INTEGER, .integer = RL_EVENT_BATCH_MAX}};
  int64_t event_count;
  bool is_final;
  const char *json;
  int found;
  *batch = (rl_event_batch){.last_sequence = after};
  if (rl_event_source_read(store, source, &event_count, &is_final, err) < 0) return -1;
  if (rl_store_query(store, source.is_suite_run ? RL_QUERY_SUITE_EVENTS : RL_QUERY_EVENTS, bindings, 3, &cursor, err) < 0)
    return -1;
  while ((found = rl_cursor_next(cursor, &json, err)) > 0)
    if (add_event(batch, cursor, json, err) < 0) return -1;
  if (found < 0 || batch->count == RL_EVENT_BATCH_MAX) return found;
  if (batch->last_sequence < event_count) batch->last_sequence = event_count;
  batch->is_final = is_final;
  return 0;
}

void rl_event_batch_clear(rl_event_batch *batch) {
  for (int i = 0; i < batch->count; i++) free(batch->texts[i]);
  batch->count = 0;
}
