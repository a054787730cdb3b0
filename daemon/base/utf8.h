/* UTF-8 (RFC 3629: no surrogates, no overlong forms). Text from clients, files and libraries is checked or sanitized before it is
 * stored or sent. Stateless, thread-safe. */
#ifndef RL_BASE_UTF8_H
#define RL_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the size of the character at the front of text, 1 to 4 bytes; 0 when there is no valid one within size bytes. NUL is a
 * character. */
size_t rl_utf8_size(const char *text, size_t size);
bool rl_utf8_valid(const char *text, size_t size);
/* Replaces every byte that belongs to no valid character by a question mark. */
void rl_utf8_sanitize(char *text, size_t size);

#endif
