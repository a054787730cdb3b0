/* Wraps sqlite3: prepares statements by name, binds parameters, and converts result codes to errors with advice. */
#include "store/db.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/stop_signal.h"
#include "store/functions.h"

enum { BUSY_MS = 5000, BUSY_PAUSE_MS = 5 };

/* Maps SQLite's primary result codes to the code and the advice of an error. Any other result code means a bug in rooflined. */
static const struct {
  int code;
  rl_storage_code cause;
  const char *advice;
} causes[] = {
    {SQLITE_FULL, RL_STORAGE_FULL, "the disk is full: free some space, then try again"},
    {SQLITE_NOMEM, RL_STORAGE_MEMORY, "out of memory"},
    {SQLITE_READONLY, RL_STORAGE_DENIED, "this user has no permission to write there"},
    {SQLITE_CANTOPEN, RL_STORAGE_DENIED, "the file can't be opened: check the folder and its permissions"},
    {SQLITE_BUSY, RL_STORAGE_LOCKED, "another program holds the database locked: end it, then try again"},
    {SQLITE_LOCKED, RL_STORAGE_LOCKED, "another program holds the database locked: end it, then try again"},
    {SQLITE_CORRUPT, RL_STORAGE_DAMAGED, "the database is damaged: restore a backup"},
    {SQLITE_NOTADB, RL_STORAGE_DAMAGED, "the file is not a database: restore a backup"},
    {SQLITE_IOERR, RL_STORAGE_IO, "the disk reports an error"},
    {SQLITE_INTERRUPT, RL_STORAGE_INTERRUPTED, "the query exceeded its time limit, or its client disconnected"},
    {SQLITE_CONSTRAINT, RL_STORAGE_CONSTRAINT, "a value is not allowed"},
};

int rl_db_fail(const rl_db *db, const char *action, rl_error *err) {
  int code = db->handle != NULL ? sqlite3_extended_errcode(db->handle) : SQLITE_NOMEM;
  const char *detail = db->handle != NULL ? sqlite3_errmsg(db->handle) : sqlite3_errstr(code);
  rl_storage_code cause = RL_STORAGE_INTERNAL;
  const char *advice = "this is a bug in rooflined";
  for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
    if (causes[i].code == (code & 0xff)) {
      cause = causes[i].cause;
      advice = causes[i].advice;
    }
  return rl_fail(err, RL_STORAGE, cause, "cannot %s: %s (SQLite %d: %s)", action, advice, code, detail);
}

typedef struct rl_db_statement {
  const rl_embedded *text;
  sqlite3_stmt *prepared; /* NULL: the statement was not used yet */
} rl_db_statement;

static int compare_names(const void *left, const void *right) {
  return strcmp(((const rl_db_statement *)left)->text->name, ((const rl_db_statement *)right)->text->name);
}

static int index_texts(rl_db *db, const rl_embedded *texts) {
  while (texts[db->statement_count].name != NULL) db->statement_count++;
  db->statements = calloc(db->statement_count + 1, sizeof *db->statements);
  if (db->statements == NULL) return -1;
  for (size_t i = 0; i < db->statement_count; i++) db->statements[i].text = &texts[i];
  qsort(db->statements, db->statement_count, sizeof *db->statements, compare_names);
  return 0;
}

/* Turns off SQLite's allocator statistics: all connections share their lock, and no code reads them. */
static void configure_sqlite(void) { (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

/* SQLite calls this busy handler when another program holds a lock. Returns 0 to fail with SQLITE_BUSY. */
static int wait_for_lock(void *context, int earlier_calls) {
  (void)context;
  if (earlier_calls >= BUSY_MS / BUSY_PAUSE_MS || rl_stop_signal_is_pending()) return 0;
  nanosleep(&(struct timespec){.tv_nsec = BUSY_PAUSE_MS * 1000000L}, NULL);
  return 1;
}

int rl_db_open(const char *path, int flags, const rl_embedded *texts, rl_db *db, rl_error *err) {
  static pthread_once_t configured = PTHREAD_ONCE_INIT;
  pthread_once(&configured, configure_sqlite);
  *db = (rl_db){0};
  if (index_texts(db, texts) < 0 ||
      sqlite3_open_v2(path, &db->handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL) != SQLITE_OK ||
      rl_sql_add_functions(db->handle) != SQLITE_OK) {
    rl_db_fail(db, "open the database", err);
    rl_db_close(db);
    return -1;
  }
  sqlite3_busy_handler(db->handle, wait_for_lock, NULL);
  return 0;
}

void rl_db_close(rl_db *db) {
  for (size_t i = 0; db->statements != NULL && i < db->statement_count; i++) sqlite3_finalize(db->statements[i].prepared);
  free(db->statements);
  sqlite3_close(db->handle);
  *db = (rl_db){0};
}

static rl_db_statement *find_statement(const rl_db *db, const char *name, rl_error *err) {
  const rl_db_statement key = {.text = &(rl_embedded){.name = name}};
  rl_db_statement *found = bsearch(&key, db->statements, db->statement_count, sizeof key, compare_names);
  if (found == NULL) rl_fail(err, RL_STORAGE, RL_STORAGE_INTERNAL, "there is no statement named %s", name);
  return found;
}

int rl_db_execute(rl_db *db, const char *text, const char *action, rl_error *err) {
  return sqlite3_exec(db->handle, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : rl_db_fail(db, action, err);
}

int rl_db_execute_named(rl_db *db, const char *name, rl_error *err) {
  const rl_db_statement *script = find_statement(db, name, err);
  return script != NULL ? rl_db_execute(db, script->text->text, name, err) : -1;
}

static int bind_one(sqlite3_stmt *statement, int index, const rl_binding *binding) {
  switch (binding->type) {
    case RL_SQL_INTEGER: return sqlite3_bind_int64(statement, index, binding->integer);
    case RL_SQL_REAL: return isfinite(binding->real) ? sqlite3_bind_double(statement, index, binding->real) : SQLITE_OK;
    case RL_SQL_TEXT: /* SQLITE_TRANSIENT copies the text, because a cursor can outlive the caller's text */
      return sqlite3_bind_text(statement, index, binding->text, -1, SQLITE_TRANSIENT);
    case RL_SQL_NULL: break;
  }
  return SQLITE_OK;
}

int rl_db_prepare(rl_db *db, const char *name, const rl_binding *bindings, int count, sqlite3_stmt **statement, rl_error *err) {
  rl_db_statement *found = find_statement(db, name, err);
  if (found == NULL) return -1;
  sqlite3_stmt **slot = &found->prepared;
  if (*slot == NULL && sqlite3_prepare_v3(db->handle, found->text->text, (int)found->text->size + 1, SQLITE_PREPARE_PERSISTENT,
                                          slot, NULL) != SQLITE_OK)
    return rl_db_fail(db, name, err);
  sqlite3_reset(*slot);
  sqlite3_clear_bindings(*slot);
  for (int i = 0; i < count; i++) {
    int index = sqlite3_bind_parameter_index(*slot, bindings[i].name);
    if (rl_binding_is_null(&bindings[i])) continue; /* an unbound parameter is NULL */
    if (index == 0) return rl_fail(err, RL_STORAGE, RL_STORAGE_INTERNAL, "%s has no parameter %s", name, bindings[i].name);
    if (bind_one(*slot, index, &bindings[i]) != SQLITE_OK) return rl_db_fail(db, name, err);
  }
  *statement = *slot;
  return 0;
}

int rl_db_step(rl_db *db, sqlite3_stmt *statement, rl_error *err) {
  int code = sqlite3_step(statement);
  if (code == SQLITE_ROW) return 1;
  int rc = code == SQLITE_DONE ? 0 : rl_db_fail(db, "use the database", err);
  sqlite3_reset(statement);
  return rc;
}

int rl_db_query_row_bound(rl_db *db, const char *name, const rl_binding *bindings, int count, sqlite3_stmt **statement,
                          rl_error *err) {
  return rl_db_prepare(db, name, bindings, count, statement, err) < 0 ? -1 : rl_db_step(db, *statement, err);
}

int rl_db_run_bound(rl_db *db, const char *name, const rl_binding *bindings, int count, rl_error *err) {
  sqlite3_stmt *statement = NULL;
  int rc = rl_db_query_row_bound(db, name, bindings, count, &statement, err);
  while (rc > 0) rc = rl_db_step(db, statement, err);
  return rc;
}

int rl_db_run_positional(rl_db *db, sqlite3_stmt *statement, const int64_t *values, int count, rl_error *err) {
  for (int i = 0; i < count; i++)
    if (sqlite3_bind_int64(statement, i + 1, values[i]) != SQLITE_OK) return rl_db_fail(db, "bind a parameter", err);
  return rl_db_step(db, statement, err) < 0 ? -1 : 0;
}
