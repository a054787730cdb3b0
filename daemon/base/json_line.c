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

static const char *skip_space(const char *at, const char *end) {
  while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n')) at++;
  return at;
}

/* Returns the position after the string that begins at `at`. */
static const char *skip_string(const char *at, const char *end) {
  for (at++; at < end && *at != '"'; at++)
    if (*at == '\\') at++;
  return at < end ? at + 1 : end;
}

/* Returns the position after the value that begins at `at`. */
static const char *skip_value(const char *at, const char *end) {
  int depth = 0;
  while (at < end) {
    if (*at == '"') {
      at = skip_string(at, end);
    } else {
      if (*at == '{' || *at == '[') depth++;
      if (*at == '}' || *at == ']') depth--;
      if (depth < 0 || (depth == 0 && *at == ',')) return at;
      at++;
    }
    if (depth == 0 && at < end && (at[-1] == '}' || at[-1] == ']' || at[-1] == '"')) return at;
  }
  return at;
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

/* Returns the position of the value that `token` selects in the object or array that begins at `at`; NULL if there is none. */
static const char *find_member(const char *at, const char *end, const char *token) {
  bool is_object = *at == '{';
  long wanted = is_object ? -1 : strtol(token, NULL, 10), index = 0;
  if (!is_object && *at != '[') return NULL;
  for (at = skip_space(at + 1, end); at < end && *at != '}' && *at != ']'; index++) {
    bool found = index == wanted;
    if (is_object) {
      const char *key = at;
      at = skip_string(at, end);
      found = is_key(key, at, token);
      at = skip_space(at, end);
      if (at < end && *at == ':') at = skip_space(at + 1, end);
    }
    if (found) return at;
    at = skip_space(skip_value(at, end), end);
    if (at < end && *at == ',') at = skip_space(at + 1, end);
  }
  return NULL;
}

int rl_json_line_of_pointer(const char *text, size_t length, const char *pointer) {
  const char *end = text + length, *at = skip_space(text, end);
  char token[128];
  while (*pointer == '/' && at < end) {
    pointer = next_token(pointer, token, sizeof token);
    const char *member = find_member(at, end, token);
    if (member == NULL) break;
    at = member;
  }
  return rl_json_line_of_byte(text, length, (size_t)(at - text));
}
