/* Implements json_line.h: follows a JSON pointer through the text and skips the other values without parsing them. */
#include "base/json_line.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int rl_json_line_of_byte(const char *text, size_t length, size_t offset) {
  int line = 1;
  for (size_t i = 0; i < offset && i < length; i++) line += text[i] == '\n';
  return line;
}

static const char *skip_space(const char *position, const char *end) {
  while (position < end && (*position == ' ' || *position == '\t' || *position == '\r' || *position == '\n')) position++;
  return position;
}

/* Returns the position after the string that begins at `position`. */
static const char *skip_string(const char *position, const char *end) {
  for (position++; position < end && *position != '"'; position++)
    if (*position == '\\') position++;
  return position < end ? position + 1 : end;
}

/* Returns the position after the value that begins at `position`. */
static const char *skip_value(const char *position, const char *end) {
  int depth = 0;
  while (position < end) {
    if (*position == '"') {
      position = skip_string(position, end);
    } else {
      if (*position == '{' || *position == '[') depth++;
      if (*position == '}' || *position == ']') depth--;
      if (depth < 0 || (depth == 0 && *position == ',')) return position;
      position++;
    }
    if (depth == 0 && position < end && (position[-1] == '}' || position[-1] == ']' || position[-1] == '"')) return position;
  }
  return position;
}

/* Copies the pointer's next token with its escapes resolved. Returns the rest of the pointer. */
static const char *next_token(const char *pointer, char *token, size_t size) {
  size_t used = 0;
  for (pointer++; *pointer != '\0' && *pointer != '/'; pointer++) {
    char c = *pointer;
    if (c == '~' && (pointer[1] == '0' || pointer[1] == '1')) c = *++pointer == '0' ? '~' : '/';
    if (used + 1 < size) token[used++] = c;
  }
  token[used] = '\0';
  return pointer;
}

static bool is_key(const char *begin, const char *end, const char *token) {
  size_t length = (size_t)(end - begin) - 2;
  return strlen(token) == length && memcmp(begin + 1, token, length) == 0;
}

/* Returns the position of the value that `token` selects in the object or array at `position`; NULL if there is none. */
static const char *find_member(const char *position, const char *end, const char *token) {
  bool is_object = *position == '{';
  long wanted = is_object ? -1 : strtol(token, NULL, 10), index = 0;
  if (!is_object && *position != '[') return NULL;
  for (position = skip_space(position + 1, end); position < end && *position != '}' && *position != ']'; index++) {
    bool found = index == wanted;
    if (is_object) {
      const char *key = position;
      position = skip_string(position, end);
      found = is_key(key, position, token);
      position = skip_space(position, end);
      if (position < end && *position == ':') position = skip_space(position + 1, end);
    }
    if (found) return position;
    position = skip_space(skip_value(position, end), end);
    if (position < end && *position == ',') position = skip_space(position + 1, end);
  }
  return NULL;
}

int rl_json_line_of_pointer(const char *text, size_t length, const char *pointer) {
  const char *end = text + length, *position = skip_space(text, end);
  char token[128];
  while (*pointer == '/' && position < end) {
    pointer = next_token(pointer, token, sizeof token);
    const char *member = find_member(position, end, token);
    if (member == NULL) break;
    position = member;
  }
  return rl_json_line_of_byte(text, length, (size_t)(position - text));
}
