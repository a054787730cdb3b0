/* Functions on the document of a suite run (GET /suite-runs/{id}): the units of its metrics (parts of the metrics' names), the
 * values of its blocks, and its verdict. */
#ifndef RL_CLIENT_SUITE_METRICS_H
#define RL_CLIENT_SUITE_METRICS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "api/client/cells.h"

/* Formats a value for a table, with the unit that the metric's name contains, except the unit of a rate. NAN becomes "—". Returns
 * cell. */
char *rl_metric_format(char *cell, const char *key, double value);
/* Formats a relative change as a signed percentage: 0.05 as "+5.00 %". NAN becomes "—". Returns cell. */
char *rl_metric_format_change(char *cell, double ratio);
/* Formats the interval of a verdict in percent, "[-0.4, +0.6]". An unknown end is "?". Returns cell. */
char *rl_metric_format_interval(char *cell, const cJSON *verdict);

/* Returns the length of the part of a metric's key that names a job: 10 for train/fp16/epoch_ms_median, whose job is
 * "train/fp16". Returns 0 if the key names no job. */
size_t rl_metric_job_length(const char *key);

typedef struct rl_block_range { /* range of a metric's values in the blocks that were not dropped */
  double min, max;              /* NAN: every block was dropped or has no value */
  int count;
} rl_block_range;
rl_block_range rl_metric_block_range(const cJSON *run, const char *key);

enum { RL_CAUSE_HEADING_SIZE = 2 * RL_CELL_SIZE + 64 };
/* Writes how much a cause changes the metric, if that is known, and its class: "+21.40 ms (79 % of the change), code: ". Returns
 * heading. */
char *rl_cause_heading(char heading[RL_CAUSE_HEADING_SIZE], const cJSON *cause);
/* Returns the kernel or condition that the cause is about; "" if there is none or the cause's text begins with it. */
const char *rl_cause_subject(const cJSON *cause);

/* Returns the verdict of the suite run; "inconclusive" if the verdict is missing or unknown, so that it is never taken for a
 * pass. */
const char *rl_suite_run_verdict(const cJSON *run);
/* Returns whether an output needs a row for the suite run itself, because no metric has the run's verdict: the run failed, was
 * cancelled or was quarantined. */
bool rl_suite_run_needs_own_row(const cJSON *run);
/* Returns the reason for the suite run's state or verdict; the text is never empty. */
const char *rl_suite_run_reason(const cJSON *run);

#endif
