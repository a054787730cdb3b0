/* A connection to SQLite with named statements: the text of each is a file of schema/sql, embedded; it is prepared at
 * its first use and kept. Parameters are bound by name; one that is not given is NULL. Internal to the store. Not
 * thread-safe. */
#ifndef RL_STORE_DB_H
#define RL_STORE_DB_H

#include <sqlite3.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "embedded.h"
#include "store/store.h"

typedef struct rl_db {
  sqlite3 *handle;
  const rl_embedded *texts;
  sqlite3_stmt **statements; /* as many as texts; NULL: not prepared yet */
} rl_db;

#define RL_INT(NAME, VALUE) \
  { .name = (NAME), .type = RL_BIND_INT, .integer = (int64_t)(VALUE) }
#define RL_REAL(NAME, VALUE) \
  { .name = (NAME), .type = RL_BIND_REAL, .real = (VALUE) } /* not finite: NULL */
#define RL_TEXT(NAME, VALUE) \
  { .name = (NAME), .type = RL_BIND_TEXT, .text = (VALUE) }                             /* NULL: NULL */
#define RL_TEXT_OR_NULL(NAME, VALUE) RL_TEXT(NAME, (VALUE)[0] != '\0' ? (VALUE) : NULL) /* "": NULL */

/* flags: SQLITE_OPEN_READWRITE and so on. texts must outlive db. On failure db is closed. */
int rl_db_open(const char *path, int flags, const rl_embedded *texts, rl_db *db, rl_error *err);
void rl_db_close(rl_db *db); /* a zeroed one is allowed */
/* Fill err with what SQLite says now and what to do about it; "cannot <doing>" comes first. Returns -1. */
int rl_db_fail(const rl_db *db, const char *doing, rl_error *err);

/* Every statement of a text, without parameters. */
int rl_db_script(rl_db *db, const char *name, rl_error *err);
/* Prepare by name, reset, bind: *statement is ready to be stepped and belongs to db. */
int rl_db_start(rl_db *db, const char *name, const rl_binding *bindings, int count, sqlite3_stmt **statement, rl_error *err);
/* 1: there is a row; 0: the end; -1 (and then, as at the end, the statement is reset). */
int rl_db_step(rl_db *db, sqlite3_stmt *statement, rl_error *err);
/* Start and take the first step. */
int rl_db_first(rl_db *db, const char *name, const rl_binding *bindings, int count, sqlite3_stmt **statement, rl_error *err);
/* Start and step to the end. */
int rl_db_finish(rl_db *db, const char *name, const rl_binding *bindings, int count, rl_error *err);

#define RL_BINDINGS(...) (rl_binding[]){__VA_ARGS__}, (int)(sizeof((rl_binding[]){__VA_ARGS__}) / sizeof(rl_binding))
#define rl_db_run(DB, ERR, NAME, ...) rl_db_finish((DB), (NAME), RL_BINDINGS(__VA_ARGS__), (ERR))
#define rl_db_row(DB, ERR, NAME, STATEMENT, ...) rl_db_first((DB), (NAME), RL_BINDINGS(__VA_ARGS__), (STATEMENT), (ERR))

/* Bring the schema to the last of the migrations, each in a transaction of its own. RL_INPUT when the file is newer
 * than that, or when it is older and may_change is false. */
int rl_db_migrate(rl_db *db, const rl_embedded *migrations, bool may_change, rl_error *err);

RL_DEFINE_CLEANUP(rl_db_release, sqlite3_stmt *, sqlite3_reset, NULL)
#endif
