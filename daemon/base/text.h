/* Functions on NUL-terminated text. */
#ifndef RL_BASE_TEXT_H
#define RL_BASE_TEXT_H

#include <stdbool.h>
#include <string.h>

static inline bool rl_begins_with(const char *text, const char *beginning) {
  return strncmp(text, beginning, strlen(beginning)) == 0;
}

static inline bool rl_ends_with(const char *text, const char *ending) {
  const size_t length = strlen(text), ending_length = strlen(ending);
  return length >= ending_length && strcmp(text + length - ending_length, ending) == 0;
}

#endif
