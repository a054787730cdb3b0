/* Finds the line of a JSON text that an error is about. Stateless, thread-safe. */
#ifndef RL_BASE_JSON_LINE_H
#define RL_BASE_JSON_LINE_H

#include <stddef.h>

#include "base/error.h"

/* Returns the line, from 1, of the byte at this offset. */
int rl_json_line_of_byte(const char *text, size_t length, size_t offset);
/* Returns the line, from 1, on which the value that an RFC 6901 pointer names begins, in text that rl_json_parse accepts. If
 * there is no such value, the line of the deepest object or array on the way to it. */
int rl_json_line_of_pointer(const char *text, size_t length, const char *pointer);

#endif
