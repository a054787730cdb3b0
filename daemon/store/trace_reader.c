/* Reads the activity rows of a pass in one read transaction. Rows that differ only in kind, times, correlation and step share
 * an entry of the table activity_dictionary, which has their other values. An entry is read when a row refers to it and kept in a
 * cache of fixed size, so that memory does not grow with the trace. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/store_internal.h"

enum { CACHED_ENTRIES = 8192, MAX_CACHED_NAME_LENGTH = 1024 /* CACHED_ENTRIES such names take 8 MiB */ };

typedef struct cached_entry {
  int64_t id_plus_one; /* id of the entry plus 1; 0: no entry, or an entry whose name is too long to be cached */
  rl_activity_row shared_values;
  char *name;
} cached_entry;

struct rl_trace_reader {
  rl_cursor *cursor; /* has no query; reserves its connection for this reader */
  sqlite3_stmt *rows;
  int64_t pass;
  cached_entry entries[CACHED_ENTRIES]; /* indexed by the low bits of the entry's id */
};

RL_DEFINE_CLEANUP(reader_cleanup, rl_trace_reader *, rl_trace_reader_close, NULL)

int rl_trace_reader_open(rl_store *store, int64_t run, rl_trace_reader **opened, rl_error *err) {
  RL_CLEANUP(reader_cleanup) rl_trace_reader *reader = calloc(1, sizeof *reader);
  if (reader == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a trace");
  reader->cursor = rl_store_acquire_reader(store, err);
  if (reader->cursor == NULL) return -1;
  rl_db *db = rl_cursor_connection(reader->cursor);
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *pass = NULL;
  if (rl_db_execute(db, "BEGIN", "read a trace", err) < 0) return -1;
  int found = rl_db_query_row(db, err, "trace_pass", &pass, RL_BIND_INTEGER(":run", run));
  if (found < 0) return -1;
  if (found > 0) {
    reader->pass = sqlite3_column_int64(pass, 0);
    if (rl_db_prepare(db, "trace_rows", RL_BINDINGS(RL_BIND_INTEGER(":pass", reader->pass)), &reader->rows, err) < 0) return -1;
  }
  *opened = rl_take_ownership(&reader);
  return 0;
}

void rl_trace_reader_close(rl_trace_reader *reader) {
  if (reader == NULL) return;
  if (reader->cursor != NULL) {
    sqlite3_reset(reader->rows);
    rl_db_execute(rl_cursor_connection(reader->cursor), "ROLLBACK", "end reading a trace", NULL);
    rl_cursor_close(reader->cursor);
  }
  for (size_t i = 0; i < CACHED_ENTRIES; i++) free(reader->entries[i].name);
  free(reader);
}

static uint32_t column(sqlite3_stmt *row, int number) { return (uint32_t)sqlite3_column_int64(row, number); }

/* Returns the values of an entry. row: a row of the statement trace_values. */
static rl_activity_row values_of(sqlite3_stmt *row) {
  return (rl_activity_row){.name = column(row, 0),
                           .stream = column(row, 1),
                           .graph_node = column(row, 2),
                           .grid = {column(row, 3), column(row, 4), column(row, 5)},
                           .block = {column(row, 6), column(row, 7), column(row, 8)},
                           .registers = column(row, 9),
                           .static_shared_bytes = column(row, 10),
                           .dynamic_shared_bytes = column(row, 11),
                           .bytes = (uint64_t)sqlite3_column_int64(row, 12),
                           .process = column(row, 13),
                           .thread = column(row, 14),
                           .context = column(row, 15),
                           .device = (uint16_t)column(row, 16),
                           .source_memory = (uint8_t)column(row, 17),
                           .destination_memory = (uint8_t)column(row, 18),
                           .unknown = (uint8_t)column(row, 19)};
}

/* Reads an entry of the pass into the slot *cached. */
static int read_entry(rl_trace_reader *reader, int64_t entry_id, cached_entry *cached, rl_error *err) {
  rl_db *db = rl_cursor_connection(reader->cursor);
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  cached->id_plus_one = 0;
  free(rl_take_ownership(&cached->name));
  int found =
      rl_db_query_row(db, err, "trace_values", &row, RL_BIND_INTEGER(":pass", reader->pass), RL_BIND_INTEGER(":entry", entry_id));
  if (found < 0) return -1;
  if (found == 0)
    return rl_fail(err, RL_STORAGE, RL_STORAGE_INTERNAL, "pass %lld has no entry %lld", (long long)reader->pass,
                   (long long)entry_id);
  cached->name = strdup((const char *)sqlite3_column_text(row, 20));
  if (cached->name == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a trace");
  cached->shared_values = values_of(row);
  if (strlen(cached->name) <= MAX_CACHED_NAME_LENGTH) cached->id_plus_one = entry_id + 1;
  return 0;
}

int rl_trace_reader_next(rl_trace_reader *reader, rl_trace_row *row, rl_error *err) {
  if (reader->rows == NULL) return 0;
  int found = rl_db_step(rl_cursor_connection(reader->cursor), reader->rows, err);
  if (found <= 0) {
    reader->rows = NULL; /* stepping it again would restart the statement */
    return found;
  }
  const int64_t entry_id = sqlite3_column_int64(reader->rows, 5), start_ns = sqlite3_column_int64(reader->rows, 1);
  cached_entry *cached = &reader->entries[entry_id % CACHED_ENTRIES];
  if (cached->id_plus_one != entry_id + 1 && read_entry(reader, entry_id, cached, err) < 0) return -1;
  *row = (rl_trace_row){.values = cached->shared_values, .name = cached->name};
  row->values.kind = column(reader->rows, 0);
  row->values.start_ns = start_ns;
  row->values.end_ns = start_ns + sqlite3_column_int64(reader->rows, 2);
  row->values.correlation = column(reader->rows, 3);
  row->values.step = column(reader->rows, 4);
  return 1;
}
