/* Looks up the requested metrics in the catalogue. The prefix of a name that is not in the catalogue determines its origin. In
 * the result, the counters to collect come before all other metrics; each of the two parts is sorted by name. */
#include "worker/cupti/metric_selection.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/records.h"
#include "worker/cupti/counter_plan.h"

/* Returns the origin of a metric that the catalogue does not have. */
static rl_metric_origin origin_by_prefix(const char *name) {
  static const struct {
    const char *prefix;
    rl_metric_origin origin;
  } prefixes[] = {{"launch__", RL_ORIGIN_LAUNCH},     {"device__attribute_", RL_ORIGIN_DEVICE},
                  {"numa__", RL_ORIGIN_DEVICE},       {"nvlink__", RL_ORIGIN_DEVICE},
                  {"c2clink__", RL_ORIGIN_DEVICE},    {"smsp__pcsamp_", RL_ORIGIN_SAMPLING},
                  {"profiler__", RL_ORIGIN_SAMPLING}, {"sass__", RL_ORIGIN_SASS},
                  {"derived__", RL_ORIGIN_SASS},      {"memory_", RL_ORIGIN_SASS}};
  for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
    if (strncmp(name, prefixes[i].prefix, strlen(prefixes[i].prefix)) == 0) return prefixes[i].origin;
  return RL_ORIGIN_COUNTER;
}

/* Returns whether the first `count` items have the name. */
static bool contains(const rl_metric_selection *selection, size_t count, const char *name) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(selection->items[i].name, name) == 0) return true;
  return false;
}

/* Returns why a counter of PCIe, NVLink or C2C links is skipped; NULL for other counters. Counters of links can't share a pass
 * with other counters. The additional pass takes 0.17 s, and few kernels use links. */
static const char *link_skip_reason(const char *name) {
  static const char *const units[] = {"pcie__", "nvlrx__", "nvltx__", "ctc__"};
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (rl_begins_with(name, units[i])) return "counters of links are collected only when they are requested by name";
  return NULL;
}

static rl_selected_metric select_metric(const rl_raw_metric *metric, rl_instruction_classes absent_classes) {
  rl_selected_metric selected = {.name = metric->name, .origin = metric->origin, .known_value = NAN};
  rl_instruction_classes zero_classes =
      metric->origin == RL_ORIGIN_COUNTER ? absent_classes & rl_instruction_classes_of_metric(metric->name) : 0;
  selected.skip_reason = zero_classes != 0 ? rl_absent_instruction_classes_reason(zero_classes) : link_skip_reason(metric->name);
  if (zero_classes != 0) selected.known_value = 0;
  return selected;
}

/* Adds the metrics that the profile options name. Splits the lines of name_text in place. */
static void add_named_metrics(rl_metric_selection *selection) {
  char *rest = selection->name_text;
  for (char *name = strsep(&rest, "\n"); name != NULL; name = strsep(&rest, "\n")) {
    if (name[0] == '\0' || contains(selection, selection->count, name)) continue;
    const rl_raw_metric *known = rl_raw_metric_find(name);
    selection->items[selection->count++] = (rl_selected_metric){.name = name,
                                                                .origin = known != NULL ? known->origin : origin_by_prefix(name),
                                                                .skip_reason = known != NULL ? known->reason : NULL,
                                                                .known_value = NAN};
  }
}

static bool is_collected_counter(const rl_selected_metric *metric) {
  return metric->origin == RL_ORIGIN_COUNTER && metric->skip_reason == NULL;
}

/* Returns the name of the collected counter; NULL if the selection does not collect it. */
static const char *find_collected_counter(const rl_metric_selection *selection, const char *name) {
  for (size_t i = 0; i < selection->count; i++)
    if (is_collected_counter(&selection->items[i]) && strcmp(selection->items[i].name, name) == 0)
      return selection->items[i].name;
  return NULL;
}

/* Skips the metric if all of its terms are collected. */
static void skip_if_collected(const rl_metric_selection *selection, const rl_counter_terms *terms, rl_selected_metric *metric) {
  const char *found[RL_MAX_TERMS] = {0};
  for (size_t t = 0; t < terms->count; t++)
    if ((found[t] = find_collected_counter(selection, terms->names[t])) == NULL) return;
  memcpy(metric->terms, found, sizeof found);
  metric->term_count = terms->count;
  metric->added_term_count = terms->added_count;
  metric->skip_reason = terms->reason;
}

/* Skips the counters from `first` on that are sums of other collected counters. */
static void skip_derived_counters(rl_metric_selection *selection, size_t first, rl_instruction_classes absent_classes) {
  rl_counter_terms terms;
  for (size_t i = first; i < selection->count; i++)
    if (is_collected_counter(&selection->items[i]) && rl_counter_terms_find(selection->items[i].name, absent_classes, &terms))
      skip_if_collected(selection, &terms, &selection->items[i]);
}

static int compare_counters_first(const void *a, const void *b) {
  const rl_selected_metric *x = a, *y = b;
  int order = is_collected_counter(y) - is_collected_counter(x);
  return order != 0 ? order : strcmp(x->name, y->name);
}

void rl_metric_selection_clear(rl_metric_selection *selection) {
  free(selection->items);
  free(selection->name_text);
  *selection = (rl_metric_selection){0};
}

int rl_metric_selection_limit_to_chip(rl_metric_selection *selection, const char *chip, rl_error *err) {
  size_t count = selection->count - selection->counter_count;
  rl_selected_metric *items = selection->items + selection->counter_count;
  const char **names = calloc(count + 1, sizeof *names);
  bool *known = calloc(count + 1, sizeof *known);
  for (size_t i = 0; names != NULL && i < count; i++) names[i] = items[i].name;
  int result = names == NULL || known == NULL ? rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for metrics")
                                              : rl_chip_has_metrics(chip, names, count, known, err);
  for (size_t i = 0; result == 0 && i < count; i++) {
    if ((isnan(items[i].known_value) && items[i].term_count == 0) || known[i]) continue;
    items[i].known_value = NAN;
    items[i].term_count = 0;
    items[i].skip_reason = "CUPTI has no such metric for this chip";
  }
  free(names);
  free(known);
  return result;
}

/* Adds the metrics of the sections, except metrics that the profile options name. A metric that only the raw page has is left out
 * if it is not collected, because the report computes its value or reason from other metrics of the same counter and from the
 * catalogue. */
static void add_metrics_of_sections(uint32_t sections, rl_instruction_classes absent_classes, rl_metric_selection *selection) {
  const size_t named_count = selection->count;
  for (const rl_raw_metric *metric = rl_raw_metrics; metric < rl_raw_metrics + rl_raw_metric_count; metric++) {
    if ((metric->sections & sections) == 0 || contains(selection, named_count, metric->name)) continue;
    const rl_selected_metric selected = select_metric(metric, absent_classes);
    const bool is_collected = selected.skip_reason == NULL && metric->origin != RL_ORIGIN_NONE;
    if (is_collected || !rl_raw_metric_is_only_on_raw_page(metric)) selection->items[selection->count++] = selected;
  }
  skip_derived_counters(selection, named_count, absent_classes);
}

int rl_metric_selection_make(const rl_profile_options *profile_options, rl_instruction_classes absent_classes,
                             rl_metric_selection *selection, rl_error *err) {
  const size_t capacity = rl_raw_metric_count + RL_PROFILE_METRICS_SIZE / 2;
  *selection =
      (rl_metric_selection){.items = calloc(capacity, sizeof *selection->items), .name_text = strdup(profile_options->metrics)};
  if (selection->items == NULL || selection->name_text == NULL) {
    rl_metric_selection_clear(selection);
    return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for metrics");
  }
  add_named_metrics(selection);
  add_metrics_of_sections(profile_options->sections, absent_classes, selection);
  qsort(selection->items, selection->count, sizeof *selection->items, compare_counters_first);
  while (selection->counter_count < selection->count && is_collected_counter(&selection->items[selection->counter_count]))
    selection->counter_count++;
  return 0;
}
