/* Functions in a CUDA binary (an ELF image of GPU code), whose bytes may come from anybody: everything is checked against its
 * size. */
#ifndef RL_CODE_CUBIN_H
#define RL_CODE_CUBIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct rl_cubin_function {
  const unsigned char *code; /* inside the cubin */
  size_t size;
  uint32_t symbol; /* its index in the symbol table */
  int barriers; /* that a block of it takes, as ptxas counts them: the highest in use and those below, 16 where the code computes
                   which */
  char sha256[65]; /* of the code */
} rl_cubin_function;

/* name: as in the symbol table (mangled). RL_INPUT when the cubin is broken or has no such function. */
int rl_cubin_find(const void *cubin, size_t size, const char *name, rl_cubin_function *function, rl_error *err);

#endif
