/* A file compiled into the program by rl_embed(). Arrays of them end with a NULL name. */
#ifndef RL_EMBEDDED_H
#define RL_EMBEDDED_H

#include <stddef.h>

typedef struct rl_embedded {
  const char *name; /* of the file, without folder and last extension */
  const char *text; /* NUL-terminated beyond size */
  size_t size;
} rl_embedded;

#endif
