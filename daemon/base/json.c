#include "base/json.h"

#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"

enum { DEEPEST = 32 };

static int refuse_text(size_t at, const char *what, rl_error *err) {
  return rl_fail(err, RL_INPUT, (int)at, "the JSON text %s, at byte %zu", what, at);
}

/* What cJSON takes and we must not: nesting, over which it recurses; NUL, also as an escape, which ends a text for us and not for
 * the sender; bytes that are no UTF-8, which it would hand on. */
static int check_text(const char *text, size_t length, rl_error *err) {
  int depth = 0;
  bool quoted = false, escaped = false;
  for (size_t at = 0, size = 0; at < length; at += size) {
    char c = text[at];
    size = rl_utf8_size(text + at, length - at);
    if (size == 0) return refuse_text(at, "is not UTF-8", err);
    if (c == '\0') return refuse_text(at, "has a NUL byte", err);
    if (escaped) {
      if (length - at >= 5 && memcmp(text + at, "u0000", 5) == 0) return refuse_text(at, "has an escaped NUL", err);
      escaped = false;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (quoted) {
      escaped = c == '\\';
    } else if (c == '{' || c == '[') {
      if (++depth > DEEPEST) return refuse_text(at, "is nested too deep", err);
    } else if (c == '}' || c == ']') {
      depth--;
    }
  }
  return 0;
}

cJSON *rl_json_parse(const char *text, size_t length, rl_error *err) {
  const char *end = NULL;
  if (check_text(text, length, err) < 0) return NULL;
  cJSON *value = cJSON_ParseWithLengthOpts(text, length, &end, 0);
  if (value == NULL) {
    rl_fail(err, RL_INPUT, end != NULL ? (int)(end - text) : 0, "the body is not valid JSON (near byte %d)",
            end != NULL ? (int)(end - text) : 0);
    return NULL;
  }
  for (; end < text + length; end++)
    if (strchr(" \t\r\n", *end) == NULL) {
      rl_fail(err, RL_INPUT, (int)(end - text), "there is text after the JSON value, at byte %d", (int)(end - text));
      cJSON_Delete(value);
      return NULL;
    }
  return value;
}
