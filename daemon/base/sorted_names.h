/* Sorts arrays of names and searches in them. The caller owns the array and the texts. */
#ifndef RL_BASE_SORTED_NAMES_H
#define RL_BASE_SORTED_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sorts the names in the order of strcmp. */
void rl_names_sort(const char **names, size_t count);
/* Returns whether a sorted array contains the name. */
bool rl_names_contain(const char *const *names, size_t count, const char *name);

#ifdef __cplusplus
}
#endif
#endif
