/* Is this text UTF-8 (RFC 3629: no surrogates, nothing longer than needed)? What clients, files and libraries hand over need not
 * be, and what we store and send must. Stateless, thread-safe. */
#ifndef RL_BASE_UTF8_H
#define RL_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the character at the front of text, 1 to 4; 0 when none is there within size bytes. NUL is a character. */
size_t rl_utf8_size(const char *text, size_t size);
bool rl_utf8_valid(const char *text, size_t size);
/* Every byte that belongs to no character becomes a question mark. */
void rl_utf8_sanitize(char *text, size_t size);

#endif
