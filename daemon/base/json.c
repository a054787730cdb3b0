/* Implements json.h. Refuses text that cJSON accepts although RFC 8259 does not allow it, and text that cJSON can't represent. */
#include "base/json.h"

#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"

enum { MAX_DEPTH = 32 };

static int fail_at_byte(size_t offset, const char *problem, rl_error *err) {
  return rl_fail(err, RL_INPUT, (int)offset, "the JSON text %s, at byte %zu", problem, offset);
}

static size_t count_digits(const char *text, size_t length) {
  size_t count = 0;
  while (count < length && text[count] >= '0' && text[count] <= '9') count++;
  return count;
}

/* Returns the size in bytes of the JSON number at the start of text, or 0 if there is none. cJSON does not check numbers this
 * strictly: it also accepts "01" and "1.". */
static size_t number_size(const char *text, size_t length) {
  size_t size = length > 0 && text[0] == '-';
  const size_t whole = count_digits(text + size, length - size);
  if (whole == 0 || (whole > 1 && text[size] == '0')) return 0;
  size += whole;
  if (size < length && text[size] == '.') {
    const size_t digits = count_digits(text + size + 1, length - size - 1);
    if (digits == 0) return 0;
    size += 1 + digits;
  }
  if (size < length && (text[size] == 'e' || text[size] == 'E')) {
    const size_t sign = size + 1 < length && (text[size + 1] == '+' || text[size + 1] == '-');
    const size_t digits = count_digits(text + size + 1 + sign, length - size - 1 - sign);
    if (digits == 0) return 0;
    size += 1 + sign + digits;
  }
  return size;
}

typedef struct scan_state {
  int depth;
  bool in_string, escaped;
} scan_state; /* state of the scanner before the current byte */

/* Checks the character of `size` bytes at text + offset, or the number that begins there. Returns the number of checked bytes; 0
 * with err if they are invalid. */
static size_t check_character(scan_state *state, const char *text, size_t length, size_t offset, size_t size, rl_error *err) {
  const char c = text[offset];
  if (state->escaped) {
    if (length - offset >= 5 && memcmp(text + offset, "u0000", 5) == 0) return fail_at_byte(offset, "has an escaped NUL", err), 0;
    state->escaped = false;
  } else if (c == '"') {
    state->in_string = !state->in_string;
  } else if (state->in_string) {
    state->escaped = c == '\\';
  } else if (c == '{' || c == '[') {
    if (++state->depth > MAX_DEPTH) return fail_at_byte(offset, "is nested too deep", err), 0;
  } else if (c == '}' || c == ']') {
    state->depth--;
  } else if (c == '-' || (c >= '0' && c <= '9')) {
    size = number_size(text + offset, length - offset);
    if (size == 0) return fail_at_byte(offset, "has a malformed number", err), 0;
  }
  return size;
}

/* Checks what cJSON does not check: the depth of nesting (cJSON recurses), NUL and \u0000 (a C string ends there), UTF-8, and the
 * grammar of numbers. */
static int check_text(const char *text, size_t length, rl_error *err) {
  scan_state state = {0};
  for (size_t offset = 0, size = 0; offset < length; offset += size) {
    size = rl_utf8_character_size(text + offset, length - offset);
    if (size == 0) return fail_at_byte(offset, "is not UTF-8", err);
    if (text[offset] == '\0') return fail_at_byte(offset, "has a NUL byte", err);
    size = check_character(&state, text, length, offset, size, err);
    if (size == 0) return -1;
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
