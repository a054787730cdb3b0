/* An SQLite connection with named statements. A statement's name is the name of a file in schema/sql, whose text is embedded in
 * the program. A statement is prepared at its first use and kept. Errors have the domain RL_STORAGE. Private to the store; not
 * thread-safe. */
#ifndef RL_STORE_DB_H
#define RL_STORE_DB_H

#include <sqlite3.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "embedded.h"
#include "store/binding.h"

typedef struct rl_db {
  sqlite3 *handle;
  struct rl_db_statement *statements; /* sorted by name */
  size_t statement_count;
} rl_db;

/* Opens a connection. flags: SQLITE_OPEN_*. texts: the named statements, which must outlive db. After a failure db is closed. The
 * connection waits for another program's lock for 5 s, or until a stop signal is pending (base/stop_signal.h). */
int rl_db_open(const char *path, int flags, const rl_embedded *texts, rl_db *db, rl_error *err);
void rl_db_close(rl_db *db); /* accepts a zeroed rl_db */
/* Fills err with the connection's last error and advice: "cannot <action>: <advice> (SQLite 13: ...)". Returns -1. */
int rl_db_fail(const rl_db *db, const char *action, rl_error *err);

/* Executes all statements of a text. action: for the error message, as in rl_db_fail. */
int rl_db_execute(rl_db *db, const char *text, const char *action, rl_error *err);
/* Executes all statements of the text named `name`, which have no parameters. */
int rl_db_execute_named(rl_db *db, const char *name, rl_error *err);
/* Prepares or resets the statement `name`, and binds its parameters. db owns *statement; the caller executes it with
 * rl_db_step. */
int rl_db_prepare(rl_db *db, const char *name, const rl_binding *bindings, int count, sqlite3_stmt **statement, rl_error *err);
/* Returns 1 when `statement` has a next row, whose columns can be read from it; 0 at the end. Resets the statement at the end and
 * after an error. */
int rl_db_step(rl_db *db, sqlite3_stmt *statement, rl_error *err);
/* Starts the statement and reads its first row. Returns 1, 0 or -1 as rl_db_step does. */
int rl_db_query_row_bound(rl_db *db, const char *name, const rl_binding *bindings, int count, sqlite3_stmt **statement,
                          rl_error *err);
/* Executes the statement to its end. Returns 0 or -1. */
int rl_db_run_bound(rl_db *db, const char *name, const rl_binding *bindings, int count, rl_error *err);
/* Executes a prepared statement whose parameters are these integers, by position. Returns 0 or -1. */
int rl_db_run_positional(rl_db *db, sqlite3_stmt *statement, const int64_t *values, int count, rl_error *err);

/* Call rl_db_run_bound and rl_db_query_row_bound with the trailing arguments as bindings. */
#define rl_db_run(DB, ERR, NAME, ...) rl_db_run_bound((DB), (NAME), RL_BINDINGS(__VA_ARGS__), (ERR))
#define rl_db_query_row(DB, ERR, NAME, STATEMENT, ...) \
  rl_db_query_row_bound((DB), (NAME), RL_BINDINGS(__VA_ARGS__), (STATEMENT), (ERR))

RL_DEFINE_CLEANUP(rl_statement_cleanup, sqlite3_stmt *, sqlite3_reset, NULL)
#endif
