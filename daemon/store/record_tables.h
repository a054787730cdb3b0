/* The tables that records are inserted into. Their INSERT statements are generated at build time from rl_record_kinds
 * (insert_statements.c): a column of a record is a field of its kind and a column of its table. */
#ifndef RL_STORE_RECORD_TABLES_H
#define RL_STORE_RECORD_TABLES_H

#include "model/records.h"

typedef struct rl_record_table {
  const char *table;
  const char *statement; /* "insert_TABLE" */
  bool of_kernel;        /* rows have kernel_id, found by the record's ordinal; else pass_id */
  bool by_index;         /* column `ordinal` is the record's index in its array */
} rl_record_table;

extern const rl_record_table rl_record_tables[RL_RECORD_KINDS];

#endif
