/* The database table of each kind of record (model/records.h). The fields of a record are the columns of its table; the build
 * generates the INSERT statements from the fields (insert_statements.c). */
#ifndef RL_STORE_RECORD_TABLES_H
#define RL_STORE_RECORD_TABLES_H

#include "model/records.h"

typedef struct rl_record_table {
  const char *table;     /* NULL: activity.c stores these records */
  const char *statement; /* "insert_TABLE" */
  /* Name of the foreign key column that refers to the row's owner: "pass_id"; "stored_for" in the table of kernels, until the
   * pass is committed; or "kernel_id", whose value is the id of the kernel with the record's ordinal. */
  const char *owner_column;
} rl_record_table;

extern const rl_record_table rl_record_tables[RL_RECORD_KIND_COUNT];

#endif
