/* Implements imported_trace.h. */
#include "model/imported_trace.h"

#include <stdbool.h>
#include <string.h>

const char *const rl_trace_format_names[] = {"auto", "kineto", "nsys", NULL};

const rl_field rl_imported_trace_fields[] = {
    RL_FIELD(rl_imported_trace_params, file_name, RL_FIELD_TEXT),
    RL_FIELD(rl_imported_trace_params, format, RL_FIELD_CHOICE, .names = rl_trace_format_names),
    RL_FIELD(rl_imported_trace_params, bytes, RL_FIELD_INT, .minimum = 0, .maximum = 9e15),
    RL_FIELD(rl_imported_trace_params, sha256, RL_FIELD_SHA256),
    RL_FIELD(rl_imported_trace_params, upload, RL_FIELD_TEXT),
    {0}};

static bool begins_with(const char *start, size_t length, const char *magic, size_t magic_length) {
  return length >= magic_length && memcmp(start, magic, magic_length) == 0;
}

static bool begins_with_json(const char *start, size_t length) {
  size_t i = 0;
  while (i < length && strchr(" \t\r\n", start[i]) != NULL && start[i] != '\0') i++;
  return i == length || start[i] == '{' || start[i] == '[';
}

int rl_trace_format_detect(const char *start, size_t length, rl_trace_format *format, rl_error *err) {
  bool is_sqlite = begins_with(start, length, "SQLite format 3", 16), is_gzip = begins_with(start, length, "\x1f\x8b", 2);
  rl_trace_format found = is_sqlite ? RL_TRACE_FORMAT_NSYS : RL_TRACE_FORMAT_KINETO;
  if (length == 0) return rl_fail(err, RL_INPUT, 0, "the file is empty");
  if (!is_sqlite && !is_gzip && !begins_with_json(start, length))
    return rl_fail(err, RL_INPUT, 0,
                   "the file is neither JSON (plain or gzip) nor a SQLite database; export an .nsys-rep file with nsys export "
                   "--type sqlite");
  if (*format != RL_TRACE_FORMAT_AUTO && *format != found)
    return rl_fail(err, RL_INPUT, 0, "the file has the format %s, not %s", rl_trace_format_names[found],
                   rl_trace_format_names[*format]);
  *format = found;
  return 0;
}
