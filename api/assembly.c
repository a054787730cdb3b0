#include "api/assembly.h"

#include <string.h>

static char *copied(const char *text) { return text != NULL ? strdup(text) : NULL; }

int rl_report_run_read(rl_store *store, int64_t id, rl_report_run *run, rl_error *err) {
  rl_auto(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  rl_binding binding = {":run", RL_BIND_INT, .integer = id};
  const char *json;
  if (rl_store_query(store, RL_QUERY_REPORT_RUN, &binding, 1, &cursor, err) < 0) return -1;
  int rc = rl_cursor_next(cursor, &json, err);
  if (rc < 0) return -1;
  if (rc == 0) return rl_fail(err, RL_HTTP, 404, "There is no run %lld.", (long long)id);
  *run = (rl_report_run){.facts = cJSON_Parse(json),
                         .numbers = copied(rl_cursor_text(cursor, 1)),
                         .view = rl_view_of(rl_cursor_text(cursor, 2), rl_cursor_text(cursor, 3))};
  if (run->facts != NULL && run->numbers != NULL) return 0;
  rl_report_run_clear(run);
  return rl_fail(err, RL_SYS, 0, "out of memory for a run");
}

void rl_report_run_clear(rl_report_run *run) {
  cJSON_Delete(run->facts);
  free(run->numbers);
  *run = (rl_report_run){0};
}

rl_assembly *rl_assembly_new(rl_error *err) {
  rl_assembly *all = calloc(1, sizeof *all);
  if (all == NULL) rl_fail(err, RL_SYS, 0, "out of memory for a report");
  return all;
}

void rl_assembly_free(rl_assembly *all) {
  rl_cursor_close(all->cursor);
  rl_report_run_clear(&all->a);
  rl_report_run_clear(&all->b);
  for (size_t i = 0; i < all->name_count; i++) free(all->names[i]);
  free(all->names);
  free(all->head);
  free(all->standin);
  free(all->text);
  free(all->pending);
  free(all);
}

static int hand_out(rl_assembly *all, char *text, const char **piece) {
  free(all->text);
  *piece = all->text = text;
  return 1;
}

static int next_row(rl_assembly *all, const char *columns[RL_ASSEMBLY_COLUMNS], rl_error *err) {
  int rc = rl_cursor_next(all->cursor, &columns[0], err);
  for (int i = 1; rc > 0 && i < RL_ASSEMBLY_COLUMNS; i++) columns[i] = rl_cursor_text(all->cursor, i);
  if (rc != 0 || all->rows > 0 || all->standin == NULL) return rc;
  columns[0] = all->standin;
  for (int i = 1; i < RL_ASSEMBLY_COLUMNS; i++) columns[i] = "[]";
  return 1;
}

static int next_text(rl_assembly *all, const char **piece, rl_error *err) {
  const char *columns[RL_ASSEMBLY_COLUMNS];
  if (all->pending != NULL) return hand_out(all, rl_steal(&all->pending), piece);
  int rc = next_row(all, columns, err);
  if (rc < 0) return -1;
  if (rc == 0) {
    all->next = RL_ASSEMBLY_DONE;
    *piece = all->tail;
    return 1;
  }
  char *text = all->render(all, columns, err);
  if (text == NULL) return -1;
  if (all->rows++ == 0) return hand_out(all, text, piece);
  all->pending = text;
  *piece = all->separator;
  return 1;
}

static int next_piece(void *context, const char **piece, rl_error *err) {
  rl_assembly *all = context;
  if (all->next == RL_ASSEMBLY_DONE) return 0;
  if (all->next == RL_ASSEMBLY_ROWS) return next_text(all, piece, err);
  all->next = RL_ASSEMBLY_ROWS;
  return hand_out(all, rl_steal(&all->head), piece);
}

static void close_assembly(void *context) { rl_assembly_free(context); }

int rl_assembly_reply(rl_call *call, rl_assembly **all, const char *type, rl_error *err) {
  return rl_reply_pieces(call, &(rl_pieces){next_piece, close_assembly, rl_steal(all)}, type, err);
}
