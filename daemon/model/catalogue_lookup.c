/* Implements the functions of catalogue.h, whose tables are generated. */
#include <stdlib.h>
#include <string.h>

#include "model/catalogue.h"

static int compare_metric(const void *name, const void *metric) { return strcmp(name, ((const rl_raw_metric *)metric)->name); }

const rl_raw_metric *rl_raw_metric_find(const char *name) {
  return bsearch(name, rl_raw_metrics, rl_raw_metric_count, sizeof *rl_raw_metrics, compare_metric);
}

bool rl_raw_metric_is_only_on_raw_page(const rl_raw_metric *metric) {
  for (size_t i = 0; i < rl_section_count; i++)
    if ((metric->sections & UINT32_C(1) << i) != 0 && rl_sections[i].row_count > 0) return false;
  return true;
}

bool rl_is_only_on_raw_page(const char *name) {
  const rl_raw_metric *metric = rl_raw_metric_find(name);
  return metric != NULL && rl_raw_metric_is_only_on_raw_page(metric);
}

static int compare_row(const void *key, const void *row) { return strcmp(key, (*(const rl_section_row *const *)row)->key); }

const rl_section_row *rl_computed_row_find(const char *key) {
  const rl_section_row *const *found =
      bsearch(key, rl_computed_rows, rl_computed_row_count, sizeof *rl_computed_rows, compare_row);
  return found != NULL ? *found : NULL;
}
