#include "analyze/computed_metrics.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/expression.h"
#include "model/catalogue.h"

#define DURATION "gpu__time_duration.sum"

/* Other names of a number, as expressions over collected metrics. Registers and shared memory are allocated in units of 8
 * registers a thread and of 128 bytes on every chip of the catalogue (CUDA occupancy calculator). */
static const struct {
  const char *name, *unit, *expression;
} equivalents[] = {
    {"gpu__time_duration.avg", "ns", DURATION},
    {"gpu__time_duration.max", "ns", DURATION},
    {"gpu__time_duration.min", "ns", DURATION},
    {"launch__registers_per_thread_allocated", "register/thread", "8 * ceil(launch__registers_per_thread / 8)"},
    {"launch__shared_mem_per_block", "byte/block",
     "launch__shared_mem_per_block_driver + launch__shared_mem_per_block_dynamic + launch__shared_mem_per_block_static"},
    {"launch__shared_mem_per_block_allocated", "byte/block",
     "128 * ceil((launch__shared_mem_per_block_driver + launch__shared_mem_per_block_dynamic + "
     "launch__shared_mem_per_block_static) / 128)"},
    {"sass__inst_executed_per_opcode_with_modifier_all", "", "sass__inst_executed_per_opcode"},
    {"sass__inst_executed_per_opcode_with_modifier_selective", "", "sass__inst_executed_per_opcode"},
    {"sass__thread_inst_executed_true_per_opcode", "", "smsp__thread_inst_executed_pred_on.sum"},
    {"sass__thread_inst_executed_true_per_opcode_with_modifier_all", "", "smsp__thread_inst_executed_pred_on.sum"},
    {"sass__thread_inst_executed_true_per_opcode_with_modifier_selective", "", "smsp__thread_inst_executed_pred_on.sum"},
};
enum { EQUIVALENT_COUNT = sizeof equivalents / sizeof *equivalents };

/* A rollup that follows from another one of the same counter. The peak of a sum is the sum of the peaks, so a sum and an average
 * have the same percentage. A rate per second is the rollup over the duration; it exists for counters with another such rate. */
static const struct {
  const char *suffix, *source;
  bool is_rate;
} rollups[] = {
    {".sum.pct_of_peak_sustained_active", ".avg.pct_of_peak_sustained_active", false},
    {".sum.pct_of_peak_sustained_elapsed", ".avg.pct_of_peak_sustained_elapsed", false},
    {".avg.per_second", ".avg", true},
    {".max.per_second", ".max", true},
    {".min.per_second", ".min", true},
    {".sum.per_second", ".sum", true},
};
enum { ROLLUP_COUNT = sizeof rollups / sizeof *rollups };

/* --- names ------------------------------------------------------------------------------------------------------------- */

typedef struct name_set {
  const char *const *names;
  size_t count;
} name_set;

static int compare_names(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static bool contains(const name_set *set, const char *name) {
  return bsearch(&name, set->names, set->count, sizeof *set->names, compare_names) != NULL;
}

/* The lookup of an expression that finds out whether all inputs were collected. */
typedef struct input_check {
  const name_set *collected;
  bool all_found;
} input_check;

static double find_input(void *context, const char *name) {
  input_check *check = context;
  check->all_found &= contains(check->collected, name);
  return 1;
}

static bool has_inputs(const name_set *collected, const char *expression) {
  input_check check = {collected, true};
  double value;
  rl_error err;
  return rl_expression_evaluate(expression, strlen(expression), &(rl_scope){find_input, &check}, &value, &err) == 0 &&
         check.all_found;
}

static bool ends_with(const char *text, const char *suffix) {
  const size_t length = strlen(text), suffix_length = strlen(suffix);
  return length > suffix_length && strcmp(text + length - suffix_length, suffix) == 0;
}

/* Replaces the suffix `from` of a name, which has it, by `to`. */
static void replace_suffix(const char *name, const char *from, const char *to, char replaced[RL_COMPUTED_METRIC_NAME_SIZE]) {
  snprintf(replaced, RL_COMPUTED_METRIC_NAME_SIZE, "%.*s%s", (int)(strlen(name) - strlen(from)), name, to);
}

static bool has_rate(const name_set *collected, const char *name, const char *suffix) {
  char rate[RL_COMPUTED_METRIC_NAME_SIZE];
  for (int i = 0; i < ROLLUP_COUNT; i++) {
    if (!rollups[i].is_rate) continue;
    replace_suffix(name, suffix, rollups[i].suffix, rate);
    if (contains(collected, rate)) return true;
  }
  return false;
}

/* Lists the rollups of one collected metric. */
static int list_rollups(const name_set *collected, const char *name, int (*add)(void *, const char *), void *context) {
  char other[RL_COMPUTED_METRIC_NAME_SIZE];
  for (int i = 0; i < ROLLUP_COUNT; i++) {
    if (!ends_with(name, rollups[i].source)) continue;
    if (rollups[i].is_rate && (!contains(collected, DURATION) || !has_rate(collected, name, rollups[i].source))) continue;
    replace_suffix(name, rollups[i].source, rollups[i].suffix, other);
    int stopped = contains(collected, other) ? 0 : add(context, other);
    if (stopped != 0) return stopped;
  }
  return 0;
}

/* Returns the first row with this metric that computes it from others; NULL: none does. */
static const rl_section_row *find_row(const char *metric) {
  for (size_t s = 0; s < rl_section_count; s++)
    for (size_t r = 0; r < rl_sections[s].row_count; r++) {
      const rl_section_row *row = &rl_sections[s].rows[r];
      if (strcmp(row->key, metric) == 0 && strcmp(row->expression, metric) != 0) return row;
    }
  return NULL;
}

static int list_rows(const name_set *collected, int (*add)(void *, const char *), void *context) {
  for (size_t s = 0; s < rl_section_count; s++)
    for (size_t r = 0; r < rl_sections[s].row_count; r++) {
      const rl_section_row *row = &rl_sections[s].rows[r];
      if (find_row(row->key) != row || contains(collected, row->key) || !has_inputs(collected, row->expression)) continue;
      int stopped = add(context, row->key);
      if (stopped != 0) return stopped;
    }
  return 0;
}

int rl_computed_metrics_list(const char *const *collected, size_t count, int (*add)(void *context, const char *name),
                             void *context) {
  const name_set set = {collected, count};
  int stopped = list_rows(&set, add, context);
  for (size_t i = 0; i < count && stopped == 0; i++) stopped = list_rollups(&set, collected[i], add, context);
  for (int i = 0; i < EQUIVALENT_COUNT && stopped == 0; i++)
    if (!contains(&set, equivalents[i].name) && has_inputs(&set, equivalents[i].expression))
      stopped = add(context, equivalents[i].name);
  return stopped;
}

/* --- values ------------------------------------------------------------------------------------------------------------ */

static double look_up_metric(void *context, const char *name) { return rl_metric_get(context, name); }

static double evaluate(const char *expression, const rl_metric_values *values) {
  rl_metric_values copy = *values;
  double value = NAN;
  rl_error err;
  rl_expression_evaluate(expression, strlen(expression), &(rl_scope){look_up_metric, &copy}, &value, &err);
  return value;
}

static const char *find_expression(const char *name) {
  const rl_section_row *row = find_row(name);
  if (row != NULL) return row->expression;
  for (int i = 0; i < EQUIVALENT_COUNT; i++)
    if (strcmp(equivalents[i].name, name) == 0) return equivalents[i].expression;
  return NULL;
}

static int find_rollup(const char *name) {
  int i = 0;
  while (i < ROLLUP_COUNT && !ends_with(name, rollups[i].suffix)) i++;
  return i < ROLLUP_COUNT ? i : -1;
}

double rl_computed_metric_value(const char *name, const rl_metric_values *values) {
  char source[RL_COMPUTED_METRIC_NAME_SIZE];
  const char *expression = find_expression(name);
  if (expression != NULL) return evaluate(expression, values);
  int rollup = find_rollup(name);
  if (rollup < 0) return NAN;
  replace_suffix(name, rollups[rollup].suffix, rollups[rollup].source, source);
  double value = rl_metric_get(values, source);
  return rollups[rollup].is_rate ? value / (rl_metric_get(values, DURATION) * 1e-9) : value;
}

static const char *unit_of_collected(const char *name) {
  for (size_t i = 0; i < rl_raw_metric_count; i++)
    if (strcmp(rl_raw_metrics[i].name, name) == 0) return rl_raw_metrics[i].unit;
  return "";
}

/* Sets the unit of a rate: cycles per second are hertz. */
static const char *set_rate_unit(const char *name, const char *suffix, const char *source_suffix,
                                 char unit[RL_COMPUTED_METRIC_NAME_SIZE]) {
  char source[RL_COMPUTED_METRIC_NAME_SIZE];
  replace_suffix(name, suffix, source_suffix, source);
  const char *counted = unit_of_collected(source);
  if (strcmp(counted, "cycle") == 0) return "hz";
  snprintf(unit, RL_COMPUTED_METRIC_NAME_SIZE, "%s/s", counted);
  return counted[0] != '\0' ? unit : "";
}

const char *rl_computed_metric_unit(const char *name, char unit[RL_COMPUTED_METRIC_NAME_SIZE]) {
  const rl_section_row *row = find_row(name);
  if (row != NULL) return row->unit;
  for (int i = 0; i < EQUIVALENT_COUNT; i++)
    if (strcmp(equivalents[i].name, name) == 0) return equivalents[i].unit;
  int rollup = find_rollup(name);
  if (rollup < 0) return NULL;
  return rollups[rollup].is_rate ? set_rate_unit(name, rollups[rollup].suffix, rollups[rollup].source, unit) : "%";
}
