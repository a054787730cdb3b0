/* Implements array.h. Because the capacity doubles, growing an array to n items copies fewer than 2 n items in total. */
#include "base/array.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const size_t FIRST_CAPACITY = 256;

int rl_array_reserve(void *array_pointer, size_t count, size_t *capacity, size_t item_size, rl_error *err) {
  void *items;
  if (count < *capacity) return 0;
  size_t new_capacity = *capacity == 0 ? FIRST_CAPACITY : 2 * *capacity;
  memcpy(&items, array_pointer, sizeof items); /* memcpy, because this function does not know the type of the caller's pointer */
  items = new_capacity <= PTRDIFF_MAX / item_size ? realloc(items, new_capacity * item_size) : NULL;
  if (items == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for an array of %zu items", new_capacity);
  memcpy(array_pointer, &items, sizeof items);
  *capacity = new_capacity;
  return 0;
}
