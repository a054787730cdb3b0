/* Implements suite_metrics.h. */
#include "api/client/suite_metrics.h"

#include <stdbool.h>
#include <string.h>

#include "base/metric_unit.h"

/* --- values -------------------------------------------------------------------------------------------------------------- */

char *rl_metric_format(char *cell, const char *key, double value) {
  char text[RL_METRIC_TEXT_SIZE];
  if (isnan(value)) return rl_format_count(cell, value);
  if (rl_metric_unit_word(key) != NULL) snprintf(cell, RL_CELL_SIZE, "%s", rl_metric_text(text, key, value, 4));
  /* A rate has no symbol: its unit is too wide for the cell, and the metric's name contains the unit. */
  else if (fabs(value) >= 1e4) rl_format_count(cell, value);
  else snprintf(cell, RL_CELL_SIZE, "%.4g", value);
  return cell;
}

static int change_decimals(double percent) {
  const double size = fabs(percent);
  return size < 9.995 ? 2 : size < 999.95 ? 1 : 0;
}

char *rl_metric_format_change(char *cell, double ratio) {
  if (isnan(ratio)) return rl_format_count(cell, ratio);
  snprintf(cell, RL_CELL_SIZE, "%+.*f %%", change_decimals(ratio * 100), ratio * 100);
  return cell;
}

char *rl_metric_format_interval(char *cell, const cJSON *verdict) {
  char ends[2][RL_CELL_SIZE];
  const cJSON *interval = rl_json_at(verdict, "interval_ratio");
  bool is_known = false;
  for (int i = 0; i < 2; i++) is_known |= cJSON_IsNumber(cJSON_GetArrayItem(interval, i));
  if (!is_known) return rl_format_count(cell, (double)NAN);
  for (int i = 0; i < 2; i++) {
    const double percent = rl_json_number(cJSON_GetArrayItem(interval, i), "") * 100;
    if (isnan(percent)) snprintf(ends[i], sizeof ends[i], "?");
    else snprintf(ends[i], sizeof ends[i], fabs(percent) < 99.95 ? "%+.1f" : "%+.0f", percent);
  }
  snprintf(cell, RL_CELL_SIZE, "[%.24s, %.24s]", ends[0], ends[1]);
  return cell;
}

/* --- the document -------------------------------------------------------------------------------------------------------- */

size_t rl_metric_job_length(const char *key) {
  const char *slash = strrchr(key, '/');
  return slash != NULL ? (size_t)(slash - key) : 0;
}

rl_block_range rl_metric_block_range(const cJSON *run, const char *key) {
  rl_block_range range = {.min = NAN, .max = NAN};
  const cJSON *value;
  cJSON_ArrayForEach (value, rl_json_at(run, "values")) {
    const double number = rl_json_number(value, "value");
    if (strcmp(rl_json_text(value, "metric"), key) != 0 || rl_json_text(value, "dropped_reason")[0] != '\0' || isnan(number))
      continue;
    range.min = fmin(range.min, number);
    range.max = fmax(range.max, number);
    range.count++;
  }
  return range;
}

char *rl_cause_heading(char heading[RL_CAUSE_HEADING_SIZE], const cJSON *cause) {
  const double difference_us = rl_json_number(cause, "difference_us"), share = rl_json_number(cause, "share_ratio");
  char time[RL_CELL_SIZE], of_change[RL_CELL_SIZE] = "", size[2 * RL_CELL_SIZE + 8] = "";
  if (share >= 0) snprintf(of_change, sizeof of_change, " (%.0f %% of the change)", 100 * share);
  else if (share < 0) snprintf(of_change, sizeof of_change, " (against the change)");
  if (!isnan(difference_us))
    snprintf(size, sizeof size, "%s%s%s, ", difference_us > 0 ? "+" : "", rl_format_us(time, difference_us), of_change);
  snprintf(heading, RL_CAUSE_HEADING_SIZE, "%s%.40s: ", size, rl_json_text(cause, "class"));
  return heading;
}

const char *rl_cause_subject(const cJSON *cause) {
  const char *subject = rl_json_text(cause, "subject");
  return strncmp(rl_json_text(cause, "text"), subject, strlen(subject)) != 0 ? subject : "";
}

const char *rl_suite_run_verdict(const cJSON *run) {
  static const char *const verdicts[] = {"faster", "same", "slower", "incomparable"};
  const char *verdict = rl_json_text(run, "verdict");
  for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++)
    if (strcmp(verdict, verdicts[i]) == 0) return verdicts[i];
  return "inconclusive";
}

bool rl_suite_run_needs_own_row(const cJSON *run) {
  const cJSON *metric;
  const bool completed = strcmp(rl_json_text(run, "state"), "completed") == 0;
  cJSON_ArrayForEach (metric, rl_json_at(run, "verdicts"))
    if (completed && strcmp(rl_json_text(metric, "verdict"), rl_suite_run_verdict(run)) == 0) return false;
  return true;
}

const char *rl_suite_run_reason(const cJSON *run) {
  const char *reason = rl_json_text(run, "reason"), *state = rl_json_text(run, "state");
  if (*reason != '\0') return reason;
  return strcmp(state, "completed") != 0 ? state : rl_suite_run_verdict(run);
}
