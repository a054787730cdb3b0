/* The database tables of the kinds of records. The fields of a kind are columns of its table; the build generates the INSERT
 * statements from them (insert_statements.c). */
#ifndef RL_STORE_RECORD_TABLES_H
#define RL_STORE_RECORD_TABLES_H

#include "model/records.h"

typedef struct rl_record_table {
  const char *table;     /* NULL: activity.c stores these records */
  const char *statement; /* "insert_TABLE" */
  /* The foreign key column of a row: "pass_id"; "stored_for" of a kernel until its pass is committed; or "kernel_id" of a record
   * that belongs to the kernel with its ordinal. */
  const char *owner_column;
} rl_record_table;

extern const rl_record_table rl_record_tables[RL_RECORD_KIND_COUNT];

#endif
