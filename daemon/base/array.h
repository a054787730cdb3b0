/* Grows arrays in allocated memory: an array is a pointer to its items, their number and its capacity, which the caller keeps. */
#ifndef RL_BASE_ARRAY_H
#define RL_BASE_ARRAY_H

#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes space for one more item, item number `count`, in the array whose pointer is stored at array_pointer. If the array is
 * full, doubles its capacity, which may move the items. Fails with RL_ERRNO when memory is exhausted; the array is then
 * unchanged. */
int rl_array_reserve(void *array_pointer, size_t count, size_t *capacity, size_t item_size, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
