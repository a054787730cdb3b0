/* Implements suite_promotion.h. Checks the values of the run, then stores the baseline. */
#include "suite/suite_promotion.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "analyze/verdict.h"
#include "store/suites.h"
#include "suite/suite_progress.h"
#include "suite/suite_values.h"

/* Fails with RL_SUITE_NOT_ELIGIBLE at /run. */
static int refuse(rl_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int refuse(rl_error *err, const char *format, ...) {
  char reason[sizeof err->message];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reason, sizeof reason, format, arguments);
  va_end(arguments);
  rl_fail_at(err, "/run", "%s", reason);
  err->domain = RL_SUITE;
  err->code = RL_SUITE_NOT_ELIGIBLE;
  return -1;
}

static int check_outliers(const rl_suite_series *series, double median, double threshold_ratio, rl_error *err) {
  size_t block;
  if (rl_verdict_find_outlying_block(series->values, series->count, threshold_ratio, &block, err) < 0) return -1;
  if (block == series->count) return 0;
  return refuse(err,
                "block %zu of %s is an outlier: %.5g, while the median of the blocks is %.5g. A baseline with an outlier hides "
                "slower runs: promote another run",
                block, series->metric, series->values[block], median);
}

/* Checks the values of one metric. needed: minimum number of blocks with a value. Accepts a metric without any values, which the
 * device can't measure. */
static int check_series(const rl_suite *suite, const rl_suite_series *series, size_t needed, rl_error *err) {
  size_t finite_count;
  double median = rl_suite_series_median(series, &finite_count);
  const rl_suite_metric *metric = rl_suite_find_metric_by_key(suite, series->metric);
  if (series->dropped_count > 0 && (finite_count < needed || series->dropped_count > finite_count))
    return refuse(
        err, "%zu of %zu blocks of %s were dropped as suspect, throttled or failed, and a baseline needs %zu; block %zu: %s",
        series->dropped_count, series->count, series->metric, needed, series->first_dropped_block, series->first_dropped_reason);
  if (series->other_processes[0] != '\0')
    return refuse(err, "other processes used the device while block %zu of %s was measured: %s",
                  series->first_block_with_other_processes, series->metric, series->other_processes);
  if (finite_count > 0 && finite_count < needed)
    return refuse(err, "%s has values of %zu blocks, and a baseline needs %zu", series->metric, finite_count, needed);
  return finite_count > 0 && metric != NULL ? check_outliers(series, median, metric->threshold_ratio, err) : 0;
}

static int check_values(rl_store *store, int64_t run_id, rl_error *err) {
  RL_CLEANUP(rl_suite_progress_clear) rl_suite_progress progress = {0};
  RL_CLEANUP(rl_suite_values_clear) rl_suite_values values = {0};
  if (rl_suite_progress_read(store, run_id, &progress, err) < 0 || rl_suite_values_read(store, run_id, &values, err) < 0)
    return -1;
  size_t needed = rl_verdict_count_needed_blocks((size_t)values.blocks.count), measured = 0;
  for (int i = 0; i < values.blocks.count; i++) {
    size_t finite_count;
    if (check_series(progress.suite, &values.blocks.items[i], needed, err) < 0) return -1;
    measured += isfinite(rl_suite_series_median(&values.blocks.items[i], &finite_count));
  }
  return measured > 0 ? 0 : refuse(err, "suite run %lld has no values", (long long)run_id);
}

int rl_suite_promote_run(rl_store *store, const char *suite, const char *name, int64_t run_id, rl_error *err) {
  if (rl_store_baseline_check(store, suite, run_id, err) < 0 || check_values(store, run_id, err) < 0) return -1;
  return rl_store_baseline_insert(store, suite, name, run_id, err); /* checks the run's state again, inside the transaction */
}
