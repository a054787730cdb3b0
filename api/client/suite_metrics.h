/* The metrics of a suite run's document (GET /suite-runs/{id}): their units, which their names state, and the values of their
 * blocks. */
#ifndef RL_CLIENT_SUITE_METRICS_H
#define RL_CLIENT_SUITE_METRICS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "api/client/cells.h"

/* Writes a metric's unit into unit[RL_CELL_SIZE] and returns it: "ms" for train/fp16/epoch_ms_median, "images/s" for
 * images_per_s, "1" for a name without a unit. */
char *rl_metric_unit(char *unit, const char *key);
/* Formats a value in the metric's unit, as for a table; NAN is shown as "—". Returns cell. */
char *rl_metric_format(char *cell, const char *key, double value);
/* Formats ratio as a signed percentage, NAN is shown as "—". Returns cell. */
char *rl_metric_format_change(char *cell, double ratio);
/* Formats the interval of a verdict in percent, "[-0.4, +0.6]". An unknown end is "?". Returns cell. */
char *rl_metric_format_interval(char *cell, const cJSON *verdict);

/* Returns the length of "train/fp16" in train/fp16/epoch_ms_median; 0: the key has no job. */
size_t rl_metric_job_length(const char *key);

typedef struct rl_block_range { /* range of the values of the blocks that were not dropped */
  double min, max;              /* NAN: all blocks were dropped */
  int count;
} rl_block_range;
rl_block_range rl_metric_block_range(const cJSON *run, const char *key);

/* Returns the verdict of the run. "inconclusive" if it is missing or unknown, so that it is never taken for a pass. */
const char *rl_suite_run_verdict(const cJSON *run);
/* Returns whether no metric's verdict explains the run's: it failed, was cancelled or quarantined. */
bool rl_suite_run_needs_own_row(const cJSON *run);
/* Returns the reason of the run's state or verdict; never empty. */
const char *rl_suite_run_reason(const cJSON *run);

#endif
