/* A chunked reply (chunked_reply.h) that consists of a head, one text for each row of a query (a kernel, or a pair of kernels),
 * and a tail. A row's text is rendered only after the previous texts were sent, so that a long report is never in memory as a
 * whole. */
#ifndef RL_API_REPORT_STREAM_H
#define RL_API_REPORT_STREAM_H

#include <cjson/cJSON.h>

#include "api/chunked_reply.h"
#include "api/http_request.h"
#include "api/report_csv.h"
#include "store/store.h"

typedef struct rl_report_run {
  cJSON *row;         /* the run's row, as the store's query returns it */
  char *metrics_json; /* the run's metrics, for rl_kernel_metrics_parse */
  rl_report_view view;
} rl_report_run;

/* Fails with RL_HTTP 404 if there is no such run. */
int rl_report_run_read(rl_store *store, int64_t id, rl_report_run *run, rl_error *err);
void rl_report_run_clear(rl_report_run *run);

enum { RL_REPORT_COLUMNS = 4 };

typedef struct rl_report_stream {
  rl_report_run a, b; /* b: only for comparisons */
  rl_cursor *cursor;
  char *head;                   /* malloc'ed */
  const char *separator, *tail; /* texts between two rows, and after the last row */
  char *own_tail;               /* `tail` if it is malloc'ed, to be freed; NULL: the tail is static */
  char *substitute_row; /* first column of a row that is rendered if the query returns no row; NULL: nothing is rendered then */
  /* Returns the text of a row, malloc'ed; NULL with err on failure. Columns other than the first may be NULL. */
  char *(*render)(struct rl_report_stream *stream, const char *const columns[RL_REPORT_COLUMNS], rl_error *err);
  rl_csv_row_filter row_filter;
  bool only_verdicts;        /* JSON: omits sections, series and instructions */
  const char **metric_names; /* malloc'ed, sorted: the metrics of the raw page */
  size_t metric_count;
  rl_csv_column *raw_columns; /* columns of metric_names */
  size_t row_count;           /* number of rows rendered so far */
  enum { RL_REPORT_HEAD, RL_REPORT_ROWS, RL_REPORT_DONE } state;
  char *last_chunk;  /* the chunk that was returned last; freed when the next one is read */
  char *pending_row; /* text of the next row, whose separator was returned last */
} rl_report_stream;

rl_report_stream *rl_report_stream_new(rl_error *err);
void rl_report_stream_free(rl_report_stream *stream);
/* Returns a source that owns the stream. */
rl_chunk_source rl_report_stream_source(rl_report_stream *stream);
/* Opens a source of the run's kernels in the format of `ncu --page raw --csv`. Fails with RL_HTTP 404 if there is no such run.
 * The function is defined in report_handlers.c. */
int rl_report_raw_csv_open(rl_store *store, int64_t run, rl_chunk_source *source, rl_error *err);
/* Replies with the stream and takes ownership: *stream becomes NULL. */
int rl_report_stream_reply(rl_http_request *request, rl_report_stream **stream, const char *content_type, rl_error *err);

RL_DEFINE_CLEANUP(rl_report_stream_cleanup, rl_report_stream *, rl_report_stream_free, NULL)

#endif
