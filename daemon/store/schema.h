/* Checks, creates and upgrades the schema of the database when the store is opened. Versions 1 to 11 were development versions
 * and can't be upgraded. Private to the store. */
#ifndef RL_STORE_SCHEMA_H
#define RL_STORE_SCHEMA_H

#include <stdbool.h>

#include "store/db.h"

enum { RL_APPLICATION_ID = 0x726f6f66 /* "roof" */, RL_SCHEMA_FIRST_VERSION = 12 };

typedef struct rl_schema {
  const rl_embedded *tables, *views; /* SQL of the current version */
  /* In ascending order. "0013_name" upgrades the tables from version 12 to 13 and sets user_version. */
  const rl_embedded *migrations;
  int (*store_summaries)(rl_db *db, rl_error *err); /* computes the stored summaries again; NULL: the schema has no summaries */
} rl_schema;

const rl_schema *rl_current_schema(void); /* schema/sql/tables.sql, views.sql, migrations/ */

/* Returns 1 if rl_schema_apply must create or upgrade the schema, 0 if the schema is current. Changes nothing. Fails with
 * RL_INPUT and advice if the database has a newer or a development version, if it belongs to another program, or if the schema
 * must change and may_change is false. */
int rl_schema_check(rl_db *db, const rl_schema *schema, bool may_change, rl_error *err);
/* Creates or upgrades the schema in one transaction. Called if rl_schema_check has returned 1. An upgrade drops all views, runs
 * the migrations to versions above the database's version, creates the views, and stores the summaries again. A database of the
 * current version whose views differ from schema->views is upgraded in the same way. */
int rl_schema_apply(rl_db *db, const rl_schema *schema, rl_error *err);

#endif
