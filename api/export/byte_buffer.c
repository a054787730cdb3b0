/* Implements byte_buffer.h. A buffer that is too small doubles its capacity. */
#include "api/export/byte_buffer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MIN_CAPACITY = 4096, INTEGER_DIGITS = 20 };

/* Enlarges the buffer so that `length` more bytes fit. Returns false if memory is exhausted. */
static bool reserve_bytes(rl_buffer *buffer, size_t length) {
  if (buffer->failed) return false;
  if (buffer->capacity - buffer->length >= length) return true;
  size_t capacity = buffer->capacity > 0 ? buffer->capacity : MIN_CAPACITY;
  while (capacity - buffer->length < length) capacity *= 2;
  char *grown = realloc(buffer->bytes, capacity);
  if (grown == NULL) {
    buffer->failed = true;
    return false;
  }
  buffer->bytes = grown;
  buffer->capacity = capacity;
  return true;
}

void rl_buffer_append(rl_buffer *buffer, const void *bytes, size_t length) {
  if (!reserve_bytes(buffer, length)) return;
  memcpy(buffer->bytes + buffer->length, bytes, length);
  buffer->length += length;
}

void rl_buffer_byte(rl_buffer *buffer, char byte) { rl_buffer_append(buffer, &byte, 1); }

void rl_buffer_text(rl_buffer *buffer, const char *text) { rl_buffer_append(buffer, text, strlen(text)); }

void rl_buffer_integer(rl_buffer *buffer, int64_t value) {
  char digits[INTEGER_DIGITS], *end = digits + sizeof digits, *start = end;
  uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  do *--start = (char)('0' + rest % 10);
  while ((rest /= 10) > 0);
  if (value < 0) *--start = '-';
  rl_buffer_append(buffer, start, (size_t)(end - start));
}

static void append_escape(rl_buffer *buffer, unsigned char character) {
  char text[8];
  if (character == '"' || character == '\\') snprintf(text, sizeof text, "\\%c", character);
  else snprintf(text, sizeof text, "\\u%04x", character);
  rl_buffer_text(buffer, text);
}

void rl_buffer_json_text(rl_buffer *buffer, const char *text) {
  rl_buffer_byte(buffer, '"');
  const char *plain = text;
  for (; *text != '\0'; text++) {
    unsigned char character = (unsigned char)*text;
    if (character >= 0x20 && character != '"' && character != '\\') continue;
    rl_buffer_append(buffer, plain, (size_t)(text - plain));
    append_escape(buffer, character);
    plain = text + 1;
  }
  rl_buffer_append(buffer, plain, (size_t)(text - plain));
  rl_buffer_byte(buffer, '"');
}

int rl_buffer_check(const rl_buffer *buffer, rl_error *err) {
  return buffer->failed ? rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for an export") : 0;
}
