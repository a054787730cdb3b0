/* Implements metrics.h. */
#include "model/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_names(const void *a, const void *b) {
  return strcmp(((const rl_metric_value *)a)->name, ((const rl_metric_value *)b)->name);
}

void rl_metric_values_sort(rl_metric_value *items, size_t count) {
  if (count > 0) qsort(items, count, sizeof *items, compare_names);
}

const rl_metric_value *rl_metric_find(const rl_metric_values *values, const char *name) {
  if (values->count == 0) return NULL;
  return bsearch(&(rl_metric_value){.name = name}, values->items, values->count, sizeof *values->items, compare_names);
}

double rl_metric_values_get(const rl_metric_values *values, const char *name) {
  const rl_metric_value *found = rl_metric_find(values, name);
  return found ? found->value : NAN;
}
