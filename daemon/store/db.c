#include "store/db.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BUSY_MS = 5000 };

static const struct {
  int code;
  const char *advice;
} advices[] = {
    {SQLITE_FULL, "the disk is full: free some space, then try again"},
    {SQLITE_NOMEM, "memory is out"},
    {SQLITE_READONLY, "this user may not write there"},
    {SQLITE_CANTOPEN, "the file can't be opened: check the folder and its permissions"},
    {SQLITE_BUSY, "another program holds the database locked: end it, then try again"},
    {SQLITE_LOCKED, "another program holds the database locked: end it, then try again"},
    {SQLITE_CORRUPT, "the database is damaged: restore a backup"},
    {SQLITE_NOTADB, "the file is not a database: restore a backup"},
    {SQLITE_IOERR, "the disk reports an error"},
    {SQLITE_CONSTRAINT, "a value is not allowed"},
};

int rl_db_fail(const rl_db *db, const char *doing, rl_error *err) {
  int code = db->handle != NULL ? sqlite3_extended_errcode(db->handle) : SQLITE_NOMEM;
  const char *advice = "this is an error of the program";
  for (size_t i = 0; i < sizeof advices / sizeof *advices; i++)
    if (advices[i].code == (code & 0xff)) advice = advices[i].advice;
  return rl_fail(err, RL_SQLITE, code, "cannot %s: %s (SQLite %d: %s)", doing, advice, code,
                 db->handle != NULL ? sqlite3_errmsg(db->handle) : sqlite3_errstr(code));
}

int rl_db_open(const char *path, int flags, const rl_embedded *texts, rl_db *db, rl_error *err) {
  size_t count = 0;
  while (texts[count].name != NULL) count++;
  *db = (rl_db){.texts = texts, .statements = calloc(count + 1, sizeof(sqlite3_stmt *))};
  if (db->statements == NULL ||
      sqlite3_open_v2(path, &db->handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL) != SQLITE_OK) {
    rl_db_fail(db, "open the database", err);
    rl_db_close(db);
    return -1;
  }
  sqlite3_busy_timeout(db->handle, BUSY_MS);
  return 0;
}

void rl_db_close(rl_db *db) {
  for (size_t i = 0; db->statements != NULL && db->texts[i].name != NULL; i++) sqlite3_finalize(db->statements[i]);
  free(db->statements);
  sqlite3_close(db->handle);
  *db = (rl_db){0};
}

static const rl_embedded *find(const rl_db *db, const char *name, rl_error *err) {
  for (const rl_embedded *text = db->texts; text->name != NULL; text++)
    if (strcmp(text->name, name) == 0) return text;
  rl_fail(err, RL_SQLITE, SQLITE_MISUSE, "there is no statement named %s", name);
  return NULL;
}

int rl_db_script(rl_db *db, const char *name, rl_error *err) {
  const rl_embedded *text = find(db, name, err);
  if (text == NULL) return -1;
  return sqlite3_exec(db->handle, text->text, NULL, NULL, NULL) == SQLITE_OK ? 0 : rl_db_fail(db, name, err);
}

static int bind_one(sqlite3_stmt *statement, int index, const rl_binding *binding) {
  switch (binding->type) {
    case RL_BIND_INT: return sqlite3_bind_int64(statement, index, binding->integer);
    case RL_BIND_REAL: return isfinite(binding->real) ? sqlite3_bind_double(statement, index, binding->real) : SQLITE_OK;
    case RL_BIND_TEXT: /* copied: rows may be read when the caller's text has gone */
      return sqlite3_bind_text(statement, index, binding->text, -1, SQLITE_TRANSIENT);
    case RL_BIND_NULL: break;
  }
  return SQLITE_OK;
}

int rl_db_start(rl_db *db, const char *name, const rl_binding *bindings, int count, sqlite3_stmt **statement, rl_error *err) {
  const rl_embedded *text = find(db, name, err);
  if (text == NULL) return -1;
  sqlite3_stmt **slot = &db->statements[text - db->texts];
  if (*slot == NULL &&
      sqlite3_prepare_v3(db->handle, text->text, (int)text->size + 1, SQLITE_PREPARE_PERSISTENT, slot, NULL) != SQLITE_OK)
    return rl_db_fail(db, name, err);
  sqlite3_reset(*slot);
  sqlite3_clear_bindings(*slot);
  for (int i = 0; i < count; i++) {
    int index = sqlite3_bind_parameter_index(*slot, bindings[i].name);
    if (index == 0) return rl_fail(err, RL_SQLITE, SQLITE_MISUSE, "%s has no parameter %s", name, bindings[i].name);
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

int rl_db_first(rl_db *db, const char *name, const rl_binding *bindings, int count, sqlite3_stmt **statement, rl_error *err) {
  return rl_db_start(db, name, bindings, count, statement, err) < 0 ? -1 : rl_db_step(db, *statement, err);
}

int rl_db_finish(rl_db *db, const char *name, const rl_binding *bindings, int count, rl_error *err) {
  sqlite3_stmt *statement = NULL;
  int rc = rl_db_first(db, name, bindings, count, &statement, err);
  while (rc > 0) rc = rl_db_step(db, statement, err);
  return rc;
}

static int migrate_one(rl_db *db, const rl_embedded *migration, rl_error *err) {
  if (rl_db_run(db, err, "begin") < 0) return -1;
  if (sqlite3_exec(db->handle, migration->text, NULL, NULL, NULL) == SQLITE_OK) {
    if (rl_db_run(db, err, "commit") == 0) return 0;
  } else {
    rl_db_fail(db, "change the schema", err);
  }
  if (!sqlite3_get_autocommit(db->handle)) rl_db_run(db, NULL, "rollback");
  return rl_wrap(err, "migration %s", migration->name);
}

int rl_db_migrate(rl_db *db, const rl_embedded *migrations, bool may_change, rl_error *err) {
  sqlite3_stmt *row = NULL;
  if (rl_db_row(db, err, "schema_version", &row) < 0) return -1;
  int64_t version = sqlite3_column_int64(row, 0), last = 0;
  sqlite3_reset(row);
  for (const rl_embedded *migration = migrations; migration->name != NULL; migration++) last = strtol(migration->name, NULL, 10);
  if (version > last)
    return rl_fail(err, RL_INPUT, 0,
                   "the database has schema %lld, but this rooflined knows only up to %lld: run the newer rooflined, "
                   "or give this one another state folder",
                   (long long)version, (long long)last);
  if (version < last && !may_change)
    return rl_fail(err, RL_INPUT, 0,
                   "the rooflined that runs on it is older than this program (schema %lld, not %lld): stop it first",
                   (long long)version, (long long)last);
  for (const rl_embedded *migration = migrations; migration->name != NULL; migration++)
    if (strtol(migration->name, NULL, 10) > version && migrate_one(db, migration, err) < 0) return -1;
  return 0;
}
