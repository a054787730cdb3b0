/* Prints the INSERT statement of a table of records: insert_statements TABLE. Run by the build. */
#include <stdio.h>
#include <string.h>

#include "store/record_tables.h"

static bool is_key(const rl_record_table *table, const rl_field *field) {
  return table->of_kernel && strcmp(field->name, "ordinal") == 0;
}

static void print_statement(const rl_record_table *table, const rl_field *fields) {
  printf("INSERT INTO %s (%s", table->table, table->of_kernel ? "kernel_id" : "pass_id");
  if (table->by_index) printf(", ordinal");
  for (const rl_field *field = fields; field->name != NULL; field++)
    if (!is_key(table, field)) printf(", \"%s\"", field->name);
  printf(")\nVALUES (%s", table->of_kernel ? "(SELECT id FROM kernels WHERE pass_id = :pass AND ordinal = :ordinal)" : ":pass");
  if (table->by_index) printf(", :index");
  for (const rl_field *field = fields; field->name != NULL; field++)
    if (!is_key(table, field)) printf(", :%s", field->name);
  printf(")\n");
}

int main(int count, char **arguments) {
  for (int kind = 0; count == 2 && kind < RL_RECORD_KINDS; kind++)
    if (strcmp(rl_record_tables[kind].table, arguments[1]) == 0) {
      print_statement(&rl_record_tables[kind], rl_record_kinds[kind].fields);
      return 0;
    }
  fprintf(stderr, "usage: insert_statements TABLE\n");
  return 2;
}
