/* Implements sorted_names.h with qsort and bsearch. */
#include "base/sorted_names.h"

#include <stdlib.h>
#include <string.h>

static int compare_names(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

void rl_names_sort(const char **names, size_t count) {
  if (count > 0) qsort(names, count, sizeof *names, compare_names);
}

bool rl_names_contain(const char *const *names, size_t count, const char *name) {
  return count > 0 && bsearch(&name, names, count, sizeof *names, compare_names) != NULL;
}
