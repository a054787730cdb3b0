/* The schema of the database: recognises a database of rooflined, creates its tables and views, and upgrades older ones. Internal
 * to the store. The versions 1 to 11 were development versions and can't be upgraded. */
#ifndef RL_STORE_SCHEMA_H
#define RL_STORE_SCHEMA_H

#include <stdbool.h>

#include "store/db.h"

enum { RL_APPLICATION_ID = 0x726f6f66 /* "roof" */, RL_SCHEMA_FIRST_VERSION = 12 };

typedef struct rl_schema {
  const rl_embedded *tables, *views; /* SQL of the current version */
  const rl_embedded *migrations;     /* by version: "0013_name" upgrades the tables of version 12 and sets user_version */
} rl_schema;

const rl_schema *rl_current_schema(void); /* schema/sql/tables.sql, views.sql, migrations/ */

/* Reads the version of the database and changes nothing. Returns 1 when rl_schema_apply has to create or upgrade it, 0 when it is
 * current. RL_INPUT with what to do when it is newer, a development version, or not a database of rooflined, and when it has to
 * be changed and may_change is false. */
int rl_schema_check(rl_db *db, const rl_schema *schema, bool may_change, rl_error *err);
/* Creates or upgrades the database in one transaction, after rl_schema_check accepted it. An upgrade drops all views, runs the
 * migrations after the database's version, and creates the views. */
int rl_schema_apply(rl_db *db, const rl_schema *schema, rl_error *err);

#endif
