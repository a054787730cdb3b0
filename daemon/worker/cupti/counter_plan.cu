/* Plans how counters are collected (counter_plan.h), with CUPTI's host library. This file is C++ because cupti_profiler_host.h
 * includes <string>. */
#include "worker/cupti/counter_plan.h"

#include <cupti_profiler_host.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "worker/cupti/counter_plan_internal.h"
#include "worker/cupti/check.h"

static int host_open(CUpti_ProfilerType type, const char *chip, void **host, rl_error *err) {
  CUpti_Profiler_Host_Initialize_Params params = {CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE};
  params.profilerType = type;
  params.pChipName = chip;
  if (rl_cupti_check(cuptiProfilerHostInitialize(&params), "cuptiProfilerHostInitialize", err) < 0) return -1;
  *host = params.pHostObject;
  return 0;
}

int rl_profiler_host_open(const char *chip, void **host, rl_error *err) {
  return host_open(CUPTI_PROFILER_TYPE_RANGE_PROFILER, chip, host, err);
}

static void host_close(void *host) {
  if (host == NULL) return;
  CUpti_Profiler_Host_Deinitialize_Params params = {CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE};
  params.pHostObject = (CUpti_Profiler_Host_Object *)host;
  cuptiProfilerHostDeinitialize(&params);
}

/* Creates a host object for these metrics; -1 when they cannot be collected together. Each call creates a new host object,
 * because one that has refused a list cannot be used again. */
static int configure(CUpti_ProfilerType type, const char *chip, const char **names, size_t count, void **host, rl_error *err) {
  void *created = NULL;
  if (host_open(type, chip, &created, err) < 0) return -1;
  CUpti_Profiler_Host_ConfigAddMetrics_Params params = {CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE};
  params.pHostObject = (CUpti_Profiler_Host_Object *)created;
  params.ppMetricNames = names;
  params.numMetrics = count;
  if (rl_cupti_check(cuptiProfilerHostConfigAddMetrics(&params), "cuptiProfilerHostConfigAddMetrics", err) < 0) {
    host_close(created);
    return -1;
  }
  *host = created;
  return 0;
}

static void group_clear(rl_counter_group *group) {
  host_close(group->host);
  free(group->names);
  free(group->metrics);
  free(group->config_image);
  memset(group, 0, sizeof *group);
}

/* Reads the configuration image and its number of passes from the group's host object. */
static int read_config(rl_counter_group *group, rl_error *err) {
  CUpti_Profiler_Host_GetConfigImageSize_Params size = {CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE};
  size.pHostObject = (CUpti_Profiler_Host_Object *)group->host;
  if (rl_cupti_check(cuptiProfilerHostGetConfigImageSize(&size), "cuptiProfilerHostGetConfigImageSize", err) < 0) return -1;
  group->config_image_size = size.configImageSize;
  group->config_image = (uint8_t *)calloc(1, group->config_image_size);
  if (group->config_image == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a counter configuration");
  CUpti_Profiler_Host_GetConfigImage_Params image = {CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE};
  image.pHostObject = (CUpti_Profiler_Host_Object *)group->host;
  image.configImageSize = group->config_image_size;
  image.pConfigImage = group->config_image;
  if (rl_cupti_check(cuptiProfilerHostGetConfigImage(&image), "cuptiProfilerHostGetConfigImage", err) < 0) return -1;
  CUpti_Profiler_Host_GetNumOfPasses_Params passes = {CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE};
  passes.configImageSize = group->config_image_size;
  passes.pConfigImage = group->config_image;
  if (rl_cupti_check(cuptiProfilerHostGetNumOfPasses(&passes), "cuptiProfilerHostGetNumOfPasses", err) < 0) return -1;
  group->passes = passes.numOfPasses;
  return 0;
}

/* A set of metrics: indices into the plan's list of metrics. */
typedef std::vector<size_t> metric_set;

/* Orders of the units, and of groups of their metrics, in which metrics are configured. Units with few hardware counters come
 * first. Fewer passes are needed when L2's tag stage (lts__t_) comes after lrc__ and the metrics that combine L2 with other units
 * (gpu__). All orders are tried, and the fastest plan is kept. The first order needs fewer passes for most metric sets. The other
 * orders need as many for plain code on GH100, but their configuration is smaller. The last one is the best of 500 random orders.
 */
enum { MAX_UNITS = 11, UNIT_ORDER_COUNT = 3 };
static const char *const unit_orders[UNIT_ORDER_COUNT][MAX_UNITS] = {
    {"l1tex__m_", "l1tex__", "gpu__", "lrc__", "gcc__", "lts__", "sm__", "smsp__"},
    {"l1tex__m_", "gpu__", "lrc__", "gcc__", "lts__", "l1tex__", "sm__", "smsp__"},
    {"gpu__", "lts__", "l1tex__m_", "lrc__", "lts__t_", "gcc__", "l1tex__", "sm__", "smsp__", "lts__t_requests",
     "l1tex__t_sector"}};

struct planner {
  CUpti_ProfilerType type;
  const char *chip;
  const char *const *names;

  bool fit_together(const metric_set &metrics) const {
    std::vector<const char *> metric_names;
    for (size_t metric : metrics) metric_names.push_back(names[metric]);
    void *host = NULL;
    rl_error why;
    if (configure(type, chip, metric_names.data(), metric_names.size(), &host, &why) < 0) return false;
    host_close(host);
    return true;
  }

  /* Adds to `kept` the metrics of [first, last) that fit into one configuration with `kept`, and to `remaining` the other
   * metrics. Tries the whole list first, then each half, because most lists fit as a whole. */
  void add_fitting(metric_set::const_iterator first, metric_set::const_iterator last, metric_set &kept,
                   metric_set &remaining) const {
    if (first == last) return;
    metric_set combined = kept;
    combined.insert(combined.end(), first, last);
    if (fit_together(combined)) {
      kept = combined;
    } else if (last - first == 1) {
      remaining.push_back(*first);
    } else {
      add_fitting(first, first + (last - first) / 2, kept, remaining);
      add_fitting(first + (last - first) / 2, last, kept, remaining);
    }
  }

  std::string unit_name(size_t metric) const {
    const char *end = strstr(names[metric], "__");
    return std::string(names[metric], end == NULL ? strlen(names[metric]) : (size_t)(end - names[metric]));
  }

  /* Splits the metrics by hardware unit; the unit with the most metrics comes first. */
  std::vector<metric_set> split_by_unit(const metric_set &metrics) const {
    std::map<std::string, metric_set> units;
    for (size_t metric : metrics) units[unit_name(metric)].push_back(metric);
    std::vector<metric_set> sets;
    for (const auto &entry : units) sets.push_back(entry.second);
    std::stable_sort(sets.begin(), sets.end(), [](const metric_set &a, const metric_set &b) { return a.size() > b.size(); });
    return sets;
  }

  size_t count_passes(const metric_set &metrics) const {
    std::vector<const char *> metric_names;
    for (size_t metric : metrics) metric_names.push_back(names[metric]);
    rl_counter_group trial = {};
    rl_error why;
    size_t needed = SIZE_MAX;
    if (configure(type, chip, metric_names.data(), metric_names.size(), &trial.host, &why) == 0 && read_config(&trial, &why) == 0)
      needed = trial.passes;
    group_clear(&trial);
    return needed;
  }

  /* Returns the position of the metric's unit in one of unit_orders: the longest prefix of its name. */
  size_t unit_rank(size_t metric, size_t order) const {
    size_t rank = MAX_UNITS, longest = 0;
    for (size_t i = 0; i < MAX_UNITS && unit_orders[order][i] != NULL; i++) {
      const size_t length = strlen(unit_orders[order][i]);
      if (length > longest && rl_begins_with(names[metric], unit_orders[order][i])) rank = i, longest = length;
    }
    return rank;
  }

  bool is_harder_to_place(size_t a, size_t b, size_t order) const {
    const size_t rank_a = unit_rank(a, order), rank_b = unit_rank(b, order);
    return rank_a != rank_b ? rank_a < rank_b : strcspn(names[a], ".") > strcspn(names[b], ".");
  }

  /* Returns the metrics in the order of is_harder_to_place. CUPTI takes the metrics in order and puts each counter into the first
   * pass with space for it, so metrics that fit into few passes should come first. Within a unit, these are the more specific
   * metrics, which have longer names. */
  metric_set hardest_first(const metric_set &metrics, size_t order) const {
    metric_set ordered = metrics;
    std::stable_sort(ordered.begin(), ordered.end(), [=](size_t a, size_t b) { return is_harder_to_place(a, b, order); });
    return ordered;
  }

  /* Takes out of `remaining` the metrics that one configuration can collect, and returns them. Returns an empty set if no metric
   * can be collected. Whether metrics can be collected together depends on their units, and trying a configuration with all
   * metrics is slow. So configurations with one metric of each unit are tried first. */
  metric_set take_group(metric_set &remaining) const {
    metric_set chosen, representatives, rest;
    for (const metric_set &unit : split_by_unit(remaining)) {
      metric_set kept;
      add_fitting(unit.begin(), unit.end(), kept, rest);
      if (kept.empty()) continue;
      representatives.push_back(kept.front());
      const bool unit_fits = fit_together(representatives);
      if (!unit_fits) representatives.pop_back();
      metric_set &into = unit_fits ? chosen : rest;
      into.insert(into.end(), kept.begin(), kept.end());
    }
    std::sort(chosen.begin(), chosen.end());
    metric_set together;
    add_fitting(chosen.begin(), chosen.end(), together, rest);
    remaining = rest;
    return together;
  }
};

rl_counter_group *rl_counter_plan_add_group(rl_counter_plan *plan, size_t count, rl_error *err) {
  rl_counter_group *groups = (rl_counter_group *)realloc(plan->groups, (plan->group_count + 1) * sizeof *groups);
  if (groups != NULL) plan->groups = groups;
  rl_counter_group created = {(const char **)calloc(count + 1, sizeof *created.names),
                              (size_t *)calloc(count + 1, sizeof *created.metrics), count};
  if (groups == NULL || created.names == NULL || created.metrics == NULL) {
    group_clear(&created);
    rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for metrics");
    return NULL;
  }
  groups[plan->group_count] = created;
  return &groups[plan->group_count++];
}

int rl_counter_plan_new(size_t count, rl_counter_plan **plan, rl_error *err) {
  rl_counter_plan *created = (rl_counter_plan *)calloc(1, sizeof *created);
  if (created != NULL) created->missing_reasons = (rl_missing_reason *)calloc(count + 1, sizeof *created->missing_reasons);
  if (created == NULL || created->missing_reasons == NULL) {
    free(created);
    return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for metrics");
  }
  created->metric_count = count;
  *plan = created;
  return 0;
}

static bool host_has(void *host, const char *name) {
  CUpti_Profiler_Host_GetMetricProperties_Params params = {CUpti_Profiler_Host_GetMetricProperties_Params_STRUCT_SIZE};
  params.pHostObject = (CUpti_Profiler_Host_Object *)host;
  params.pMetricName = name;
  return cuptiProfilerHostGetMetricProperties(&params) == CUPTI_SUCCESS;
}

int rl_chip_has_metrics(const char *chip, const char *const *names, size_t count, bool *known, rl_error *err) {
  void *host = NULL;
  if (rl_profiler_host_open(chip, &host, err) < 0) return rl_wrap(err, "chip %s", chip);
  for (size_t i = 0; i < count; i++) known[i] = host_has(host, names[i]);
  host_close(host);
  return 0;
}

/* Returns the metrics that the chip has. Sets the reason of the other metrics. */
static metric_set known_metrics(void *host, const char *chip, const char *const *names, rl_counter_plan *plan) {
  metric_set found;
  for (size_t i = 0; i < plan->metric_count; i++) {
    if (host_has(host, names[i])) found.push_back(i);
    else
      snprintf(plan->missing_reasons[i].text, sizeof plan->missing_reasons[i].text, "CUPTI has no such metric for chip %s", chip);
  }
  return found;
}

/* Metrics in an order, with the configuration that collects them. */
struct configuration {
  metric_set metrics;
  rl_counter_group group; /* only host, config_image, config_image_size and passes are set */
};

static int configure_metrics(const planner &planner, const metric_set &metrics, configuration *created, rl_error *err) {
  std::vector<const char *> metric_names;
  for (size_t metric : metrics) metric_names.push_back(planner.names[metric]);
  *created = {metrics, {}};
  if (configure(planner.type, planner.chip, metric_names.data(), metric_names.size(), &created->group.host, err) == 0 &&
      read_config(&created->group, err) == 0)
    return 0;
  group_clear(&created->group);
  return -1;
}

/* Returns whether the passes of the first configuration are expected to take less time: there are fewer of them, or they write
 * fewer registers, with which the size of the configuration grows. */
static bool is_faster(const rl_counter_group &a, const rl_counter_group &b) {
  return a.passes != b.passes ? a.passes < b.passes : a.config_image_size < b.config_image_size;
}

static int configure_fastest(const planner &planner, const metric_set &metrics, configuration *fastest, rl_error *err) {
  if (configure_metrics(planner, planner.hardest_first(metrics, 0), fastest, err) < 0) return -1;
  for (size_t order = 1; order < UNIT_ORDER_COUNT; order++) {
    configuration other;
    if (configure_metrics(planner, planner.hardest_first(metrics, order), &other, err) < 0) continue;
    if (is_faster(other.group, fastest->group)) std::swap(other, *fastest);
    group_clear(&other.group);
  }
  return 0;
}

/* Adds a group with the configuration, which the plan then owns. */
static int add_group(const planner &planner, const configuration &chosen, rl_counter_plan *plan, rl_error *err) {
  rl_counter_group *group = rl_counter_plan_add_group(plan, chosen.metrics.size(), err);
  rl_counter_group configured = chosen.group;
  if (group == NULL) {
    group_clear(&configured);
    return -1;
  }
  configured.names = group->names;
  configured.metrics = group->metrics;
  configured.count = group->count;
  *group = configured;
  std::copy(chosen.metrics.begin(), chosen.metrics.end(), group->metrics);
  for (size_t i = 0; i < group->count; i++) group->names[i] = planner.names[group->metrics[i]];
  plan->passes += group->passes;
  return 0;
}

static void set_reason(const planner &planner, size_t metric, const char *why, rl_counter_plan *plan) {
  snprintf(plan->missing_reasons[metric].text, sizeof plan->missing_reasons[metric].text,
           "CUPTI does not collect it %s on chip %s", why, planner.chip);
}

/* Adds groups until every metric that can be collected is in a group. Tries one group with all metrics first, because most lists
 * fit and because each configuration of hundreds of metrics takes 0.1 s or more. */
static int add_groups(const planner &planner, const metric_set &metrics, rl_counter_plan *plan, rl_error *err) {
  metric_set remaining = metrics;
  configuration chosen;
  if (metrics.empty()) return 0;
  if (configure_fastest(planner, metrics, &chosen, NULL) == 0) return add_group(planner, chosen, plan, err);
  for (metric_set group = planner.take_group(remaining); !group.empty(); group = planner.take_group(remaining))
    if (configure_fastest(planner, group, &chosen, err) < 0 || add_group(planner, chosen, plan, err) < 0) return -1;
  for (size_t metric : remaining) set_reason(planner, metric, "by ranges", plan);
  return 0;
}

/* Adds one group: takes the metrics in order, and skips each metric that does not fit into one pass with the metrics taken
 * before. */
static int add_single_pass(const planner &planner, const metric_set &metrics, rl_counter_plan *plan, rl_error *err) {
  metric_set taken;
  configuration chosen;
  for (size_t metric : metrics) {
    taken.push_back(metric);
    if (planner.count_passes(taken) == 1) continue;
    taken.pop_back();
    set_reason(planner, metric, "in one pass with others", plan);
  }
  return taken.empty() || (configure_metrics(planner, taken, &chosen, err) == 0 && add_group(planner, chosen, plan, err) == 0)
             ? 0
             : -1;
}

typedef int metric_adder(const planner &planner, const metric_set &metrics, rl_counter_plan *plan, rl_error *err);

static int make_plan(const planner &planner, size_t count, metric_adder *add, rl_counter_plan **plan, rl_error *err) {
  void *host = NULL; /* opened before metrics are looked up, so that an unknown chip is an error, not a list of unknown metrics */
  rl_counter_plan *created = NULL;
  if (host_open(planner.type, planner.chip, &host, err) < 0) return rl_wrap(err, "chip %s", planner.chip);
  int result = rl_counter_plan_new(count, &created, err);
  if (result == 0) result = add(planner, known_metrics(host, planner.chip, planner.names, created), created, err);
  host_close(host);
  if (result < 0) {
    rl_counter_plan_close(created);
    return -1;
  }
  *plan = created;
  return 0;
}

int rl_counter_plan_open(const char *chip, const char *const *names, size_t count, rl_counter_plan **plan, rl_error *err) {
  return make_plan(planner{CUPTI_PROFILER_TYPE_RANGE_PROFILER, chip, names}, count, add_groups, plan, err);
}

int rl_counter_plan_open_for_sampling(const char *chip, const char *const *names, size_t count, rl_counter_plan **plan,
                                      rl_error *err) {
  return make_plan(planner{CUPTI_PROFILER_TYPE_PM_SAMPLING, chip, names}, count, add_single_pass, plan, err);
}

void rl_counter_plan_close(rl_counter_plan *plan) {
  if (plan == NULL) return;
  for (size_t i = 0; i < plan->group_count; i++) group_clear(&plan->groups[i]);
  free(plan->groups);
  free(plan->missing_reasons);
  free(plan);
}

int rl_counter_group_evaluate(const rl_counter_group *group, const uint8_t *image, size_t image_size, size_t range,
                              double *values, rl_error *err) {
  CUpti_Profiler_Host_EvaluateToGpuValues_Params params = {CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE};
  params.pHostObject = (CUpti_Profiler_Host_Object *)group->host;
  params.pCounterDataImage = image;
  params.counterDataImageSize = image_size;
  params.rangeIndex = range;
  params.ppMetricNames = group->names;
  params.numMetrics = group->count;
  params.pMetricValues = values;
  return rl_cupti_check(cuptiProfilerHostEvaluateToGpuValues(&params), "cuptiProfilerHostEvaluateToGpuValues", err);
}
