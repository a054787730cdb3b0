/* Rows of the store as one JSON document. */
#include <stdio.h>
#include <string.h>

#include "api/internal.h"

typedef struct rows_form {
  const char *head, *all, *whole, *more; /* all: the tail where no limit was asked for; whole, more: where one was */
} rows_form;

static const rows_form list = {"{\"items\":[", "]}", "],\"truncated\":false}", "],\"truncated\":true}"};
static const rows_form trace = {"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", "]}", "],\"otherData\":{\"truncated\":false}}",
                                "],\"otherData\":{\"truncated\":true}}"};

typedef struct rows {
  const rows_form *form;
  rl_cursor *cursor;
  int64_t limit, count, last_id;
  char letter;
  enum { HEAD, ROWS, DONE } next;
  const char *row; /* that follows its comma */
  char tail[64];
} rows;

static const char *tail(rows *all, bool more) {
  char cursor[RL_CURSOR_SIZE];
  all->next = DONE;
  if (all->limit == 0) return all->form->all;
  if (all->letter == 0) return more ? all->form->more : all->form->whole;
  if (!more) return "],\"next_cursor\":null}";
  rl_page_cursor_format(all->letter, all->last_id, cursor);
  snprintf(all->tail, sizeof all->tail, "],\"next_cursor\":\"%s\"}", cursor);
  return all->tail;
}

static int next_row(rows *all, const char **text, rl_error *err) {
  *text = rl_steal(&all->row);
  if (*text != NULL) return 1;
  int rc = rl_cursor_next(all->cursor, &all->row, err);
  if (rc < 0) return -1;
  if (rc == 0 || (all->limit > 0 && all->count == all->limit)) {
    *text = tail(all, rc > 0);
    return 1;
  }
  if (all->letter != 0) all->last_id = rl_cursor_integer(all->cursor, 1);
  *text = all->count++ > 0 ? "," : rl_steal(&all->row);
  return 1;
}

static int next_piece(void *context, const char **text, rl_error *err) {
  rows *all = context;
  if (all->next == DONE) return 0;
  if (all->next == ROWS) return next_row(all, text, err);
  all->next = ROWS;
  *text = all->form->head;
  return 1;
}

static void rows_free(void *context) {
  rows *all = context;
  rl_cursor_close(all->cursor);
  free(all);
}

static int reply(rl_call *call, const rows_form *form, rl_cursor *cursor, int64_t limit, char letter, rl_error *err) {
  rows *all = calloc(1, sizeof *all);
  if (all == NULL) {
    rl_cursor_close(cursor);
    return rl_fail(err, RL_SYS, 0, "out of memory for rows");
  }
  *all = (rows){.form = form, .cursor = cursor, .limit = limit, .letter = letter};
  return rl_reply_pieces(call, &(rl_pieces){next_piece, rows_free, all}, "application/json", err);
}

int rl_reply_rows(rl_call *call, rl_cursor *cursor, int64_t limit, char letter, rl_error *err) {
  return reply(call, &list, cursor, limit, letter, err);
}

int rl_reply_trace(rl_call *call, rl_cursor *cursor, int64_t limit, rl_error *err) {
  return reply(call, &trace, cursor, limit, 0, err);
}
