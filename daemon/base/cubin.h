/* Finds functions and variables in a cubin (an ELF image of GPU code). The image is not trusted: every offset is checked against
 * the size of the image. */
#ifndef RL_BASE_CUBIN_H
#define RL_BASE_CUBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_cubin_function {
  const unsigned char *code; /* points into the cubin */
  size_t size;
  uint32_t symbol_index; /* index of the function in the cubin's symbol table */
  /* Number of named barriers that a block uses: the highest barrier index + 1; 16 when the code computes the index. */
  int barriers;
  char sha256[65]; /* SHA-256 of the function's code */
} rl_cubin_function;

/* A __device__ or __managed__ variable. */
typedef struct rl_cubin_variable {
  const char *name; /* mangled; points into the cubin */
  uint64_t size;    /* number of bytes */
} rl_cubin_variable;

/* Returns whether the bytes are a 64-bit ELF image of GPU code whose section and program header tables are inside the image.
 * Otherwise the driver, which is not given the size, would read beyond its end. */
bool rl_cubin_is_complete(const void *cubin, size_t size);
/* Finds the function with this mangled name. Fails with RL_INPUT when the cubin is malformed or has no such function. */
int rl_cubin_find(const void *cubin, size_t size, const char *name, rl_cubin_function *function, rl_error *err);
/* Returns the number of variables in writable memory (sections .nv.global and .nv.global.init), and stores the first `capacity`
 * of them in `variables`. Fails with RL_INPUT when the cubin is malformed, or when it may have variables that are not listed: it
 * has several symbol tables, another writable section, or bytes between variables that are not padding. The padding is at most
 * 255 bytes, so variables with a larger alignment may be refused. */
int64_t rl_cubin_list_variables(const void *cubin, size_t size, rl_cubin_variable *variables, int64_t capacity, rl_error *err);

#ifdef __cplusplus
}
#endif

#endif
