/* The database tables of the kinds of records. The fields of a kind are columns of its table; the build generates the INSERT
 * statements from them (insert_statements.c). */
#ifndef RL_STORE_RECORD_TABLES_H
#define RL_STORE_RECORD_TABLES_H

#include "model/records.h"

typedef struct rl_record_table {
  const char *table;
  const char *statement; /* "insert_TABLE" */
  bool has_kernel_id;    /* true: the key is kernel_id, looked up by the record's ordinal; false: pass_id */
  bool numbered;         /* has a column `ordinal`: the record's index in its array */
} rl_record_table;

extern const rl_record_table rl_record_tables[RL_RECORD_KINDS];

#endif
