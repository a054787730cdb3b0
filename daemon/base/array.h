/* Arrays that grow. */
#ifndef RL_BASE_ARRAY_H
#define RL_BASE_ARRAY_H

#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes space for item `count` of an array whose pointer is at array_pointer; the capacity doubles. RL_ERRNO: out of memory, and
 * the array is unchanged. */
int rl_array_reserve(void *array_pointer, size_t count, size_t *capacity, size_t item_size, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
