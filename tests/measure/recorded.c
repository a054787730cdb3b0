/* Parses the lines of a recorded file, and gives the blocks of a window to the judgement of a suite run. */
#include "recorded.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/rank_test.h"

recorded_suite *recorded_find_suite(recorded_history *history, const char *name) {
  for (size_t i = 0; i < history->suite_count; i++)
    if (strcmp(history->suites[i].name, name) == 0) return &history->suites[i];
  return NULL;
}

static recorded_suite *find_or_add_suite(recorded_history *history, const char *name) {
  recorded_suite *found = recorded_find_suite(history, name);
  if (found != NULL) return found;
  if (history->suite_count == RECORDED_MAX_SUITES) return NULL;
  recorded_suite *added = &history->suites[history->suite_count++];
  snprintf(added->name, sizeof added->name, "%s", name);
  return added;
}

static recorded_metric *find_or_add_metric(recorded_suite *suite, const char *key) {
  for (size_t i = 0; i < suite->metric_count; i++)
    if (strcmp(suite->metrics[i].key, key) == 0) return &suite->metrics[i];
  if (suite->metric_count == RECORDED_MAX_METRICS) return NULL;
  recorded_metric *added = &suite->metrics[suite->metric_count++];
  snprintf(added->key, sizeof added->key, "%s", key);
  added->is_time = strstr(key, "_us_") != NULL || strstr(key, "_ms_") != NULL;
  for (size_t i = 0; i < RECORDED_MAX_BLOCKS; i++) added->values[i] = NAN;
  return added;
}

static int add_line(char *line, recorded_history *history) {
  char *rest = line, *name = strsep(&rest, ","), *key = strsep(&rest, ","), *block = strsep(&rest, ",");
  if (rest == NULL) return -1;
  recorded_suite *suite = find_or_add_suite(history, name);
  recorded_metric *metric = suite != NULL ? find_or_add_metric(suite, key) : NULL;
  size_t index = strtoul(block, NULL, 10);
  if (metric == NULL || index >= RECORDED_MAX_BLOCKS) return -1;
  metric->values[index] = *rest != '\0' ? strtod(rest, NULL) : NAN;
  if (suite->block_count < index + 1) suite->block_count = index + 1;
  return 0;
}

int recorded_read(const char *path, recorded_history *history) {
  char line[512];
  int rc = 0;
  FILE *file = fopen(path, "r");
  if (file == NULL) return -1;
  *history = (recorded_history){0};
  while (rc == 0 && fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    if (line[0] == '#' && history->device[0] == '\0') snprintf(history->device, sizeof history->device, "%s", line + 2);
    if (line[0] != '#' && strncmp(line, "suite,", 6) != 0) rc = add_line(line, history);
  }
  fclose(file);
  return rc;
}

size_t recorded_window_size(const recorded_window *window) { return (window->baseline_runs + 2) * window->blocks; }

static double median(const double *values, size_t count) {
  double kept[RECORDED_MAX_BLOCKS];
  size_t finite_count = 0;
  for (size_t i = 0; i < count; i++)
    if (isfinite(values[i])) kept[finite_count++] = values[i];
  return rl_compute_quartiles(kept, finite_count).median;
}

/* One metric in a window: the values of the current and of the confirming blocks, the runs of the baseline, and their medians
 * (history). */
typedef struct windowed_metric {
  double current[RECORDED_MAX_BLOCKS], confirmation[RECORDED_MAX_BLOCKS], history[RECORDED_MAX_BLOCKS];
  rl_verdict_blocks runs[RECORDED_MAX_BLOCKS];
} windowed_metric;

static rl_verdict_metric metric_in_window(const recorded_metric *metric, const recorded_window *window, double factor,
                                          windowed_metric *windowed) {
  size_t n = window->blocks, runs = window->baseline_runs;
  const double *values = metric->values + window->first;
  for (size_t i = 0; i < runs; i++) {
    windowed->runs[i] = (rl_verdict_blocks){values + i * n, NULL, n};
    windowed->history[i] = median(values + i * n, n);
  }
  for (size_t i = 0; i < n; i++) {
    windowed->current[i] = factor * values[runs * n + i];
    windowed->confirmation[i] = factor * values[(runs + 1) * n + i];
  }
  return (rl_verdict_metric){.key = metric->key,
                             .threshold_ratio = window->threshold_ratio,
                             .baseline_runs = windowed->runs,
                             .baseline_run_count = runs,
                             .current = {windowed->current, NULL, n},
                             .history = windowed->history,
                             .history_count = runs};
}

int recorded_judge(const recorded_suite *suite, const recorded_window *window, rl_verdict_judgement *judged,
                   rl_verdict_summary *summary) {
  static windowed_metric parts[RECORDED_MAX_METRICS];
  rl_verdict_metric metrics[RECORDED_MAX_METRICS];
  const rl_verdict_suite whole = {.metrics = metrics, .metric_count = suite->metric_count};
  for (size_t i = 0; i < suite->metric_count; i++) {
    double factor = i == window->slowed_metric ? 1 + window->slow_down_ratio : 1;
    metrics[i] = metric_in_window(&suite->metrics[i], window, factor, &parts[i]);
    if (strstr(suite->metrics[i].key, "accuracy") != NULL) metrics[i].direction = RL_HIGHER_IS_BETTER;
  }
  if (rl_verdict_judge_suite(&whole, judged, summary, NULL) < 0) return -1;
  if (summary->unconfirmed == 0) return 0;
  for (size_t i = 0; i < suite->metric_count; i++)
    metrics[i].confirmation = (rl_verdict_blocks){parts[i].confirmation, NULL, window->blocks};
  return rl_verdict_judge_suite(&whole, judged, summary, NULL);
}
