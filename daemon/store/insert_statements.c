/* A program of the build that prints the INSERT statement of a table of records. Usage: insert_statements TABLE */
#include <stdio.h>
#include <string.h>

#include "store/record_tables.h"

/* Returns whether the field only serves to find the row's kernel_id and is not a column itself. */
static bool only_finds_kernel_id(const rl_record_table *table, const rl_field *field) {
  return strcmp(table->owner_column, "kernel_id") == 0 && strcmp(field->name, "ordinal") == 0;
}

static void print_statement(const rl_record_table *table, const rl_field *fields) {
  printf("INSERT INTO %s (%s", table->table, table->owner_column);
  for (const rl_field *field = fields; field->name != NULL; field++)
    if (!only_finds_kernel_id(table, field)) printf(", \"%s\"", field->name);
  printf(")\nVALUES (:%s", strcmp(table->owner_column, "kernel_id") == 0 ? "kernel_id" : "pass");
  for (const rl_field *field = fields; field->name != NULL; field++)
    if (!only_finds_kernel_id(table, field)) printf(", :%s", field->name);
  printf(")\n");
}

int main(int count, char **arguments) {
  for (int kind = 0; count == 2 && kind < RL_RECORD_KIND_COUNT; kind++)
    if (rl_record_tables[kind].table != NULL && strcmp(rl_record_tables[kind].table, arguments[1]) == 0) {
      print_statement(&rl_record_tables[kind], rl_record_layouts[kind].fields);
      return 0;
    }
  fprintf(stderr, "usage: insert_statements TABLE\n");
  return 2;
}
