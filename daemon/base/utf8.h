/* Checks and sanitizes UTF-8 (RFC 3629: no surrogates, no overlong forms), for text from clients, files and libraries. Stateless,
 * thread-safe. */
#ifndef RL_BASE_UTF8_H
#define RL_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the size in bytes, 1 to 4, of the character at the start of text; 0 if the first size bytes do not begin with a valid
 * character. NUL is valid. */
size_t rl_utf8_character_size(const char *text, size_t size);
bool rl_utf8_is_valid(const char *text, size_t size);
/* Replaces every byte that is not part of a valid character by a question mark. */
void rl_utf8_sanitize(char *text, size_t size);
/* Returns whether the valid text shows nothing: it is empty, or each of its characters has one of Unicode's properties
 * White_Space and Default_Ignorable_Code_Point (such as U+200B, zero width space), or is U+2800, a Braille pattern without dots.
 */
bool rl_utf8_is_blank(const char *text);

#endif
