/* Decodes base64 in requests. */
#ifndef RL_KERNELS_SOURCE_BASE64_H
#define RL_KERNELS_SOURCE_BASE64_H

#include <stddef.h>

#include "base/error.h"

/* Decodes 1 to max_size bytes and appends a NUL. The caller frees *bytes. Returns -1 with RL_INPUT at the JSON pointer `pointer`
 * when the text is not base64 or has another length. */
int rl_source_decode_base64(const char *text, size_t max_size, const char *pointer, unsigned char **bytes, size_t *size,
                            rl_error *err);

#endif
