/* One SQLite connection with named statements. The text of a statement is a file of schema/sql, embedded in the program; it is
 * prepared at its first use and kept. Errors have the domain RL_STORAGE. Internal to the store. Not thread-safe. */
#ifndef RL_STORE_DB_H
#define RL_STORE_DB_H

#include <sqlite3.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "embedded.h"
#include "store/binding.h"

typedef struct rl_db {
  sqlite3 *handle;
  const rl_embedded *texts;
  sqlite3_stmt **statements; /* one for each text; NULL: not prepared yet */
} rl_db;

/* flags: SQLITE_OPEN_READWRITE and so on. texts must outlive db. On failure db is closed. */
int rl_db_open(const char *path, int flags, const rl_embedded *texts, rl_db *db, rl_error *err);
void rl_db_close(rl_db *db); /* also of a zeroed rl_db */
/* Fills err with the connection's last error and advice: "cannot <action>: <advice> (SQLite 13: ...)". Returns -1. */
int rl_db_fail(const rl_db *db, const char *action, rl_error *err);

/* Executes every statement of a text; action: for the message of an error. */
int rl_db_execute(rl_db *db, const char *text, const char *action, rl_error *err);
/* Executes every statement of the text named `name`, without parameters. */
int rl_db_script(rl_db *db, const char *name, rl_error *err);
/* Prepares the statement `name`, resets it, and binds the parameters. *statement is ready to be stepped and belongs to db. */
int rl_db_start(rl_db *db, const char *name, const rl_binding *bindings, int count, sqlite3_stmt **statement, rl_error *err);
/* Returns 1 when there is a row, 0 at the end, -1 on an error. At the end and on an error the statement is reset. */
int rl_db_step(rl_db *db, sqlite3_stmt *statement, rl_error *err);
/* rl_db_start, then the first rl_db_step. */
int rl_db_first(rl_db *db, const char *name, const rl_binding *bindings, int count, sqlite3_stmt **statement, rl_error *err);
/* rl_db_start, then rl_db_step to the end. Returns 0 or -1. */
int rl_db_finish(rl_db *db, const char *name, const rl_binding *bindings, int count, rl_error *err);

#define rl_db_run(DB, ERR, NAME, ...) rl_db_finish((DB), (NAME), RL_BINDINGS(__VA_ARGS__), (ERR))
#define rl_db_row(DB, ERR, NAME, STATEMENT, ...) rl_db_first((DB), (NAME), RL_BINDINGS(__VA_ARGS__), (STATEMENT), (ERR))

RL_DEFINE_CLEANUP(rl_db_release, sqlite3_stmt *, sqlite3_reset, NULL)
#endif
