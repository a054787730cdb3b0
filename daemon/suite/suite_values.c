/* Implements suite_values.h. The query's rows are sorted by metric and become one series for each metric. */
#include "suite/suite_values.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/rank_test.h"

/* Returns the last series if it belongs to the metric, else adds a series; NULL if memory is exhausted. */
static rl_suite_series *find_or_add(rl_suite_series_list *list, const char *metric) {
  if (list->count > 0 && strcmp(list->items[list->count - 1].metric, metric) == 0) return &list->items[list->count - 1];
  rl_suite_series *grown = realloc(list->items, (size_t)(list->count + 1) * sizeof *grown);
  if (grown == NULL) return NULL;
  list->items = grown;
  rl_suite_series *added = &grown[list->count++];
  *added = (rl_suite_series){0};
  snprintf(added->metric, sizeof added->metric, "%s", metric);
  for (int i = 0; i < RL_SUITE_MEASURED_BLOCKS_MAX; i++) added->values[i] = added->sm_cycles[i] = NAN;
  return added;
}

static void record_dropped_block(rl_suite_series *series, int64_t block, const char *reason) {
  if (series->dropped_count++ > 0) return;
  series->first_dropped_block = (size_t)block;
  snprintf(series->first_dropped_reason, sizeof series->first_dropped_reason, "%s", reason);
}

/* Returns the list to which values of blocks with this role belong; NULL if values of this role are not used. */
static rl_suite_series_list *find_list(rl_suite_values *values, const char *role) {
  const struct {
    const char *role;
    rl_suite_series_list *list;
  } lists[] = {{"block", &values->blocks},
               {"confirmation", &values->confirmations},
               {"baseline", &values->baselines},
               {"baseline_confirmation", &values->baseline_confirmations}};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    if (strcmp(lists[i].role, role) == 0) return lists[i].list;
  return NULL;
}

static int add_value(rl_cursor *cursor, const char *metric, rl_suite_values *values, rl_error *err) {
  int64_t block = rl_cursor_integer(cursor, 2);
  const char *dropped_reason = rl_cursor_text(cursor, 5), *other_processes = rl_cursor_text(cursor, 6);
  rl_suite_series_list *list = find_list(values, rl_cursor_text(cursor, 1));
  if (list == NULL || block < 0 || block >= RL_SUITE_MEASURED_BLOCKS_MAX) return 0;
  rl_suite_series *series = find_or_add(list, metric);
  if (series == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for the values of a suite run");
  series->values[block] = rl_cursor_real(cursor, 3);
  series->sm_cycles[block] = rl_cursor_real(cursor, 4);
  if (series->count < (size_t)block + 1) series->count = (size_t)block + 1;
  if (other_processes != NULL && series->other_processes[0] == '\0') {
    series->first_block_with_other_processes = (size_t)block;
    snprintf(series->other_processes, sizeof series->other_processes, "%s", other_processes);
  }
  if (dropped_reason != NULL) record_dropped_block(series, block, dropped_reason);
  return 0;
}

int rl_suite_values_read(rl_store *store, int64_t run_id, rl_suite_values *values, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *metric;
  int found;
  if (rl_store_query(store, RL_QUERY_SUITE_RUN_VALUES, RL_BINDINGS(RL_BIND_INTEGER(":run", run_id)), &cursor, err) < 0) return -1;
  while ((found = rl_cursor_next(cursor, &metric, err)) > 0)
    if (add_value(cursor, metric, values, err) < 0) return -1;
  return found;
}

void rl_suite_values_clear(rl_suite_values *values) {
  free(values->blocks.items);
  free(values->confirmations.items);
  free(values->baselines.items);
  free(values->baseline_confirmations.items);
  *values = (rl_suite_values){0};
}

const rl_suite_series *rl_suite_series_find(const rl_suite_series_list *list, const char *metric) {
  for (int i = 0; i < list->count; i++)
    if (strcmp(list->items[i].metric, metric) == 0) return &list->items[i];
  return NULL;
}

double rl_suite_series_median(const rl_suite_series *series, size_t *finite_count) {
  double values[RL_SUITE_MEASURED_BLOCKS_MAX];
  size_t count = 0;
  for (size_t i = 0; i < series->count; i++)
    if (isfinite(series->values[i])) values[count++] = series->values[i];
  *finite_count = count;
  return rl_compute_quartiles(values, count).median;
}
