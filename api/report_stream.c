/* Implements report_stream.h with a chunk source (chunked_reply.h). Its chunks are the head, the rendered rows, and the tail. The
 * source owns the cursor and the runs. */
#include "api/report_stream.h"

#include <string.h>

static char *copy_text(const char *text) { return text != NULL ? strdup(text) : NULL; }

int rl_report_run_read(rl_store *store, int64_t id, rl_report_run *run, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  rl_binding binding = {":run", RL_SQL_INTEGER, .integer = id};
  const char *json;
  if (rl_store_query(store, RL_QUERY_REPORT_RUN, &binding, 1, &cursor, err) < 0) return -1;
  int found = rl_cursor_next(cursor, &json, err);
  if (found < 0) return -1;
  if (found == 0) return rl_fail(err, RL_HTTP, 404, "Run %lld not found.", (long long)id);
  *run = (rl_report_run){
      .row = cJSON_Parse(json),
      .metrics_json = copy_text(rl_cursor_text(cursor, 1)),
      .view = rl_report_view_make(rl_cursor_text(cursor, 2), rl_cursor_text(cursor, 3), rl_cursor_integer(cursor, 4) != 0)};
  if (run->row != NULL && run->metrics_json != NULL) return 0;
  rl_report_run_clear(run);
  return rl_fail(err, RL_ERRNO, 0, "out of memory for a run");
}

void rl_report_run_clear(rl_report_run *run) {
  cJSON_Delete(run->row);
  free(run->metrics_json);
  *run = (rl_report_run){0};
}

rl_report_stream *rl_report_stream_new(rl_error *err) {
  rl_report_stream *stream = calloc(1, sizeof *stream);
  if (stream == NULL) rl_fail(err, RL_ERRNO, 0, "out of memory for a report");
  return stream;
}

void rl_report_stream_free(rl_report_stream *stream) {
  rl_cursor_close(stream->cursor);
  rl_report_run_clear(&stream->a);
  rl_report_run_clear(&stream->b);
  for (size_t i = 0; i < stream->metric_count; i++) free((char *)stream->metric_names[i]);
  free(stream->metric_names);
  free(stream->raw_columns);
  free(stream->head);
  free(stream->own_tail);
  free(stream->substitute_row);
  free(stream->last_chunk);
  free(stream->pending_row);
  free(stream);
}

/* Returns `text` as the next chunk. The stream frees it when the following chunk is read. */
static int return_chunk(rl_report_stream *stream, char *text, rl_chunk *chunk) {
  free(stream->last_chunk);
  stream->last_chunk = text;
  *chunk = rl_chunk_of_text(text);
  return 1;
}

static int next_row(rl_report_stream *stream, const char *columns[RL_REPORT_COLUMNS], rl_error *err) {
  int found = rl_cursor_next(stream->cursor, &columns[0], err);
  for (int i = 1; found > 0 && i < RL_REPORT_COLUMNS; i++) columns[i] = rl_cursor_text(stream->cursor, i);
  if (found != 0 || stream->row_count > 0 || stream->substitute_row == NULL) return found;
  columns[0] = stream->substitute_row;
  for (int i = 1; i < RL_REPORT_COLUMNS; i++) columns[i] = "[]";
  return 1;
}

static int next_row_chunk(rl_report_stream *stream, rl_chunk *chunk, rl_error *err) {
  const char *columns[RL_REPORT_COLUMNS];
  if (stream->pending_row != NULL) return return_chunk(stream, rl_take_ownership(&stream->pending_row), chunk);
  int found = next_row(stream, columns, err);
  if (found < 0) return -1;
  if (found == 0) {
    stream->state = RL_REPORT_DONE;
    *chunk = rl_chunk_of_text(stream->tail);
    return 1;
  }
  char *text = stream->render(stream, columns, err);
  if (text == NULL) return -1;
  if (stream->row_count++ == 0) return return_chunk(stream, text, chunk);
  stream->pending_row = text;
  *chunk = rl_chunk_of_text(stream->separator);
  return 1;
}

static int next_chunk(void *context, rl_chunk *chunk, rl_error *err) {
  rl_report_stream *stream = context;
  if (stream->state == RL_REPORT_DONE) return 0;
  if (stream->state == RL_REPORT_ROWS) return next_row_chunk(stream, chunk, err);
  stream->state = RL_REPORT_ROWS;
  return return_chunk(stream, rl_take_ownership(&stream->head), chunk);
}

static void free_stream(void *context) { rl_report_stream_free(context); }

rl_chunk_source rl_report_stream_source(rl_report_stream *stream) { return (rl_chunk_source){next_chunk, free_stream, stream}; }

int rl_report_stream_reply(rl_http_request *request, rl_report_stream **stream, const char *content_type, rl_error *err) {
  const rl_chunk_source source = rl_report_stream_source(rl_take_ownership(stream));
  return rl_reply_chunks(request, &source, content_type, err);
}
