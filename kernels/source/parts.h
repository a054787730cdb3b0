/* What source.c has checked by its neighbours. 0, or -1 with RL_INPUT and a pointer. */
#ifndef RL_SOURCE_PARTS_H
#define RL_SOURCE_PARTS_H

#include "source/source.h"

enum { RL_SOURCE_WHERE_SIZE = 96 }; /* of a JSON pointer */

/* Base64 text of at most `most` bytes; a NUL follows them. malloc'ed, the caller frees. */
int rl_source_decode_bytes(const char *text, size_t most, const char *at, unsigned char **bytes, size_t *size, rl_error *err);
/* Into the source, from its request: arguments.c, variants.c. What is expected comes behind the arguments. */
int rl_source_take_arguments(rl_source *source, rl_error *err);
int rl_source_take_expected(rl_source *source, rl_error *err);
int rl_source_take_variants(rl_source *source, rl_error *err);

#endif
