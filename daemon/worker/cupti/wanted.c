#include "worker/cupti/wanted.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cupti/plan.h"

/* Of a name that the catalogue does not have. */
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

static int by_name(const void *name, const void *metric) { return strcmp(name, ((const rl_raw_metric *)metric)->name); }

static bool has(const rl_wanted *wanted, const char *name) {
  for (size_t i = 0; i < wanted->count; i++)
    if (strcmp(wanted->items[i].name, name) == 0) return true;
  return false;
}

/* Counters of links exclude all others, so they take a session of their own: a sixth of a second for what few kernels use. */
static const char *left_out(const char *name) {
  static const char *const units[] = {"pcie__", "nvlrx__", "nvltx__", "ctc__"};
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (strncmp(name, units[i], strlen(units[i])) == 0) return "counters of links are collected where they are asked for by name";
  return NULL;
}

static rl_wanted_metric judge(const rl_raw_metric *metric, rl_absences absent) {
  rl_absences deciding = metric->origin == RL_ORIGIN_COUNTER ? absent & rl_absences_that_decide(metric->name) : 0;
  if (deciding != 0) return (rl_wanted_metric){metric->name, metric->origin, rl_absence_reason(deciding), 0};
  return (rl_wanted_metric){metric->name, metric->origin, left_out(metric->name), NAN};
}

/* The names of the profile, which from here on end where their lines did. */
static void add_named(rl_wanted *wanted) {
  char *rest = wanted->metrics;
  for (char *name = strsep(&rest, "\n"); name != NULL; name = strsep(&rest, "\n")) {
    if (name[0] == '\0' || has(wanted, name)) continue;
    const rl_raw_metric *known = bsearch(name, rl_raw_metrics, rl_raw_metric_count, sizeof *rl_raw_metrics, by_name);
    wanted->items[wanted->count++] = (rl_wanted_metric){name, known != NULL ? known->origin : origin_by_prefix(name), NULL, NAN};
  }
}

static bool is_counted(const rl_wanted_metric *metric) { return metric->origin == RL_ORIGIN_COUNTER && metric->left_out == NULL; }

static int counters_first(const void *a, const void *b) {
  const rl_wanted_metric *x = a, *y = b;
  int apart = is_counted(y) - is_counted(x);
  return apart != 0 ? apart : strcmp(x->name, y->name);
}

void rl_wanted_clear(rl_wanted *wanted) {
  free(wanted->items);
  free(wanted->metrics);
  *wanted = (rl_wanted){0};
}

int rl_wanted_limit_to_chip(rl_wanted *wanted, const char *chip, rl_error *err) {
  size_t count = wanted->count - wanted->counters;
  rl_wanted_metric *items = wanted->items + wanted->counters;
  const char **names = calloc(count + 1, sizeof *names);
  bool *known = calloc(count + 1, sizeof *known);
  for (size_t i = 0; names != NULL && i < count; i++) names[i] = items[i].name;
  int result = names == NULL || known == NULL ? rl_fail(err, RL_SYS, ENOMEM, "out of memory for metrics")
                                              : rl_counters_of_chip(chip, names, count, known, err);
  for (size_t i = 0; result == 0 && i < count; i++) {
    if (isnan(items[i].decided) || known[i]) continue;
    items[i].decided = NAN;
    items[i].left_out = "CUPTI has no such metric for this chip";
  }
  free(names);
  free(known);
  return result;
}

int rl_wanted_make(const rl_profile *profile, rl_absences absent, rl_wanted *wanted, rl_error *err) {
  size_t most = rl_raw_metric_count + RL_PROFILE_METRICS_SIZE / 2;
  *wanted = (rl_wanted){.items = calloc(most, sizeof *wanted->items), .metrics = strdup(profile->metrics)};
  if (wanted->items == NULL || wanted->metrics == NULL) {
    rl_wanted_clear(wanted);
    return rl_fail(err, RL_SYS, ENOMEM, "out of memory for metrics");
  }
  add_named(wanted);
  for (size_t i = 0; i < rl_raw_metric_count; i++) {
    const rl_raw_metric *metric = &rl_raw_metrics[i];
    if ((metric->sections & profile->sections) != 0 && !has(wanted, metric->name))
      wanted->items[wanted->count++] = judge(metric, absent);
  }
  qsort(wanted->items, wanted->count, sizeof *wanted->items, counters_first);
  while (wanted->counters < wanted->count && is_counted(&wanted->items[wanted->counters])) wanted->counters++;
  return 0;
}
