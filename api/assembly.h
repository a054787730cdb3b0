/* An answer about runs that has one text for each row of a query, made and handed out a row at a time. */
#ifndef RL_API_ASSEMBLY_H
#define RL_API_ASSEMBLY_H

#include "api/internal.h"
#include "api/report.h"

typedef struct rl_report_run {
  cJSON *facts;
  char *numbers; /* JSON text */
  rl_view view;
} rl_report_run;

/* RL_HTTP 404 when there is no such run. */
int rl_report_run_read(rl_store *store, int64_t id, rl_report_run *run, rl_error *err);
void rl_report_run_clear(rl_report_run *run);

enum { RL_ASSEMBLY_COLUMNS = 4 };

typedef struct rl_assembly {
  rl_report_run a, b; /* b: of a comparison */
  rl_cursor *cursor;
  char *head;                   /* the first piece */
  const char *separator, *tail; /* between the rows' texts, and after them */
  char *standin;                /* first column of a row for a cursor that has none; NULL: no row then */
  /* The text of a row, malloc'ed; NULL and err when it can't be made. Columns behind the first may be NULL. */
  char *(*render)(struct rl_assembly *all, const char *const columns[RL_ASSEMBLY_COLUMNS], rl_error *err);
  int details; /* for CSV: rl_details, and the columns of the raw page */
  char **names;
  size_t name_count;
  size_t rows;
  enum { RL_ASSEMBLY_HEAD, RL_ASSEMBLY_ROWS, RL_ASSEMBLY_DONE } next;
  char *text, *pending; /* the piece that was handed out; one that waits behind its separator */
} rl_assembly;

rl_assembly *rl_assembly_new(rl_error *err);
void rl_assembly_free(rl_assembly *all);
/* Answer with it, and take it. */
int rl_assembly_reply(rl_call *call, rl_assembly **all, const char *type, rl_error *err);

RL_DEFINE_CLEANUP(rl_assembly_cleanup, rl_assembly *, rl_assembly_free, NULL)

#endif
