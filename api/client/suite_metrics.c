/* Implements suite_metrics.h. A table maps words in the names of metrics to units. */
#include "api/client/suite_metrics.h"

#include <stdbool.h>
#include <string.h>

/* --- units --------------------------------------------------------------------------------------------------------------- */

typedef struct unit {
  const char *word, *symbol; /* word: a word of the metric's name, between underscores */
  double to_cell;            /* factor from this unit to the unit that `format` expects */
  rl_cell_format format;     /* format of the value; NULL: the number followed by the symbol */
} unit;

static const unit units[] = {{"ns", "ns", 1e-3, rl_format_us},
                             {"us", "µs", 1, rl_format_us},
                             {"ms", "ms", 1, rl_format_ms},
                             {"s", "s", 1e3, rl_format_ms},
                             {"bytes", "byte", 1, NULL},
                             {"mhz", "MHz", 1, NULL},
                             {"ratio", "1", 1, rl_format_percent},
                             {"j", "J", 1, NULL},
                             {"w", "W", 1, NULL},
                             {"c", "°C", 1, NULL},
                             {NULL, "1", 1, NULL}};

static bool is_word(const char *text, size_t length, const char *word) {
  return strlen(word) == length && memcmp(text, word, length) == 0;
}

static const char *metric_name(const char *key) {
  const char *slash = strrchr(key, '/');
  return slash != NULL ? slash + 1 : key;
}

/* Returns the first unit that a word of the metric's name stands for, except the name's first word. Returns the last element of
 * the table if no word does. */
static const unit *find_unit(const char *name) {
  const unit *no_unit = units;
  for (; no_unit->word != NULL; no_unit++) continue;
  for (const char *word = name; *word != '\0'; word += word[strcspn(word, "_")] == '_' ? strcspn(word, "_") + 1 : strlen(word))
    for (const unit *candidate = units; word != name && candidate->word != NULL; candidate++)
      if (is_word(word, strcspn(word, "_"), candidate->word)) return candidate;
  return no_unit;
}

/* Writes "images/s" for images_per_s. Returns false if the name has no "_per_". */
static bool write_rate(char *symbol, const char *name) {
  const char *per = strstr(name, "_per_");
  if (per == NULL) return false;
  const char *numerator = per;
  while (numerator > name && numerator[-1] != '_') numerator--;
  const char *denominator = per + strlen("_per_");
  snprintf(symbol, RL_CELL_SIZE, "%.*s/%.*s", (int)(per - numerator), numerator, (int)strcspn(denominator, "_"), denominator);
  return true;
}

char *rl_metric_unit(char *symbol, const char *key) {
  const char *name = metric_name(key);
  if (!write_rate(symbol, name)) snprintf(symbol, RL_CELL_SIZE, "%s", find_unit(name)->symbol);
  return symbol;
}

static char *format_bytes(char *cell, double bytes) {
  if (fabs(bytes) < 1024) return snprintf(cell, RL_CELL_SIZE, "%.0f B", bytes), cell;
  if (fabs(bytes) < 1048576) return snprintf(cell, RL_CELL_SIZE, "%.1f KiB", bytes / 1024), cell;
  return rl_format_bytes(cell, bytes);
}

char *rl_metric_format(char *cell, const char *key, double value) {
  char symbol[RL_CELL_SIZE];
  const char *name = metric_name(key);
  if (isnan(value)) return rl_format_count(cell, value);
  const bool rate = write_rate(symbol, name);
  const unit *found = find_unit(name);
  if (!rate && found->format != NULL) return found->format(cell, value * found->to_cell);
  if (!rate && found->word != NULL && strcmp(found->word, "bytes") == 0) return format_bytes(cell, value);
  if (fabs(value) >= 1e4) return rl_format_count(cell, value);
  /* A rate has no symbol: its unit is too wide for the cell, and the metric's name contains the unit. */
  const bool shows_symbol = !rate && found->word != NULL;
  snprintf(cell, RL_CELL_SIZE, "%.4g%s%s", value, shows_symbol ? " " : "", shows_symbol ? found->symbol : "");
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
    else snprintf(ends[i], sizeof ends[i], fabs(percent) < 999.95 ? "%+.1f" : "%+.0f", percent);
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
