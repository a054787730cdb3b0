/* Implements json_rows.h with a chunk source (chunked_reply.h). Its chunks are the head, the rows separated by commas, and the
 * tail. */
#include "api/json_rows.h"

#include <stdio.h>
#include <string.h>

#include "api/chunked_reply.h"
#include "api/http_syntax.h"

typedef struct json_rows {
  rl_cursor *cursor;
  int64_t limit, count, last_id;
  char list_letter;
  enum { HEAD, ROWS, DONE } state;
  const char *pending_row; /* row that is sent next, because the comma before it was already sent; NULL: none */
  char tail[64];
} json_rows;

void rl_page_cursor_format(char list_letter, int64_t id, char *text) {
  snprintf(text, RL_PAGE_CURSOR_SIZE, "%c%lld", list_letter, (long long)id);
}

bool rl_page_cursor_parse(char list_letter, const char *text, int64_t *id) {
  return text[0] == list_letter && rl_decimal_parse(text + 1, id) && *id > 0;
}

static const char *make_tail(json_rows *rows, bool truncated) {
  char cursor[RL_PAGE_CURSOR_SIZE];
  if (rows->limit == 0) return "]}";
  if (rows->list_letter == 0) return truncated ? "],\"truncated\":true}" : "],\"truncated\":false}";
  if (!truncated) return "],\"next_cursor\":null}";
  rl_page_cursor_format(rows->list_letter, rows->last_id, cursor);
  snprintf(rows->tail, sizeof rows->tail, "],\"next_cursor\":\"%s\"}", cursor);
  return rows->tail;
}

static int next_row(json_rows *rows, rl_chunk *chunk, rl_error *err) {
  if (rows->pending_row != NULL) {
    *chunk = rl_chunk_of_text(rl_take_ownership(&rows->pending_row));
    return 1;
  }
  int found = rl_cursor_next(rows->cursor, &rows->pending_row, err);
  if (found < 0) return -1;
  if (found == 0 || (rows->limit > 0 && rows->count == rows->limit)) {
    rows->state = DONE;
    *chunk = rl_chunk_of_text(make_tail(rows, found > 0));
    return 1;
  }
  if (rows->list_letter != 0) rows->last_id = rl_cursor_integer(rows->cursor, 1);
  *chunk = rl_chunk_of_text(rows->count++ > 0 ? "," : rl_take_ownership(&rows->pending_row));
  return 1;
}

static int next_chunk(void *context, rl_chunk *chunk, rl_error *err) {
  json_rows *rows = context;
  if (rows->state == DONE) return 0;
  if (rows->state == ROWS) return next_row(rows, chunk, err);
  rows->state = ROWS;
  *chunk = rl_chunk_of_text("{\"items\":[");
  return 1;
}

static void free_rows(void *context) {
  json_rows *rows = context;
  rl_cursor_close(rows->cursor);
  free(rows);
}

int rl_reply_rows(rl_http_request *request, rl_cursor *cursor, int64_t limit, char list_letter, rl_error *err) {
  json_rows *rows = calloc(1, sizeof *rows);
  if (rows == NULL) {
    rl_cursor_close(cursor);
    return rl_fail(err, RL_ERRNO, 0, "out of memory for rows");
  }
  *rows = (json_rows){.cursor = cursor, .limit = limit, .list_letter = list_letter};
  return rl_reply_chunks(request, &(rl_chunk_source){next_chunk, free_rows, rows}, "application/json", err);
}
