/* Implements the SQL functions and registers them with a connection. */
#include "store/functions.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/quantity.h"
#include "base/text.h"

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

static void duration_text(sqlite3_context *context, int count, sqlite3_value **values) {
  (void)count;
  const double us = sqlite3_value_double(values[0]), other_us = sqlite3_value_double(values[1]);
  rl_quantity_text duration = rl_us_text(us);
  if (us != other_us && strcmp(duration.text, rl_us_text(other_us).text) == 0)
    snprintf(duration.text, sizeof duration.text, "%.15g µs", us);
  sqlite3_result_text(context, duration.text, -1, SQLITE_TRANSIENT);
}

enum { AMOUNT_SIZE = 32, WORK_SIZE = 160 };

/* Writes a number with three significant digits: "4.52e11", "36.5". */
static void format_amount(char amount[AMOUNT_SIZE], double value) {
  snprintf(amount, AMOUNT_SIZE, "%.3g", value);
  char *exponent = strchr(amount, 'e');
  if (exponent != NULL) snprintf(exponent, AMOUNT_SIZE - (size_t)(exponent - amount), "e%ld", strtol(exponent + 1, NULL, 10));
}

static void work_text(sqlite3_context *context, int count, sqlite3_value **values) {
  (void)count;
  const char *work = (const char *)sqlite3_value_text(values[1]);
  const double per_s = sqlite3_value_double(values[2]);
  char amount[AMOUNT_SIZE], text[WORK_SIZE];
  if (work == NULL) return;
  format_amount(amount, sqlite3_value_double(values[0]));
  snprintf(text, sizeof text, "%s %s at %s", amount, work,
           (rl_begins_with(work, "bytes") ? rl_bytes_per_s_text : rl_operations_per_s_text)(per_s).text);
  sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

int rl_sql_add_functions(sqlite3 *connection) {
  static const struct {
    const char *name;
    int value_count;
    void (*function)(sqlite3_context *context, int count, sqlite3_value **values);
  } functions[] = {{"stored_json", 1, stored_json},
                   {"utc_text", 1, utc_text},
                   {"kernel_base_name", 1, kernel_base_name},
                   {"duration_text", 2, duration_text},
                   {"work_text", 3, work_text}};
  int code = SQLITE_OK;
  for (size_t i = 0; i < sizeof functions / sizeof *functions && code == SQLITE_OK; i++)
    code = sqlite3_create_function_v2(connection, functions[i].name, functions[i].value_count,
                                      SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL, functions[i].function, NULL,
                                      NULL, NULL);
  return code;
}
