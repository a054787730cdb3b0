/* Finds functions in a cubin (an ELF image of GPU code). The bytes are untrusted: every offset is checked against the size. */
#ifndef RL_CODE_CUBIN_H
#define RL_CODE_CUBIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct rl_cubin_function {
  const unsigned char *code; /* points into the cubin */
  size_t size;
  uint32_t symbol_index; /* in the cubin's symbol table */
  int barriers;          /* named barriers that a block uses: highest index + 1; 16 when the code computes the index */
  char sha256[65];       /* of the code */
} rl_cubin_function;

/* Finds the function `name` (mangled). -1 with RL_INPUT when the cubin is malformed or has no such function. */
int rl_cubin_find(const void *cubin, size_t size, const char *name, rl_cubin_function *function, rl_error *err);

#endif
