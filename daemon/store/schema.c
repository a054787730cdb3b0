/* Implements schema.h. A database file is in one of four states:
 *   new        the file has no tables yet; they are created
 *   current    nothing is done
 *   outdated   the schema is older, or the views are those of another build; the file is upgraded
 *   unusable   the schema is newer or of a development version, or the file belongs to another program; the file is refused
 * One transaction creates or upgrades the schema. */
#include "store/schema.h"

#include <stdint.h>
#include <stdlib.h>

#include "store/store_internal.h"

extern const rl_embedded rl_tables_and_views[], rl_migrations[]; /* schema/sql */

const rl_schema *rl_current_schema(void) {
  static const rl_schema current = {.tables = &rl_tables_and_views[0],
                                    .views = &rl_tables_and_views[1],
                                    .migrations = rl_migrations,
                                    .store_summaries = rl_store_summarize_all};
  return &current;
}

static int current_version(const rl_schema *schema) {
  int version = RL_SCHEMA_FIRST_VERSION;
  for (const rl_embedded *migration = schema->migrations; migration->name != NULL; migration++)
    version = (int)strtol(migration->name, NULL, 10);
  return version;
}

typedef struct identity {
  int64_t application_id, version;
  bool empty;      /* the schema has no entries: a new file */
  bool has_tables; /* rooflined's main tables exist */
} identity;

static int read_identity(rl_db *db, identity *found, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  if (rl_db_query_row(db, err, "schema_identity", &row) < 0) return -1;
  *found = (identity){.application_id = sqlite3_column_int64(row, 0),
                      .version = sqlite3_column_int64(row, 1),
                      .empty = sqlite3_column_int64(row, 2) == 0,
                      .has_tables = sqlite3_column_int64(row, 3) != 0};
  return 0;
}

static bool is_development_version(const identity *found) {
  return (found->application_id == 0 || found->application_id == RL_APPLICATION_ID) && found->has_tables &&
         found->version < RL_SCHEMA_FIRST_VERSION;
}

static bool is_new_file(const identity *found) { return found->empty && found->application_id == 0 && found->version == 0; }

/* Sets *must_change to whether the database has an earlier version of the schema, or this version with the views of another
 * build. */
static int compare_schema(rl_db *db, const rl_schema *schema, const identity *found, bool *must_change, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  const int current = current_version(schema);
  *must_change = found->version < current;
  if (found->version != current) return 0;
  if (rl_db_query_row(db, err, "views_are_current", &row, RL_BIND_TEXT(":views", schema->views->text)) < 0) return -1;
  *must_change = sqlite3_column_int(row, 0) == 0;
  return 0;
}

int rl_schema_check(rl_db *db, const rl_schema *schema, bool may_change, rl_error *err) {
  const int current = current_version(schema);
  identity found;
  if (read_identity(db, &found, err) < 0) return -1;
  const int version = (int)found.version;
  if (is_development_version(&found))
    return rl_fail(err, RL_INPUT, 0,
                   "a development version of rooflined wrote the database (schema %d), and this one can't upgrade it: move the "
                   "file away, or use another state folder",
                   version);
  if (!is_new_file(&found) && (found.application_id != RL_APPLICATION_ID || !found.has_tables))
    return rl_fail(err, RL_INPUT, 0,
                   "the file is a database of another program (application_id %lld): move it away, or use another state folder",
                   (long long)found.application_id);
  if (version > current)
    return rl_fail(err, RL_INPUT, 0,
                   "the database has schema %d, newer than schema %d of this rooflined: run the newer rooflined, or use another "
                   "state folder",
                   version, current);
  bool must_change;
  if (compare_schema(db, schema, &found, &must_change, err) < 0) return -1;
  if (must_change && !may_change && version == current)
    return rl_fail(err, RL_INPUT, 0,
                   "the running rooflined is another build than this program and has other views in the database: stop the "
                   "running rooflined first");
  if (must_change && !may_change)
    return rl_fail(err, RL_INPUT, 0,
                   "the running rooflined is older than this program and its database has schema %d, not %d: stop the running "
                   "rooflined first",
                   version, current);
  return must_change;
}

RL_DEFINE_CLEANUP(free_sql, char *, sqlite3_free, NULL)

/* Reads one view's name at a time and drops the view, because no statement that reads the schema may be active while the schema
 * changes. */
static int drop_views(rl_db *db, rl_error *err) {
  for (;;) {
    RL_CLEANUP(free_sql) char *drop = NULL;
    sqlite3_stmt *row = NULL;
    int found = rl_db_query_row(db, err, "drop_view", &row);
    if (found <= 0) return found;
    drop = sqlite3_mprintf("%s", sqlite3_column_text(row, 0));
    sqlite3_reset(row);
    if (drop == NULL) return rl_db_fail(db, "drop a view", err);
    if (rl_db_execute(db, drop, "drop a view", err) < 0) return -1;
  }
}

static int run_migrations(rl_db *db, const rl_schema *schema, int64_t version, rl_error *err) {
  for (const rl_embedded *migration = schema->migrations; migration->name != NULL; migration++)
    if (strtol(migration->name, NULL, 10) > version && rl_db_execute(db, migration->text, "change the schema", err) < 0)
      return rl_wrap(err, "migration %s", migration->name);
  return 0;
}

static int check_foreign_keys(rl_db *db, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  int violated = rl_db_query_row(db, err, "foreign_key_check", &row);
  if (violated <= 0) return violated;
  return rl_fail(err, RL_STORAGE, RL_STORAGE_INTERNAL,
                 "after the upgrade of the schema, foreign keys refer to rows that do not exist");
}

static int upgrade(rl_db *db, const rl_schema *schema, int64_t version, rl_error *err) {
  if (drop_views(db, err) < 0 || run_migrations(db, schema, version, err) < 0) return -1;
  return check_foreign_keys(db, err);
}

/* Creates or upgrades the schema inside a transaction, unless another process has done so since rl_schema_check. */
static int change_schema(rl_db *db, const rl_schema *schema, rl_error *err) {
  const int current = current_version(schema);
  identity found;
  bool must_change;
  if (read_identity(db, &found, err) < 0 || compare_schema(db, schema, &found, &must_change, err) < 0) return -1;
  if (!must_change) return 0;
  int rc =
      found.empty ? rl_db_execute(db, schema->tables->text, "create the tables", err) : upgrade(db, schema, found.version, err);
  if (rc < 0 || rl_db_execute(db, schema->views->text, "create the views", err) < 0) return -1;
  if (!found.empty && schema->store_summaries != NULL && schema->store_summaries(db, err) < 0) return -1;
  if (read_identity(db, &found, err) < 0) return -1;
  if (found.version == current && found.application_id == RL_APPLICATION_ID) return 0;
  return rl_fail(err, RL_STORAGE, RL_STORAGE_INTERNAL, "the schema has version %d after its change to version %d",
                 (int)found.version, current);
}

int rl_schema_apply(rl_db *db, const rl_schema *schema, rl_error *err) {
  /* Turns the enforcement of foreign keys off: otherwise a migration that drops and recreates a table would delete the rows that
   * refer to the table. */
  if (rl_db_run(db, err, "foreign_keys_off") < 0 || rl_db_run(db, err, "begin") < 0) return -1;
  int rc = change_schema(db, schema, err);
  if (rc == 0) rc = rl_db_run(db, err, "commit");
  if (rc < 0 && !sqlite3_get_autocommit(db->handle)) rl_db_run(db, NULL, "rollback");
  return rl_db_run(db, rc < 0 ? NULL : err, "foreign_keys_on") < 0 ? -1 : rc;
}
