/* Implements the SQL functions and registers them with a connection. */
#include "store/functions.h"

#include <stddef.h>

#include "base/clock.h"

enum { JSON_SUBTYPE = 'J' }; /* by which SQLite's JSON functions know JSON from other text */

static void stored_json(sqlite3_context *context, int count, sqlite3_value **values) {
  (void)count;
  if (sqlite3_value_type(values[0]) == SQLITE_NULL) sqlite3_result_text(context, "null", 4, SQLITE_STATIC);
  else sqlite3_result_value(context, values[0]);
  sqlite3_result_subtype(context, JSON_SUBTYPE);
}

static void utc_text(sqlite3_context *context, int count, sqlite3_value **values) {
  (void)count;
  char text[RL_INSTANT_SIZE];
  if (sqlite3_value_type(values[0]) != SQLITE_NULL)
    sqlite3_result_text(context, rl_instant_format(sqlite3_value_int64(values[0]), text), -1, SQLITE_TRANSIENT);
}

int rl_sql_add_functions(sqlite3 *connection) {
  static const struct {
    const char *name;
    void (*function)(sqlite3_context *context, int count, sqlite3_value **values);
  } functions[] = {{"stored_json", stored_json}, {"utc_text", utc_text}};
  int code = SQLITE_OK;
  for (size_t i = 0; i < sizeof functions / sizeof *functions && code == SQLITE_OK; i++)
    code = sqlite3_create_function_v2(connection, functions[i].name, 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
                                      NULL, functions[i].function, NULL, NULL, NULL);
  return code;
}
