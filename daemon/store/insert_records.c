/* Inserts the records of a pass. A parameter of an INSERT statement is a field of the record, or one of `keys`. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "store/record_tables.h"
#include "store/store_internal.h"

/* The values of parameters that are not fields of the record. */
typedef struct keys {
  int64_t pass, run, index;
} keys;

enum { PARAMETERS_MAX = 32 };

/* A prepared INSERT statement and the sources of its parameters. */
typedef struct insertion {
  sqlite3_stmt *statement;
  int count;
  struct parameter {
    const rl_field *field; /* NULL: the source is keys */
    size_t key_offset;     /* in keys */
  } parameters[PARAMETERS_MAX];
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
  } key_names[] = {{"pass", offsetof(keys, pass)}, {"run", offsetof(keys, run)}, {"index", offsetof(keys, index)}};
  source->field = find_field(fields, name);
  if (source->field != NULL) return 0;
  for (size_t i = 0; i < sizeof key_names / sizeof *key_names; i++)
    if (strcmp(key_names[i].name, name) == 0) {
      source->key_offset = key_names[i].offset;
      return 0;
    }
  return -1;
}

static int begin_insertion(rl_db *db, const char *statement, const rl_field *fields, insertion *begun, rl_error *err) {
  *begun = (insertion){0};
  if (rl_db_start(db, statement, NULL, 0, &begun->statement, err) < 0) return -1;
  begun->count = sqlite3_bind_parameter_count(begun->statement);
  for (int i = 0; i < begun->count; i++) {
    const char *name = sqlite3_bind_parameter_name(begun->statement, i + 1) + 1; /* without the colon */
    if (i >= PARAMETERS_MAX || find_source(fields, name, &begun->parameters[i]) < 0)
      return rl_fail(err, RL_STORAGE, RL_STORAGE_INTERNAL, "%s has a parameter %s without a value", statement, name);
  }
  return 0;
}

/* SQLITE_STATIC: the record outlives the step, so SQLite need not copy the text. */
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
  const char *text;
  switch (field->type) {
    case RL_FIELD_BOOL:
    case RL_FIELD_INT: return bind_integer(statement, index, field, rl_field_integer(field, member));
    case RL_FIELD_REAL:
    case RL_FIELD_MEASURE:
      memcpy(&real, member, sizeof real);
      return isfinite(real) ? sqlite3_bind_double(statement, index, real) : sqlite3_bind_null(statement, index);
    case RL_FIELD_TEXT:
    case RL_FIELD_SHA256:
    case RL_FIELD_JSON: return bind_text(statement, index, field, member);
    case RL_FIELD_CHOICE: memcpy(&choice, member, sizeof choice); return bind_text(statement, index, field, field->names[choice]);
    case RL_FIELD_STRING: memcpy(&text, member, sizeof text); return bind_text(statement, index, field, text);
    default: return SQLITE_MISUSE; /* no record has a field of another type */
  }
}

static int insert_one(rl_db *db, const insertion *insert, const char *record, const keys *key_values, rl_error *err) {
  for (int i = 0; i < insert->count; i++) {
    const struct parameter *source = &insert->parameters[i];
    int code = source->field != NULL ? bind_field(insert->statement, i + 1, source->field, record)
                                     : sqlite3_bind_int64(insert->statement, i + 1,
                                                          *(const int64_t *)((const char *)key_values + source->key_offset));
    if (code != SQLITE_OK) return rl_db_fail(db, "insert a record", err);
  }
  if (rl_db_step(db, insert->statement, err) < 0) return -1;
  return 0;
}

static int insert_kind(rl_db *db, rl_record kind, const rl_records *records, const rl_claim *claim, rl_error *err) {
  const rl_record_kind *record_kind = &rl_record_kinds[kind];
  const size_t count = rl_records_count(records, kind);
  const char *items = rl_records_items(records, kind);
  keys key_values = {.pass = claim->pass_id, .run = claim->run_id};
  insertion insert;
  if (count == 0) return 0;
  if (begin_insertion(db, rl_record_tables[kind].statement, record_kind->fields, &insert, err) < 0) return -1;
  int rc = 0;
  for (; rc == 0 && key_values.index < (int64_t)count; key_values.index++)
    rc = insert_one(db, &insert, items + key_values.index * record_kind->item_size, &key_values, err);
  sqlite3_clear_bindings(insert.statement);
  return rc;
}

/* Stores the facts that the worker reports about the run and the device. */
static int insert_facts(rl_db *db, const rl_claim *claim, const rl_run_facts *facts, rl_error *err) {
  const keys key_values = {.pass = claim->pass_id, .run = claim->run_id};
  insertion insert;
  if (facts->device_facts[0] != '\0' &&
      rl_db_run(db, err, "device_insert", RL_TEXT(":facts", facts->device_facts), RL_INT(":now", rl_now_ns())) < 0)
    return -1;
  if (begin_insertion(db, "run_facts", rl_run_facts_fields, &insert, err) < 0) return -1;
  int rc = insert_one(db, &insert, (const char *)facts, &key_values, err);
  sqlite3_clear_bindings(insert.statement);
  return rc;
}

/* The order of the kinds puts kernels before the rows that refer to them, and names before activity rows. */
int rl_store_insert_records(rl_db *db, const rl_claim *claim, const rl_records *records, rl_error *err) {
  if (records->has_facts && insert_facts(db, claim, &records->facts, err) < 0) return -1;
  for (int kind = 0; kind < RL_RECORD_KINDS; kind++)
    if (insert_kind(db, (rl_record)kind, records, claim, err) < 0) return -1;
  return rl_db_run(db, err, "activity_spans_insert", RL_INT(":pass", claim->pass_id));
}
