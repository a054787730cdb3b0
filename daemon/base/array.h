/* Enlarges malloc'ed arrays. For each array the caller has three variables: the pointer to the items, the number of items, and
 * the capacity. */
#ifndef RL_BASE_ARRAY_H
#define RL_BASE_ARRAY_H

#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes space for one more item in an array of `count` items. array_pointer: address of the caller's pointer to the items. If the
 * array is full, doubles its capacity, which may move the items. Fails with RL_ERRNO if memory is exhausted; the array is then
 * unchanged. */
int rl_array_reserve(void *array_pointer, size_t count, size_t *capacity, size_t item_size, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
