/* Rows of the store as one JSON document. What fits the first buffer is sent whole, with its length, and its cursor is closed
 * before the answer starts; more is streamed, a buffer at a time, and the cursor goes with the response. */
#include <stdio.h>
#include <string.h>

#include "api/internal.h"
#include "base/log.h"

enum { FILL = 64 << 10, STREAMING_MOST = 16 };

typedef struct rows {
  rl_cursor *cursor; /* NULL when all has been read */
  rl_server *server; /* where a streamed answer is counted; NULL before it is one */
  int64_t limit, count, last_id;
  char letter;
  char *text;
  size_t used, sent, capacity;
} rows;

static int append(rows *all, const char *text, rl_error *err) {
  size_t length = strlen(text);
  if (all->used + length + 1 > all->capacity) {
    size_t capacity = (all->used + length + 1) * 2;
    char *grown = realloc(all->text, capacity);
    if (grown == NULL) return rl_fail(err, RL_SYS, 0, "out of memory for rows");
    all->text = grown;
    all->capacity = capacity;
  }
  memcpy(all->text + all->used, text, length + 1);
  all->used += length;
  return 0;
}

static void let_go(rows *all) {
  if (all->cursor != NULL && all->server != NULL) atomic_fetch_sub(&all->server->streaming, 1);
  rl_cursor_close(all->cursor);
  all->cursor = NULL;
}

static int finish(rows *all, bool more, rl_error *err) {
  char tail[64], cursor[RL_CURSOR_SIZE];
  let_go(all);
  if (all->limit == 0) return append(all, "]}", err);
  if (all->letter == 0) return append(all, more ? "],\"truncated\":true}" : "],\"truncated\":false}", err);
  if (!more) return append(all, "],\"next_cursor\":null}", err);
  rl_page_cursor_format(all->letter, all->last_id, cursor);
  snprintf(tail, sizeof tail, "],\"next_cursor\":\"%s\"}", cursor);
  return append(all, tail, err);
}

/* Read rows until the buffer has FILL bytes or all has been read. */
static int fill(rows *all, rl_error *err) {
  while (all->cursor != NULL && all->used < FILL) {
    const char *json;
    int rc = rl_cursor_next(all->cursor, &json, err);
    if (rc < 0) return -1;
    if (rc == 0 || (all->limit > 0 && all->count == all->limit)) {
      if (finish(all, rc > 0, err) < 0) return -1;
      break;
    }
    if (all->letter != 0) all->last_id = rl_cursor_integer(all->cursor, 1);
    if ((all->count++ > 0 && append(all, ",", err) < 0) || append(all, json, err) < 0) return -1;
  }
  return 0;
}

static ssize_t read_rows(void *context, uint64_t position, char *buffer, size_t room) {
  rows *all = context;
  (void)position;
  if (all->sent == all->used) {
    rl_error err;
    all->sent = all->used = 0;
    if (all->cursor == NULL) return MHD_CONTENT_READER_END_OF_STREAM;
    if (fill(all, &err) < 0) {
      rl_log(RL_LOG_ERROR, "rows: %s", err.message);
      return MHD_CONTENT_READER_END_WITH_ERROR;
    }
  }
  size_t part = all->used - all->sent < room ? all->used - all->sent : room;
  memcpy(buffer, all->text + all->sent, part);
  all->sent += part;
  return (ssize_t)part;
}

static void rows_free(void *context) {
  rows *all = context;
  let_go(all);
  free(all->text);
  free(all);
}

int rl_reply_rows(rl_call *call, rl_cursor *cursor, int64_t limit, char letter, rl_error *err) {
  rows *all = calloc(1, sizeof *all);
  if (all == NULL) {
    rl_cursor_close(cursor);
    return rl_fail(err, RL_SYS, 0, "out of memory for rows");
  }
  *all = (rows){.cursor = cursor, .limit = limit, .letter = letter};
  if (append(all, "{\"items\":[", err) < 0 || fill(all, err) < 0) {
    rows_free(all);
    return -1;
  }
  if (all->cursor == NULL) {
    char *text = rl_steal(&all->text);
    rows_free(all);
    return rl_reply_text(call, 200, text, "application/json", err);
  }
  all->server = call->server;
  if (atomic_fetch_add(&call->server->streaming, 1) >= STREAMING_MOST) {
    rows_free(all);
    return rl_fail(err, RL_HTTP, 503, "As many large answers as the daemon takes are being read; ask again later.");
  }
  struct MHD_Response *response =
      MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16 << 10, read_rows, all, rows_free);
  if (response == NULL) rows_free(all);
  else rl_header(response, "Content-Type", "application/json");
  return rl_reply(call, 200, response, err);
}
