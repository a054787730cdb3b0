/* Functions on NUL-terminated text. */
#ifndef RL_BASE_TEXT_H
#define RL_BASE_TEXT_H

#include <stdbool.h>
#include <string.h>

static inline bool rl_begins_with(const char *text, const char *beginning) {
  return strncmp(text, beginning, strlen(beginning)) == 0;
}

#endif
