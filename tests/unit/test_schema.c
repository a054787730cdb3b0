/* Tests how a store creates the schema of a database, and upgrades the schema of an older database. */
#include "store/schema.h"
#include "store_fixture.h"

static void open_in_memory(rl_db *db) {
  ASSERT_OK(rl_db_open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, rl_statements, db, &err));
  ASSERT_OK(rl_db_execute_named(db, "open_writer", &err));
}

/* Creates or upgrades the database as a store does. */
static int create_or_upgrade(rl_db *db, const rl_schema *schema) {
  int must_change = rl_schema_check(db, schema, true, &err);
  return must_change > 0 ? rl_schema_apply(db, schema, &err) : must_change;
}

static void schema_is_created_once(void **state) {
  (void)state;
  rl_db db;
  open_in_memory(&db);
  assert_int_equal(rl_schema_check(&db, rl_current_schema(), true, &err), 1);
  ASSERT_FAILS(rl_schema_check(&db, rl_current_schema(), false, &err), RL_INPUT, 0);
  ASSERT_OK(rl_schema_apply(&db, rl_current_schema(), &err));
  assert_int_equal(rl_schema_check(&db, rl_current_schema(), false, &err), 0);
  assert_int_equal(query_integer_on(db.handle, "PRAGMA application_id"), RL_APPLICATION_ID);
  assert_true(query_integer_on(db.handle, "PRAGMA user_version") >= RL_SCHEMA_FIRST_VERSION);
  assert_int_equal(query_integer_on(db.handle, "PRAGMA foreign_keys"), 1);
  rl_db_close(&db);
}

/* Migrations are numbered consecutively from 13, and each sets its version. */
static void migrations_are_numbered(void **state) {
  (void)state;
  int64_t expected = RL_SCHEMA_FIRST_VERSION;
  char pragma[48];
  for (const rl_embedded *migration = rl_current_schema()->migrations; migration->name != NULL; migration++) {
    assert_int_equal(strtol(migration->name, NULL, 10), ++expected);
    snprintf(pragma, sizeof pragma, "PRAGMA user_version = %d;", (int)expected);
    assert_non_null(strstr(migration->text, pragma));
  }
  snprintf(pragma, sizeof pragma, "PRAGMA user_version = %d;", (int)expected);
  assert_non_null(strstr(rl_current_schema()->tables->text, pragma));
}

/* Two versions of a schema: 12 and 13. The migration rebuilds a table to which another table refers, changes a view and
 * removes a view. */
static const rl_embedded no_migrations[] = {{0}};
#define IDENTITY(VERSION) "PRAGMA application_id = 1919905638; PRAGMA user_version = " VERSION ";"
#define TABLES "CREATE TABLE jobs (id INTEGER PRIMARY KEY); CREATE TABLE passes (id INTEGER PRIMARY KEY);"
#define RUNS(NAME, COLUMN)                                           \
  "CREATE TABLE " NAME " (id INTEGER PRIMARY KEY, " COLUMN           \
  " TEXT NOT NULL); CREATE TABLE IF NOT EXISTS epochs (run INTEGER " \
  "REFERENCES runs ON DELETE CASCADE, ms REAL);"
static const rl_embedded old_tables = {.text = TABLES RUNS("runs", "label") IDENTITY("12")};
static const rl_embedded old_views = {.text = "CREATE VIEW v_runs AS SELECT label FROM runs; CREATE VIEW v_gone AS SELECT 1;"};
static const rl_embedded new_tables = {
    .text = TABLES RUNS("runs", "variant") "CREATE INDEX runs_by_variant ON runs (variant);" IDENTITY("13")};
static const rl_embedded new_views = {.text = "CREATE VIEW v_runs AS SELECT variant FROM runs;"};
#define RENAME_LABEL                                                                                                         \
  {                                                                                                                          \
    .name = "0013_rename_label",                                                                                           \
    .text = RUNS("runs_13", "variant") "INSERT INTO runs_13 SELECT id, label FROM runs; DROP TABLE runs;"                  \
                                       "ALTER TABLE runs_13 RENAME TO runs; CREATE INDEX runs_by_variant ON runs (variant);" \
                                       "PRAGMA user_version = 13;" \
  }
static const rl_embedded rename_label[] = {RENAME_LABEL, {0}};
static const rl_schema version_12 = {&old_tables, &old_views, no_migrations};
static const rl_schema version_13 = {&new_tables, &new_views, rename_label};

static void make_version_12(rl_db *db) {
  open_in_memory(db);
  ASSERT_OK(create_or_upgrade(db, &version_12));
  ASSERT_OK(rl_db_execute(db, "INSERT INTO runs VALUES (7, 'fp32'); INSERT INTO epochs VALUES (7, 1.5)", "insert", &err));
}

/* Returns a text that lists all tables with their columns and keys, all indices and all views. */
static char *describe_schema(rl_db *db) {
  static const char sql[] =
      "SELECT group_concat(line, char(10)) FROM ("
      "SELECT s.type || ' ' || s.name || ' ' || coalesce(c.name || ' ' || c.type || c.[notnull] || c.pk || c.hidden || "
      "coalesce(c.dflt_value, ''), '') AS line FROM sqlite_schema s LEFT JOIN pragma_table_xinfo(s.name) c "
      "UNION ALL SELECT 'key ' || s.name || ' ' || f.[from] || ' ' || f.[table] || ' ' || f.on_delete FROM sqlite_schema s "
      "JOIN pragma_foreign_key_list(s.name) f "
      "UNION ALL SELECT 'view ' || sql FROM sqlite_schema WHERE type = 'view' "
      "UNION ALL SELECT 'index ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema WHERE type = 'index' ORDER BY line)";
  sqlite3_stmt *row = NULL;
  assert_int_equal(sqlite3_prepare_v2(db->handle, sql, -1, &row, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_step(row), SQLITE_ROW);
  char *text = strdup((const char *)sqlite3_column_text(row, 0));
  sqlite3_finalize(row);
  return text;
}

static void upgraded_database_is_like_a_new_one(void **state) {
  (void)state;
  rl_db old, created;
  make_version_12(&old);
  ASSERT_OK(create_or_upgrade(&old, &version_13));
  open_in_memory(&created);
  ASSERT_OK(create_or_upgrade(&created, &version_13));
  char *upgraded = describe_schema(&old), *new_database = describe_schema(&created);
  assert_string_equal(upgraded, new_database);
  assert_non_null(strstr(new_database, "runs_by_variant"));
  assert_null(strstr(new_database, "v_gone"));
  assert_int_equal(query_integer_on(old.handle, "PRAGMA user_version"), 13);
  assert_int_equal(query_integer_on(old.handle, "SELECT count(*) FROM v_runs JOIN epochs WHERE variant = 'fp32' AND ms = 1.5"),
                   1);
  assert_int_equal(query_integer_on(old.handle, "PRAGMA foreign_keys"), 1);
  free(upgraded);
  free(new_database);
  rl_db_close(&old);
  rl_db_close(&created);
}

/* If a build has the same schema version but other views, it replaces the views of the database. */
static void other_views_are_replaced(void **state) {
  (void)state;
  static const rl_embedded changed[] = {
      {.text = "CREATE VIEW v_runs AS SELECT label || '!' AS label FROM runs; CREATE VIEW v_gone AS SELECT 1;"},
      {.text = "CREATE VIEW v_runs AS SELECT label FROM runs; CREATE VIEW v_gone AS SELECT 1; CREATE VIEW v_added AS SELECT 2;"},
      {.text = "CREATE VIEW v_runs AS SELECT label FROM runs;"}};
  for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
    const rl_schema schema = {&old_tables, &changed[i], no_migrations};
    rl_db old, created;
    make_version_12(&old);
    assert_int_equal(rl_schema_check(&old, &version_12, false, &err), 0);
    ASSERT_FAILS(rl_schema_check(&old, &schema, false, &err), RL_INPUT, 0);
    ASSERT_OK(create_or_upgrade(&old, &schema));
    assert_int_equal(rl_schema_check(&old, &schema, false, &err), 0);
    open_in_memory(&created);
    ASSERT_OK(create_or_upgrade(&created, &schema));
    char *upgraded = describe_schema(&old), *created_schema = describe_schema(&created);
    assert_string_equal(upgraded, created_schema);
    assert_int_equal(query_integer_on(old.handle, "SELECT count(*) FROM runs JOIN epochs WHERE label = 'fp32'"), 1);
    free(upgraded);
    free(created_schema);
    rl_db_close(&old);
    rl_db_close(&created);
  }
}

static int summaries_stored;

static int count_summaries(rl_db *db, rl_error *error) {
  summaries_stored++;
  return rl_db_execute(db, "CREATE TABLE summaries AS SELECT variant FROM v_runs", "store summaries", error);
}

/* An upgrade stores the summaries after it has created the views; a new database has none. */
static void only_an_upgrade_stores_summaries(void **state) {
  (void)state;
  const rl_schema schema = {&new_tables, &new_views, rename_label, count_summaries};
  rl_db old, created;
  summaries_stored = 0;
  make_version_12(&old);
  ASSERT_OK(create_or_upgrade(&old, &schema));
  assert_int_equal(summaries_stored, 1);
  assert_int_equal(query_integer_on(old.handle, "SELECT count(*) FROM summaries WHERE variant = 'fp32'"), 1);
  open_in_memory(&created);
  ASSERT_OK(create_or_upgrade(&created, &schema));
  assert_int_equal(summaries_stored, 1);
  rl_db_close(&old);
  rl_db_close(&created);
}

/* A failed upgrade changes nothing: even the views that it drops first exist afterwards. */
static void failed_upgrade_changes_nothing(void **state) {
  (void)state;
  static const rl_embedded broken[] = {RENAME_LABEL, {.name = "0014_broken", .text = "CREATE TABLE half (a); CREATE TABEL"}, {0}};
  static const rl_embedded dangling[] = {{.name = "0013_dangling", .text = "DELETE FROM runs; PRAGMA user_version = 13;"}, {0}};
  static const rl_embedded unnumbered[] = {{.name = "0013_unnumbered", .text = "CREATE TABLE half (a)"}, {0}};
  const struct {
    const rl_embedded *migrations;
    const char *message;
  } cases[] = {
      {broken, "0014_broken"}, {dangling, "foreign keys refer to rows that do not exist"}, {unnumbered, "version 12 after"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const rl_schema schema = {&new_tables, &new_views, cases[i].migrations};
    rl_db db;
    make_version_12(&db);
    char *before = describe_schema(&db);
    ASSERT_FAILS(create_or_upgrade(&db, &schema), RL_STORAGE, RL_STORAGE_INTERNAL);
    if (strstr(err.message, cases[i].message) == NULL) fail_msg("%s", err.message);
    char *after = describe_schema(&db);
    assert_string_equal(before, after);
    assert_int_equal(query_integer_on(db.handle, "PRAGMA user_version"), 12);
    assert_int_equal(query_integer_on(db.handle, "PRAGMA foreign_keys"), 1);
    free(before);
    free(after);
    rl_db_close(&db);
  }
}

/* --- all migrations ---------------------------------------------------------------------------------------------------- */

static void execute_file(rl_db *db, const char *path) {
  static char text[1 << 17];
  FILE *file = fopen(path, "re");
  assert_non_null(file);
  size_t size = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  assert_in_range(size, 1, sizeof text - 2);
  text[size] = '\0';
  if (rl_db_execute(db, text, path, &err) < 0) fail_msg("%s: %s", path, err.message);
}

/* Returns one text for each row that the SQL selects, in order, separated by newlines. */
static char *select_lines(rl_db *db, const char *sql) {
  char whole[8192];
  sqlite3_stmt *row = NULL;
  snprintf(whole, sizeof whole, "SELECT coalesce(group_concat(line, char(10)), '') FROM (%s ORDER BY line)", sql);
  if (sqlite3_prepare_v2(db->handle, whole, -1, &row, NULL) != SQLITE_OK) fail_msg("%s: %s", whole, sqlite3_errmsg(db->handle));
  assert_int_equal(sqlite3_step(row), SQLITE_ROW);
  char *text = strdup((const char *)sqlite3_column_text(row, 0));
  sqlite3_finalize(row);
  return text;
}

/* A statement that selects the content of a table or view, and its result in a database of the first version. */
typedef struct content {
  char *sql, *rows;
} content;
enum { MAX_CONTENTS = 64 };

/* Selects the contents that an upgrade must keep: all columns of every view except age_s, which depends on the current time, and
 * the number of rows of every table except activity_spans, which activity_groups replaces. Returns their number. */
static int select_contents(rl_db *db, content *contents) {
  char *selects =
      select_lines(db,
                   "SELECT 'SELECT json_array(' || (SELECT group_concat('\"' || name || '\"') FROM "
                   "pragma_table_xinfo(s.name) WHERE name <> 'age_s') || ') AS line FROM ' || name AS line "
                   "FROM sqlite_schema s WHERE type = 'view' UNION ALL SELECT 'SELECT count(*) AS line FROM ' || name "
                   "FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'activity_spans'");
  int count = 0;
  char *rest = NULL;
  for (char *sql = strtok_r(selects, "\n", &rest); sql != NULL; sql = strtok_r(NULL, "\n", &rest)) {
    assert_in_range(count, 0, MAX_CONTENTS - 1);
    contents[count++] = (content){.sql = strdup(sql), .rows = select_lines(db, sql)};
    if (strcmp(contents[count - 1].rows, "") == 0 || strcmp(contents[count - 1].rows, "0") == 0)
      fail_msg("tests/data/rows_12.sql has no row for %s", sql);
  }
  free(selects);
  return count;
}

/* After all migrations, the schema of a database that a daemon of the first version wrote equals a new one, and the rows are
 * kept. */
static void rows_of_the_first_version_are_upgraded(void **state) {
  (void)state;
  rl_db old, created;
  content contents[MAX_CONTENTS];
  open_in_memory(&old);
  execute_file(&old, RL_SOURCE "/tests/data/schema_12.sql");
  execute_file(&old, RL_SOURCE "/tests/data/rows_12.sql");
  int count = select_contents(&old, contents);
  assert_true(count > 30);
  ASSERT_OK(create_or_upgrade(&old, rl_current_schema()));
  open_in_memory(&created);
  ASSERT_OK(create_or_upgrade(&created, rl_current_schema()));
  char *upgraded = describe_schema(&old), *new_database = describe_schema(&created);
  assert_string_equal(upgraded, new_database);
  for (int i = 0; i < count; i++) {
    char *rows = select_lines(&old, contents[i].sql);
    if (strcmp(rows, contents[i].rows) != 0) fail_msg("%s: %s, was %s", contents[i].sql, rows, contents[i].rows);
    free(rows);
    free(contents[i].sql);
    free(contents[i].rows);
  }
  /* Each activity row is in a group of its kind, whose longest duration is at least the row's. Group n of a kind, unless n is 0,
   * has durations from 4^(4 + n) to 4^(5 + n) ns. */
  assert_int_equal(
      query_integer_on(old.handle,
                       "SELECT count(*) > 8 AND min(a.duration_ns <= g.longest_ns AND a.activity_group % 16 = g.kind "
                       "AND (g.activity_group < 16 OR a.duration_ns >> 2 * (a.activity_group / 16 + 4) BETWEEN 1 AND "
                       "3)) FROM activity a JOIN activity_groups g USING (pass_id, activity_group)"),
      1);
  assert_int_equal(query_integer_on(old.handle, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
  free(upgraded);
  free(new_database);
  rl_db_close(&old);
  rl_db_close(&created);
}

/* Pass 5 moves 1e8 bytes, of which 1e7 are written: 2e7 at the bandwidth of copies, 8e7 at that of reads, in 25 us. The share of
 * pass 2, whose ceilings were deleted, stays. */
static void stored_shares_are_computed_again(void **state) {
  (void)state;
  rl_db old;
  open_in_memory(&old);
  execute_file(&old, RL_SOURCE "/tests/data/schema_12.sql");
  execute_file(&old, RL_SOURCE "/tests/data/rows_12.sql");
  ASSERT_OK(rl_db_execute(&old,
                          "INSERT INTO measurements VALUES (1, 'dram_copy_bytes_per_s', 4e12, NULL), "
                          "(5, 'time_cold_us_median', 50, NULL), (5, 'share_cold_of_dram_copy_ratio', 0.625, NULL), "
                          "(2, 'time_cold_us_median', 50, NULL), (2, 'share_cold_of_dram_copy_ratio', 0.625, NULL);"
                          "UPDATE passes SET ceilings_id = NULL WHERE id = 2",
                          "test", &err));
  ASSERT_OK(create_or_upgrade(&old, rl_current_schema()));
  assert_int_equal(query_integer_on(old.handle,
                                    "SELECT sum((pass_id, name, value) IN (VALUES (5, 'share_cold_of_dram_read_ratio', 0.5), "
                                    "(2, 'share_cold_of_dram_copy_ratio', 0.625))) * 10 + count(*) "
                                    "FROM measurements WHERE name GLOB 'share_*'"),
                   22);
  rl_db_close(&old);
}

/* Pass 5 has a warm-up epoch and three measured ones. Before version 35, the counts of both series added up. */
static void stored_skipped_steps_are_those_of_each_epoch(void **state) {
  (void)state;
  rl_db old;
  open_in_memory(&old);
  execute_file(&old, RL_SOURCE "/tests/data/schema_12.sql");
  execute_file(&old, RL_SOURCE "/tests/data/rows_12.sql");
  ASSERT_OK(rl_db_execute(
      &old,
      "UPDATE epochs SET skipped_steps = iif(pass_id = 2, NULL, iif(epoch = 2, 39, 19));"
      "INSERT INTO epochs (pass_id, epoch, warmup, skipped_steps, throttle_reasons, unavailable) VALUES (5, 3, 0, 39, '', '{}')",
      "test", &err));
  ASSERT_OK(create_or_upgrade(&old, rl_current_schema()));
  char *counts =
      select_lines(&old, "SELECT pass_id || ':' || epoch || ':' || coalesce(skipped_steps, 'NULL') AS line FROM epochs");
  assert_string_equal(counts, "2:0:NULL\n2:1:NULL\n2:2:NULL\n5:0:19.0\n5:1:19.0\n5:2:20.0\n5:3:0.0");
  free(counts);
  rl_db_close(&old);
}

/* Opens rows_12.sql as a database of an older version. Version 38 added passes.suspect_cause. */
static void open_older_version(rl_db *old, int version) {
  char sql[128];
  open_in_memory(old);
  execute_file(old, RL_SOURCE "/tests/data/schema_12.sql");
  execute_file(old, RL_SOURCE "/tests/data/rows_12.sql");
  ASSERT_OK(create_or_upgrade(old, rl_current_schema()));
  char *drop_views = select_lines(old, "SELECT 'DROP VIEW ' || name || ';' AS line FROM sqlite_schema WHERE type = 'view'");
  ASSERT_OK(rl_db_execute(old, drop_views, "test", &err));
  free(drop_views);
  snprintf(sql, sizeof sql, "ALTER TABLE passes DROP COLUMN suspect_cause; PRAGMA user_version = %d", version);
  ASSERT_OK(rl_db_execute(old, sql, "test", &err));
}

/* Run 2, whose pass 3 has activity, becomes an imported trace. Of the first four entries, only the second has a dynamic and no
 * static shared memory. */
static void stored_sums_of_shared_memory_are_marked(void **state) {
  (void)state;
  static const char *const formats[] = {"kineto", "auto", "nsys"};
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    rl_db old;
    char format[128];
    snprintf(format, sizeof format, "UPDATE runs SET workload = 'imported_trace', variant = '%s' WHERE id = 2", formats[i]);
    open_older_version(&old, 35);
    ASSERT_OK(rl_db_execute(&old, "UPDATE activity_dictionary SET unknown_values = entry * 2 WHERE pass_id = 3 AND entry < 4",
                            "test", &err));
    ASSERT_OK(rl_db_execute(&old, format, "test", &err));
    ASSERT_OK(create_or_upgrade(&old, rl_current_schema()));
    char *values = select_lines(
        &old, "SELECT entry || ':' || unknown_values AS line FROM activity_dictionary WHERE pass_id = 3 AND entry < 4");
    assert_string_equal(values, i < 2 ? "0:0\n1:18\n2:4\n3:6" : "0:0\n1:2\n2:4\n3:6");
    free(values);
    rl_db_close(&old);
  }
}

/* Opens rows_12.sql as a database of version 36. Epoch 1 of run 2, which trained on 640 images, and the cold samples of run 3, a
 * 1×1 convolution with stride 2, were marked as suspect because of floors that are too high. */
static void open_with_wrong_floors(rl_db *old) {
  open_older_version(old, 36);
  ASSERT_OK(rl_db_execute(
      old,
      "UPDATE runs SET images_per_epoch = 640, floor_bytes = 54663504, floor_operations = 6e11 WHERE id = 2;"
      "UPDATE epochs SET device_ms = 1, host_ms = 1, suspect = epoch = 1, suspect_reason = "
      "iif(epoch = 1, 'an epoch of 1 ms is faster than its floor of 12 ms: 6e+11 operations in fp32 at 5e+13/s', NULL);"
      "UPDATE runs SET workload = 'conv', floor_bytes = 576000016, floor_written_bytes = 64e6, floor_operations = NULL, "
      "params = "
      "'{\"dtype\":\"fp16\",\"shape\":{\"images\":1000000,\"height\":8,\"width\":8,\"channels\":4,\"filters\":2,\"kernel\":1,"
      "\"stride\":2,"
      "\"padding\":0}}' WHERE id = 3;"
      "UPDATE samples SET device_us = 60, suspect = 1, suspect_reason = "
      "iif(mode = 'cold', '60 us with a cold cache is faster than its floor of 129 us: 5.16e+08 bytes from memory at 4e+12/s', "
      "'GPU throttled');"
      "INSERT INTO measurements VALUES (2, 'floor_ms', 12, NULL), (5, 'floor_cold_us', 129, NULL), "
      "(5, 'time_cold_us_median', 60, NULL), (5, 'achieved_bytes_per_s', 9.6e12, NULL), "
      "(5, 'share_cold_of_dram_read_ratio', 2.4, NULL), (1, 'dram_copy_bytes_per_s', 4e12, NULL)",
      "test", &err));
}

/* The epoch has 6.4e9 operations at 5e13/s. The convolution moves 192 MB: it reads a quarter of x. Of these bytes, the caches
 * keep 60 MB; 128 MB count at the bandwidth of copies. */
static void stored_floors_are_computed_again(void **state) {
  (void)state;
  rl_db old;
  open_with_wrong_floors(&old);
  ASSERT_OK(create_or_upgrade(&old, rl_current_schema()));
  char *works = select_lines(&old,
                             "SELECT floor_bytes || ':' || floor_operations AS line FROM runs WHERE id = 2 "
                             "UNION ALL SELECT floor_bytes FROM runs WHERE id = 3");
  assert_string_equal(works, "192000016.0\n8065904.0:6400000000.0");
  char *values = select_lines(&old,
                              "SELECT pass_id || ':' || name || ':' || round(iif(value > 1e9, value / 1e12, value), 3) AS line "
                              "FROM measurements WHERE pass_id "
                              "IN (2, 5) AND (name GLOB 'floor_*' OR name GLOB 'share_*' OR name GLOB 'achieved_*')");
  assert_string_equal(values,
                      "2:floor_ms:0.128\n5:achieved_bytes_per_s:3.2\n5:floor_cold_us:33.0\n5:floor_ms:0.033\n"
                      "5:floor_warm_us:33.0\n5:share_cold_of_dram_copy_ratio:0.8");
  char *suspects = select_lines(&old,
                                "SELECT pass_id || ':' || suspect_reason AS line FROM epochs WHERE suspect = 1 AND pass_id = 2 "
                                "UNION ALL SELECT DISTINCT mode || ':' || suspect_reason FROM samples WHERE suspect = 1");
  assert_string_equal(suspects, "warm:GPU throttled");
  assert_int_equal(query_integer_on(old.handle, "SELECT count(*) FROM passes WHERE suspect_cause IS NOT NULL"), 0);
  free(works), free(values), free(suspects);
  rl_db_close(&old);
}

/* Samples of 30 us are also below the corrected floor of 33 us. */
static void times_below_a_corrected_floor_have_a_cause(void **state) {
  (void)state;
  rl_db old;
  open_with_wrong_floors(&old);
  ASSERT_OK(rl_db_execute(&old, "UPDATE samples SET device_us = 30 WHERE mode = 'cold'", "test", &err));
  ASSERT_OK(create_or_upgrade(&old, rl_current_schema()));
  char *causes = select_lines(&old, "SELECT id || ':' || suspect_cause AS line FROM passes WHERE suspect_cause IS NOT NULL");
  assert_non_null(strstr(causes, "5:Check that the run does all of its work"));
  assert_null(strchr(causes, '\n'));
  free(causes);
  rl_db_close(&old);
}

/* Shapes: one that reads a quarter of x, one that reads all, and one with 8 unused taps of 9. */
#define GAPS "{\"images\":2,\"height\":8,\"width\":8,\"channels\":4,\"filters\":2,\"kernel\":1,\"stride\":2,\"padding\":0}"
#define COVERED "{\"images\":2,\"height\":8,\"width\":8,\"channels\":4,\"filters\":2,\"kernel\":3,\"stride\":2,\"padding\":1}"
#define PIXEL "{\"images\":2,\"height\":1,\"width\":1,\"channels\":4,\"filters\":2,\"kernel\":3,\"stride\":1,\"padding\":1}"
#define MEMBER(KERNEL, DTYPE, SHAPE) "{\"kernel\":\"" KERNEL "\",\"dtype\":\"" DTYPE "\",\"shape\":" SHAPE "}"
#define SEQUENCE(FIRST, SECOND) "sequence', 'x', '{\"kernels\":[" FIRST "," SECOND "]}"
#define SINGLE(KERNEL, SHAPE) KERNEL "', 'x', '" MEMBER(KERNEL, "fp32", SHAPE)
#define TWO_CONVOLUTIONS SEQUENCE(MEMBER("conv", "fp16", GAPS), MEMBER("conv_dgrad", "fp32", GAPS))
#define RELU MEMBER("relu", "fp32", "{\"elements\":1000}")

/* Runs whose bytes were counted wrongly are corrected, and the others stay. Bytes are unknown only if a sequence also has kernels
 * that are no convolutions. */
static void stored_bytes_of_convolutions_are_corrected(void **state) {
  (void)state;
  static const struct {
    const char *run;
    double stored, corrected; /* bytes; corrected NAN: unknown */
  } cases[] = {{TWO_CONVOLUTIONS, 3504, 2736},
               {TWO_CONVOLUTIONS, 2736, 2736}, /* counted correctly */
               {SEQUENCE(MEMBER("conv", "fp32", PIXEL), MEMBER("conv", "fp32", COVERED)), 2928, 2672},
               {SEQUENCE(MEMBER("conv", "fp32", COVERED), RELU), 10592, 10592},
               {SEQUENCE(MEMBER("conv", "fp16", GAPS), RELU), 9168, NAN},
               {SINGLE("conv", GAPS), 2336, 800},
               {SINGLE("conv", COVERED), 2592, 2592},
               {SINGLE("conv", PIXEL), 336, 80},
               {SINGLE("conv_dgrad", GAPS), 2336, 2336},
               {SINGLE("conv_dgrad", PIXEL), 336, 80},
               {SINGLE("conv_wgrad", GAPS), 2336, 800},
               {SINGLE("conv_wgrad", PIXEL), 336, 336}};
  enum { COUNT = sizeof cases / sizeof *cases, FIRST_ID = 100 };
  rl_db old;
  open_with_wrong_floors(&old);
  for (int i = 0; i < COUNT; i++) {
    char sql[1024];
    snprintf(sql, sizeof sql,
             "INSERT INTO runs (id, job_id, ordinal, workload, variant, params, nondefault_params, floor_bytes) "
             "VALUES (%d, 1, %d, '%s', '{}', %f)",
             FIRST_ID + i, FIRST_ID + i, cases[i].run, cases[i].stored);
    ASSERT_OK(rl_db_execute(&old, sql, "test", &err));
  }
  ASSERT_OK(create_or_upgrade(&old, rl_current_schema()));
  for (int i = 0; i < COUNT; i++) {
    char sql[96], expected[32] = "unknown";
    snprintf(sql, sizeof sql, "SELECT coalesce(floor_bytes, 'unknown') AS line FROM runs WHERE id = %d", FIRST_ID + i);
    if (!isnan(cases[i].corrected)) snprintf(expected, sizeof expected, "%.1f", cases[i].corrected);
    char *bytes = select_lines(&old, sql);
    if (strcmp(bytes, expected) != 0) fail_msg("%s: %s bytes, expected %s", cases[i].run, bytes, expected);
    free(bytes);
  }
  rl_db_close(&old);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(schema_is_created_once),
                                     cmocka_unit_test(migrations_are_numbered),
                                     cmocka_unit_test(upgraded_database_is_like_a_new_one),
                                     cmocka_unit_test(other_views_are_replaced),
                                     cmocka_unit_test(only_an_upgrade_stores_summaries),
                                     cmocka_unit_test(failed_upgrade_changes_nothing),
                                     cmocka_unit_test(rows_of_the_first_version_are_upgraded),
                                     cmocka_unit_test(stored_shares_are_computed_again),
                                     cmocka_unit_test(stored_skipped_steps_are_those_of_each_epoch),
                                     cmocka_unit_test(stored_sums_of_shared_memory_are_marked),
                                     cmocka_unit_test(stored_floors_are_computed_again),
                                     cmocka_unit_test(times_below_a_corrected_floor_have_a_cause),
                                     cmocka_unit_test(stored_bytes_of_convolutions_are_corrected)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
