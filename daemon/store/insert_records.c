/* Inserts the records of a pass. A parameter of an INSERT statement has the name of a field of the record, or of a member of
 * row_keys. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "store/record_tables.h"
#include "store/store_internal.h"

/* The values of parameters that are not fields of the record. */
typedef struct row_keys {
  int64_t pass, run;
  int64_t kernel_id; /* 0: there is no such kernel; bound as NULL, so that the insertion violates NOT NULL and fails */
} row_keys;

enum { MAX_PARAMETERS = 32 };

/* A prepared INSERT statement and the sources of its parameters. */
typedef struct insertion {
  sqlite3_stmt *statement;
  int count;
  struct parameter {
    const rl_field *field; /* field of the record that is bound; NULL: a member of row_keys is bound */
    size_t key_offset;     /* offset of the member in row_keys */
  } parameters[MAX_PARAMETERS];
} insertion;

static const rl_field *find_field(const rl_field *fields, const char *name) {
  for (const rl_field *field = fields; field->name != NULL; field++)
    if (strcmp(field->name, name) == 0) return field;
  return NULL;
}

static int find_source(const rl_field *fields, const char *name, struct parameter *source) {
  static const struct {
    const char *name;
    size_t offset;
  } key_members[] = {
      {"pass", offsetof(row_keys, pass)}, {"run", offsetof(row_keys, run)}, {"kernel_id", offsetof(row_keys, kernel_id)}};
  source->field = find_field(fields, name);
  if (source->field != NULL) return 0;
  for (size_t i = 0; i < sizeof key_members / sizeof *key_members; i++)
    if (strcmp(key_members[i].name, name) == 0) {
      source->key_offset = key_members[i].offset;
      return 0;
    }
  return -1;
}

static int prepare_insertion(rl_db *db, const char *statement, const rl_field *fields, insertion *prepared, rl_error *err) {
  *prepared = (insertion){0};
  if (rl_db_prepare(db, statement, NULL, 0, &prepared->statement, err) < 0) return -1;
  prepared->count = sqlite3_bind_parameter_count(prepared->statement);
  if (prepared->count > MAX_PARAMETERS)
    return rl_fail(err, RL_STORAGE, RL_STORAGE_INTERNAL, "%s has %d parameters, more than %d", statement, prepared->count,
                   MAX_PARAMETERS);
  for (int i = 0; i < prepared->count; i++) {
    const char *name = sqlite3_bind_parameter_name(prepared->statement, i + 1) + 1; /* + 1 skips the colon */
    if (find_source(fields, name, &prepared->parameters[i]) < 0)
      return rl_fail(err, RL_STORAGE, RL_STORAGE_INTERNAL, "%s has a parameter %s without a value", statement, name);
  }
  return 0;
}

/* Binds with SQLITE_STATIC: SQLite need not copy the text, because the record outlives the execution of the statement. */
static int bind_text(sqlite3_stmt *statement, int index, const rl_field *field, const char *text) {
  if (text == NULL || (field->zero_is_null && text[0] == '\0')) return sqlite3_bind_null(statement, index);
  return sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
}

static int bind_integer(sqlite3_stmt *statement, int index, const rl_field *field, int64_t value) {
  return field->zero_is_null && value == 0 ? sqlite3_bind_null(statement, index) : sqlite3_bind_int64(statement, index, value);
}

static int bind_field(sqlite3_stmt *statement, int index, const rl_field *field, const char *record) {
  const char *member = record + field->offset;
  double real;
  int choice;
  switch (field->type) {
    case RL_FIELD_BOOL:
    case RL_FIELD_INT: return bind_integer(statement, index, field, rl_field_integer(field, member));
    case RL_FIELD_REAL:
    case RL_FIELD_NULLABLE_REAL:
      memcpy(&real, member, sizeof real);
      return isfinite(real) ? sqlite3_bind_double(statement, index, real) : sqlite3_bind_null(statement, index);
    case RL_FIELD_TEXT:
    case RL_FIELD_SHA256:
    case RL_FIELD_JSON: return bind_text(statement, index, field, member);
    case RL_FIELD_CHOICE: memcpy(&choice, member, sizeof choice); return bind_text(statement, index, field, field->names[choice]);
    default: return SQLITE_MISUSE; /* not reached: records have no fields of other types */
  }
}

static int bind_key(sqlite3_stmt *statement, int index, int64_t key) {
  return key == 0 ? sqlite3_bind_null(statement, index) : sqlite3_bind_int64(statement, index, key);
}

static int insert_record(rl_db *db, const insertion *insert, const char *record, const row_keys *keys, rl_error *err) {
  for (int i = 0; i < insert->count; i++) {
    const struct parameter *source = &insert->parameters[i];
    int code = source->field != NULL
                   ? bind_field(insert->statement, i + 1, source->field, record)
                   : bind_key(insert->statement, i + 1, *(const int64_t *)((const char *)keys + source->key_offset));
    if (code != SQLITE_OK) return rl_db_fail(db, "insert a record", err);
  }
  if (rl_db_step(db, insert->statement, err) < 0) return -1;
  return 0;
}

/* Sets keys->kernel_id to the id of the pass's kernel with this ordinal; to 0 if there is none. */
static int find_kernel(rl_db *db, int64_t ordinal, row_keys *keys, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  int found = rl_db_query_row(db, err, "kernel_not_committed", &row, RL_BIND_INTEGER(":pass", keys->pass),
                              RL_BIND_INTEGER(":ordinal", ordinal));
  if (found >= 0) keys->kernel_id = found > 0 ? sqlite3_column_int64(row, 0) : 0;
  return found < 0 ? -1 : 0;
}

static bool has_kernel_id(rl_record_kind kind) {
  return rl_record_tables[kind].table != NULL && strcmp(rl_record_tables[kind].owner_column, "kernel_id") == 0;
}

/* Inserts `count` records of a kind, beginning with the record at index `first`. */
static int insert_range(rl_db *db, rl_record_kind kind, const rl_records *records, const rl_claim *claim, size_t first,
                        size_t count, rl_error *err) {
  const rl_record_layout *layout = &rl_record_layouts[kind];
  const rl_field *ordinal_field = has_kernel_id(kind) ? find_field(layout->fields, "ordinal") : NULL;
  const char *record = (const char *)rl_records_items(records, kind) + first * layout->item_size;
  row_keys keys = {.pass = claim->pass_id, .run = claim->run_id};
  int64_t found_ordinal = -1;
  insertion insert;
  if (count == 0) return 0;
  if (prepare_insertion(db, rl_record_tables[kind].statement, layout->fields, &insert, err) < 0) return -1;
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < count; i++, record += layout->item_size) {
    int64_t ordinal = ordinal_field != NULL ? rl_field_integer(ordinal_field, record + ordinal_field->offset) : -1;
    if (ordinal != found_ordinal) rc = find_kernel(db, found_ordinal = ordinal, &keys, err);
    if (rc == 0) rc = insert_record(db, &insert, record, &keys, err);
  }
  sqlite3_clear_bindings(insert.statement);
  return rc;
}

/* Stores the metadata that the worker reports about the run and the device. */
static int insert_metadata(rl_db *db, const rl_claim *claim, const rl_run_metadata *metadata, rl_error *err) {
  const row_keys keys = {.pass = claim->pass_id, .run = claim->run_id};
  insertion insert;
  if (metadata->device_properties[0] != '\0' &&
      rl_db_run(db, err, "device_insert", RL_BIND_TEXT(":properties", metadata->device_properties),
                RL_BIND_INTEGER(":now", rl_realtime_ns())) < 0)
    return -1;
  if (prepare_insertion(db, "run_metadata", rl_run_metadata_fields, &insert, err) < 0) return -1;
  int rc = insert_record(db, &insert, (const char *)metadata, &keys, err);
  sqlite3_clear_bindings(insert.statement);
  return rc;
}

static bool belongs_to_kernel(rl_record_kind kind) { return kind == RL_RECORD_KERNEL || has_kernel_id(kind); }

int rl_store_insert_records(rl_db *db, const rl_claim *claim, const rl_records *records, rl_error *err) {
  if (records->has_metadata && insert_metadata(db, claim, &records->metadata, err) < 0) return -1;
  for (rl_record_kind kind = 0; kind < RL_RECORD_KIND_COUNT; kind++)
    if (rl_record_tables[kind].statement != NULL && !belongs_to_kernel(kind) &&
        insert_range(db, kind, records, claim, 0, rl_records_count(records, kind), err) < 0)
      return -1;
  return rl_store_insert_activity(db, claim->pass_id, records, err);
}

size_t rl_store_kernel_bytes(const rl_records *records) {
  size_t bytes = 0;
  for (rl_record_kind kind = 0; kind < RL_RECORD_KIND_COUNT; kind++)
    if (belongs_to_kernel(kind)) bytes += rl_records_count(records, kind) * rl_record_layouts[kind].item_size;
  return bytes;
}

/* Inserts the kinds in the order of rl_record_kind, in which kernels precede the records that refer to them, as the foreign keys
 * require. */
int rl_store_insert_kernels(rl_db *db, const rl_claim *claim, const rl_records *records, size_t max_bytes,
                            rl_kernel_position *position, rl_error *err) {
  for (; position->kind < RL_RECORD_KIND_COUNT; position->kind++, position->index = 0) {
    if (!belongs_to_kernel(position->kind)) continue;
    size_t item_size = rl_record_layouts[position->kind].item_size, fitting = max_bytes / item_size,
           left = rl_records_count(records, position->kind) - position->index, count = left < fitting ? left : fitting;
    if (insert_range(db, position->kind, records, claim, position->index, count, err) < 0) return -1;
    position->index += count;
    max_bytes -= count * item_size;
    if (count < left) return 0;
  }
  return 1;
}
