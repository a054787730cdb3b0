/* A file that rl_embed() (cmake/RooflinedBuild.cmake) compiled into the program. Arrays of them end with a NULL name. */
#ifndef RL_EMBEDDED_H
#define RL_EMBEDDED_H

#include <stddef.h>

typedef struct rl_embedded {
  const char *name; /* file name without folder and last extension */
  const char *text; /* size bytes and a NUL */
  size_t size;
} rl_embedded;

#endif
