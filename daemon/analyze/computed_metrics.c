/* Tables define the computed metrics: expressions over collected metrics, and rollups that follow from other rollups. Listing
 * uses only the names of the collected metrics; values are computed separately. */
#include "analyze/computed_metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/expression.h"
#include "base/sorted_names.h"
#include "model/catalogue.h"

#define DURATION "gpu__time_duration.sum"

/* Metrics that are other names of one number, as expressions over collected metrics. Registers and shared memory are allocated in
 * units of 8 registers a thread and of 128 bytes on every chip of the catalogue (CUDA occupancy calculator). */
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
    {"sass__inst_executed_shared_loads", "inst", "smsp__sass_inst_executed_op_shared_ld.sum"},
    {"sass__inst_executed_shared_stores", "inst", "smsp__sass_inst_executed_op_shared_st.sum"},
    {"sass__thread_inst_executed_per_opcode_category", "", "smsp__thread_inst_executed_pred_on.sum"},
    {"sass__thread_inst_executed_true_per_opcode", "", "smsp__thread_inst_executed_pred_on.sum"},
    {"sass__thread_inst_executed_true_per_opcode_with_modifier_all", "", "smsp__thread_inst_executed_pred_on.sum"},
    {"sass__thread_inst_executed_true_per_opcode_with_modifier_selective", "", "smsp__thread_inst_executed_pred_on.sum"},
};
enum { EQUIVALENT_COUNT = sizeof equivalents / sizeof *equivalents };

/* Rollups that follow from another rollup of the same counter (source). The peak of a sum is the sum of the peaks, so a sum and
 * an average have the same percentage. A rate per second is the source divided by the duration. It is listed only if another rate
 * per second of the counter was collected. */
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

/* The section RawPage collects this metric from every kernel. No other section collects it. */
#define RAW_PAGE_METRIC "launch__context_id"

/* Names of collected metrics (sorted). If the section RawPage was collected, the set also has the names that only this section
 * has. */
typedef struct name_set {
  const char *const *names;
  size_t count;
  bool has_raw_page;
} name_set;

static bool is_collected(const name_set *set, const char *name) { return rl_names_contain(set->names, set->count, name); }

static bool contains(const name_set *set, const char *name) {
  return is_collected(set, name) || (set->has_raw_page && rl_is_only_on_raw_page(name));
}

static name_set name_set_make(const char *const *collected, size_t count) {
  return (name_set){collected, count, .has_raw_page = rl_names_contain(collected, count, RAW_PAGE_METRIC)};
}

/* Context of find_input, which finds out whether all inputs of an expression were collected. */
typedef struct input_check {
  const name_set *collected;
  bool all_found;
} input_check;

/* Implements rl_scope.lookup. The value that it returns does not matter. */
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

/* Replaces the suffix `from` of the name by `to`. The name must have this suffix. */
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

/* Lists the rollups that follow from one collected metric and were not collected themselves. */
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

static int list_rows(const name_set *collected, int (*add)(void *, const char *), void *context) {
  for (size_t i = 0; i < rl_computed_row_count; i++) {
    const rl_section_row *row = rl_computed_rows[i];
    if (contains(collected, row->key) || !has_inputs(collected, row->expression)) continue;
    int stopped = add(context, row->key);
    if (stopped != 0) return stopped;
  }
  return 0;
}

/* Lists the names of the raw page that were not collected, and their rollups. */
static int list_raw_page(const name_set *set, int (*add)(void *, const char *), void *context) {
  int stopped = 0;
  for (size_t i = 0; i < rl_raw_metric_count && stopped == 0; i++) {
    const char *name = rl_raw_metrics[i].name;
    if (is_collected(set, name) || !rl_raw_metric_is_only_on_raw_page(&rl_raw_metrics[i])) continue;
    stopped = add(context, name);
    if (stopped == 0) stopped = list_rollups(set, name, add, context);
  }
  return stopped;
}

int rl_computed_metrics_list(const char *const *collected, size_t count, int (*add)(void *context, const char *name),
                             void *context) {
  const name_set set = name_set_make(collected, count);
  int stopped = list_rows(&set, add, context);
  if (stopped == 0 && set.has_raw_page) stopped = list_raw_page(&set, add, context);
  for (size_t i = 0; i < count && stopped == 0; i++) stopped = list_rollups(&set, collected[i], add, context);
  for (int i = 0; i < EQUIVALENT_COUNT && stopped == 0; i++)
    if (!contains(&set, equivalents[i].name) && has_inputs(&set, equivalents[i].expression))
      stopped = add(context, equivalents[i].name);
  return stopped;
}

/* --- values ------------------------------------------------------------------------------------------------------------ */

static bool set_expression(rl_computed_metric *metric, const char *expression, const char *unit) {
  *metric = (rl_computed_metric){.expression = expression};
  snprintf(metric->unit, sizeof metric->unit, "%s", unit);
  return true;
}

/* Sets the unit of a rate: cycles per second are hertz. */
static void set_rate_unit(rl_computed_metric *metric) {
  const rl_raw_metric *counter = rl_raw_metric_find(metric->source);
  const char *unit = counter != NULL ? counter->unit : "";
  const bool counts_cycles = strcmp(unit, "cycle") == 0;
  if (unit[0] != '\0')
    snprintf(metric->unit, sizeof metric->unit, "%s%s", counts_cycles ? "hz" : unit, counts_cycles ? "" : "/s");
}

static bool set_rollup(const char *name, rl_computed_metric *metric) {
  int i = 0;
  while (i < ROLLUP_COUNT && !ends_with(name, rollups[i].suffix)) i++;
  if (i == ROLLUP_COUNT) return false;
  *metric = (rl_computed_metric){.is_rate = rollups[i].is_rate};
  replace_suffix(name, rollups[i].suffix, rollups[i].source, metric->source);
  if (metric->is_rate) set_rate_unit(metric);
  else strcpy(metric->unit, "%");
  return true;
}

bool rl_computed_metric_find(const char *name, rl_computed_metric *metric) {
  const rl_section_row *row = rl_computed_row_find(name);
  if (row != NULL) return set_expression(metric, row->expression, row->ncu_unit);
  for (int i = 0; i < EQUIVALENT_COUNT; i++)
    if (strcmp(equivalents[i].name, name) == 0) return set_expression(metric, equivalents[i].expression, equivalents[i].unit);
  if (set_rollup(name, metric)) return true;
  if (!rl_is_only_on_raw_page(name)) return false;
  *metric = (rl_computed_metric){0};
  snprintf(metric->source, sizeof metric->source, "%s", name);
  return true;
}

/* --- rollups of counters that counted nothing -------------------------------------------------------------------------- */

static int compare_prefix(const void *prefix, const void *item) {
  return strncmp(prefix, ((const rl_metric_value *)item)->name, strlen(prefix));
}

/* Returns the first metric whose name begins with the prefix; NULL: there is none. */
static const rl_metric_value *find_prefix(const rl_metric_values *values, const char *prefix) {
  const rl_metric_value *found =
      values->count > 0 ? bsearch(prefix, values->items, values->count, sizeof *found, compare_prefix) : NULL;
  while (found > values->items && compare_prefix(prefix, found - 1) == 0) found--;
  return found;
}

/* Returns whether the metric shows that its counter is 0 on every unit: its value is 0, and it is neither the minimum over the
 * units nor a peak. */
static bool shows_zero(const rl_metric_value *metric) {
  return metric->value == 0 && strstr(metric->name, ".min") == NULL && strstr(metric->name, ".peak_sustained") == NULL;
}

/* Returns the value of the metric if it was collected. Otherwise returns 0 if another metric of the same counter shows that the
 * counter counted nothing, else NAN. A peak that was not collected is always NAN. */
static double value_or_zero(const rl_metric_values *values, const char *name) {
  const rl_metric_value *collected = rl_metric_find(values, name), *end = values->items + values->count;
  char prefix[RL_COMPUTED_METRIC_NAME_SIZE];
  if (collected != NULL || strstr(name, ".peak_sustained") != NULL) return collected != NULL ? collected->value : NAN;
  snprintf(prefix, sizeof prefix, "%.*s.", (int)strcspn(name, "."), name);
  for (const rl_metric_value *metric = find_prefix(values, prefix); metric != NULL && metric < end; metric++) {
    if (compare_prefix(prefix, metric) != 0) return NAN;
    if (shows_zero(metric)) return 0;
  }
  return NAN;
}

static double look_up_metric(void *context, const char *name) { return rl_metric_values_get(context, name); }

static double evaluate(const char *expression, const rl_metric_values *values) {
  rl_metric_values copy = *values;
  double value = NAN;
  rl_error err;
  rl_expression_evaluate(expression, strlen(expression), &(rl_scope){look_up_metric, &copy}, &value, &err);
  return value;
}

double rl_computed_metric_value(const rl_computed_metric *metric, const rl_metric_values *values) {
  if (metric->expression != NULL) return evaluate(metric->expression, values);
  const double value = value_or_zero(values, metric->source);
  return metric->is_rate ? value / (rl_metric_values_get(values, DURATION) * 1e-9) : value;
}
