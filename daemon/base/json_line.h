/* Finds the line of a JSON text to which an error message refers. Stateless, thread-safe. */
#ifndef RL_BASE_JSON_LINE_H
#define RL_BASE_JSON_LINE_H

#include <stddef.h>

#include "base/error.h"

/* Returns the line number, counted from 1, of the byte at this offset. */
int rl_json_line_of_byte(const char *text, size_t length, size_t offset);
/* Returns the number, counted from 1, of the line on which the value at this RFC 6901 pointer begins. rl_json_parse must accept
 * the text. If there is no such value, returns the line of the innermost object or array that the pointer reaches. */
int rl_json_line_of_pointer(const char *text, size_t length, const char *pointer);

#endif
