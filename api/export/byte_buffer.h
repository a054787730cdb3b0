/* A growing array of bytes. After a failed allocation, appends do nothing and rl_buffer_check fails, so that a caller that
 * appends many small parts needs only one check. Not thread-safe. */
#ifndef RL_API_EXPORT_BYTE_BUFFER_H
#define RL_API_EXPORT_BYTE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

typedef struct rl_buffer { /* initially zeroed */
  char *bytes;
  size_t length, capacity;
  bool failed;
} rl_buffer;

void rl_buffer_append(rl_buffer *buffer, const void *bytes, size_t length);
void rl_buffer_byte(rl_buffer *buffer, char byte);
void rl_buffer_text(rl_buffer *buffer, const char *text);
void rl_buffer_integer(rl_buffer *buffer, int64_t value); /* appends the decimal digits */
/* Appends the text as a JSON string, with quotes. */
void rl_buffer_json_text(rl_buffer *buffer, const char *text);
/* Returns -1 after a failed allocation. */
int rl_buffer_check(const rl_buffer *buffer, rl_error *err);
static inline void rl_buffer_clear(rl_buffer *buffer) { free(buffer->bytes); }

#endif
