/* Implements the SQL functions and registers them with a connection. */
#include "store/functions.h"

#include <stddef.h>
#include <string.h>

#include "base/clock.h"

enum { JSON_SUBTYPE = 'J' }; /* marks text as JSON for SQLite's JSON functions */

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

/* Sets *start and *end to the beginning and the end of the base name in a demangled function. The parentheses of "(anonymous
 * namespace)" belong to a namespace's name, not to the parameters. */
static void find_base_name(const char *text, const char **start, const char **end) {
  static const char anonymous[] = "(anonymous namespace)";
  const char *c = text;
  int depth = 0; /* number of open angle brackets */
  *start = text, *end = NULL;
  for (; *c != '\0'; c++) {
    if (depth == 0 && strncmp(c, anonymous, sizeof anonymous - 1) == 0) c += sizeof anonymous - 2;
    else if (*c == '<') {
      if (depth++ == 0) *end = c;
    } else if (*c == '>') depth--;
    else if (depth == 0 && *c == '(') break;
    else if (depth == 0 && (*c == ' ' || *c == ':')) *start = c + 1, *end = NULL;
  }
  if (*end == NULL) *end = c;
}

static void kernel_base_name(sqlite3_context *context, int count, sqlite3_value **values) {
  (void)count;
  const char *text = (const char *)sqlite3_value_text(values[0]), *start, *end;
  if (text == NULL) return;
  find_base_name(text, &start, &end);
  if (end > start) sqlite3_result_text(context, start, (int)(end - start), SQLITE_TRANSIENT);
  else sqlite3_result_value(context, values[0]);
}

int rl_sql_add_functions(sqlite3 *connection) {
  static const struct {
    const char *name;
    void (*function)(sqlite3_context *context, int count, sqlite3_value **values);
  } functions[] = {{"stored_json", stored_json}, {"utc_text", utc_text}, {"kernel_base_name", kernel_base_name}};
  int code = SQLITE_OK;
  for (size_t i = 0; i < sizeof functions / sizeof *functions && code == SQLITE_OK; i++)
    code = sqlite3_create_function_v2(connection, functions[i].name, 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
                                      NULL, functions[i].function, NULL, NULL, NULL);
  return code;
}
