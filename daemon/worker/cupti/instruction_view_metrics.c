/* Values of the catalogue's metrics from the collected data. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "worker/cupti/sass_metrics.h"
#include "worker/cupti/instruction_view_internal.h"

static bool starts(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

rl_collector rl_collector_of(const char *metric) {
  if (starts(metric, "numa__") || starts(metric, "nvlink__") || starts(metric, "c2clink__")) return RL_COLLECTOR_TOPOLOGY;
  if (starts(metric, "smsp__pcsamp_")) return RL_COLLECTOR_PC_SAMPLING;
  if (starts(metric, "profiler__pmsampler_")) return RL_COLLECTOR_PM_SAMPLING;
  return RL_COLLECTOR_SASS_METRICS;
}

static bool collects(const rl_raw_metric *metric) {
  return metric->origin == RL_ORIGIN_SASS || metric->origin == RL_ORIGIN_SAMPLING ||
         (metric->origin == RL_ORIGIN_DEVICE && rl_collector_of(metric->name) == RL_COLLECTOR_TOPOLOGY);
}

bool rl_instruction_view_collects(const char *metric) {
  for (size_t i = 0; i < rl_raw_metric_count; i++)
    if (strcmp(rl_raw_metrics[i].name, metric) == 0) return collects(&rl_raw_metrics[i]);
  return false;
}

/* Returns true when a line of the text equals the word. */
static bool has_line(const char *text, const char *word) {
  size_t length = strlen(word);
  for (const char *line = text; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n')
    if (strncmp(line, word, length) == 0 && (line[length] == '\n' || line[length] == '\0')) return true;
  return false;
}

bool rl_instruction_view_selects(const rl_profile *profile, const rl_raw_metric *metric) {
  return collects(metric) && ((metric->sections & profile->sections) != 0 || has_line(profile->metrics, metric->name));
}

/* The following return the metric of the request's kernel `index`, or NAN with *reason. */

static double pc_sampling_value(const rl_instruction_view *view, size_t index, const char *name, const char **reason) {
  const rl_instruction_profile *profile = &view->kernels[index].profile;
  const char *const *names = NULL;
  size_t count = rl_pc_sampling_stall_reasons(view->pc_sampling, &names);
  double samples = rl_instruction_profile_sum(profile, RL_PCSAMP_SAMPLE_COUNT);
  if (strcmp(name, RL_PCSAMP_SAMPLE_COUNT) == 0) return samples;
  if (strcmp(name, "smsp__pcsamp_aggregated_passes") == 0)
    return rl_instruction_view_sampling_rounds(view, view->request->kernels[index].launch);
  if (strcmp(name, "smsp__pcsamp_interval_cycles") == 0) return ldexp(1, (int)view->pc_period);
  *reason = samples == 0 ? "the kernel ended before a sample was taken" : "this device has no such stall reason";
  for (size_t i = 0; i < count && samples > 0; i++)
    if (strcmp(names[i], name) == 0) return rl_instruction_profile_sum(profile, name);
  return NAN;
}

static double topology_value(const rl_instruction_view *view, const char *name, const char **reason) {
  for (size_t i = 0; i < view->device_topology.count; i++)
    if (strcmp(view->device_topology.items[i].metric, name) == 0) {
      *reason = view->device_topology.items[i].reason;
      return view->device_topology.items[i].value;
    }
  *reason = "NVML does not report it";
  return NAN;
}

/* Parameters of PM sampling; the timelines themselves are series. */
static double pm_sampling_value(const rl_instruction_view *view, size_t index, const char *name, const char **reason) {
  const struct {
    const char *name;
    double value;
  } parameters[] = {{"profiler__pmsampler_buffer_size_bytes", (double)rl_pm_sampling_buffer_bytes},
                    {"profiler__pmsampler_interval_time", view->pm_interval_ns},
                    {"profiler__pmsampler_pass_groups", 1}};
  *reason = view->kernels[index].no_timeline_reason;
  for (size_t i = 0; i < sizeof parameters / sizeof *parameters && **reason == '\0'; i++)
    if (strcmp(parameters[i].name, name) == 0) return parameters[i].value;
  return NAN;
}

static double executed(rl_instruction_profile *profile) { return rl_instruction_profile_divergence(profile).executed; }
static double executed_on(rl_instruction_profile *profile) { return rl_instruction_profile_divergence(profile).executed_on; }
static double unexecuted_on(rl_instruction_profile *profile) { return rl_instruction_profile_divergence(profile).unexecuted_on; }
static double derivative_on(rl_instruction_profile *profile) { return rl_instruction_profile_divergence(profile).derivative_on; }

/* Spills are accesses to local memory; CUPTI does not distinguish them from others. Without accesses there are no spills. */
static double register_spilling(rl_instruction_profile *profile) {
  double accesses = rl_instruction_profile_sum(profile, "sass__inst_executed_local_loads") +
                    rl_instruction_profile_sum(profile, "sass__inst_executed_local_stores");
  return accesses == 0 ? 0 : NAN;
}

/* Executed instructions, if the histogram by opcode can be computed. */
static double executed_with_sass(rl_instruction_profile *profile) {
  return profile->sass == NULL ? NAN : rl_instruction_profile_sum(profile, RL_INST_EXECUTED);
}

static const struct {
  const char *name;
  double (*value)(rl_instruction_profile *profile);
  const char *reason; /* why it is NAN; NULL: the profile's sass_reason */
} derived[] = {{"derived__avg_thread_executed", executed, ""},
               {"derived__avg_thread_executed_true", executed_on, ""},
               {"derived__avg_thread_unexecuted_true", unexecuted_on, ""},
               {"derived__derivative_avg_thread_executed_true", derivative_on, ""},
               {"derived__memory_l1_conflicts_shared_nway", rl_instruction_profile_shared_conflicts, ""},
               {"sass__inst_executed_per_opcode", executed_with_sass, NULL},
               {"sass__inst_executed_per_opcode_category", executed_with_sass, NULL},
               {"sass__inst_executed_register_spilling", register_spilling,
                "CUPTI does not distinguish spills from other accesses to local memory"}};

static double sass_value(rl_instruction_profile *profile, const char *name, const char **reason) {
  if (rl_sass_metrics_has(name)) return rl_instruction_profile_sum(profile, name);
  for (size_t i = 0; i < sizeof derived / sizeof *derived; i++)
    if (strcmp(derived[i].name, name) == 0) {
      *reason = derived[i].reason != NULL ? derived[i].reason : profile->sass_reason;
      return derived[i].value(profile);
    }
  *reason = "CUPTI's SASS metrics do not have it";
  return NAN;
}

static double value_of(rl_instruction_view *view, size_t index, const char *name, const char **reason) {
  rl_collector collector = rl_collector_of(name);
  *reason = view->reasons[collector];
  if (**reason != '\0') return NAN;
  switch (collector) {
    case RL_COLLECTOR_TOPOLOGY: return topology_value(view, name, reason);
    case RL_COLLECTOR_PC_SAMPLING: return pc_sampling_value(view, index, name, reason);
    case RL_COLLECTOR_PM_SAMPLING: return pm_sampling_value(view, index, name, reason);
    default: return sass_value(&view->kernels[index].profile, name, reason);
  }
}

static int append(rl_instruction_view *view, size_t index, const char *name, double value, const char *reason, rl_error *err) {
  rl_kernel_metric metric = {.ordinal = view->request->kernels[index].ordinal, .value = value};
  snprintf(metric.metric, sizeof metric.metric, "%s", name);
  if (isnan(value)) snprintf(metric.reason, sizeof metric.reason, "%s", reason);
  return rl_records_add_metric(view->records, &metric, err);
}

/* Appends one metric per opcode or category: "sass__inst_executed_per_opcode:LDG". */
static int append_histogram(rl_instruction_view *view, size_t index, const char *name, rl_error *err) {
  rl_opcode_count counts[RL_MAX_OPCODE_COUNTS];
  rl_opcode_grouping grouping = strcmp(name, "sass__inst_executed_per_opcode") == 0 ? RL_BY_OPCODE : RL_BY_CATEGORY;
  int count = rl_instruction_profile_histogram(&view->kernels[index].profile, grouping, counts);
  for (int i = 0; i < count; i++) {
    char full_name[RL_METRIC_NAME_SIZE];
    snprintf(full_name, sizeof full_name, "%s:%s", name, counts[i].name);
    if (append(view, index, full_name, counts[i].executed, NULL, err) < 0) return -1;
  }
  return 0;
}

/* Appends the instances of a topology metric: "numa__cpu_affinity:0-15". */
static int append_topology(rl_instruction_view *view, size_t index, const char *name, rl_error *err) {
  for (size_t i = 0; i < view->device_topology.count; i++) {
    const rl_kernel_metric *item = &view->device_topology.items[i];
    if (starts(item->metric, name) && item->metric[strlen(name)] == ':' &&
        append(view, index, item->metric, item->value, NULL, err) < 0)
      return -1;
  }
  return 0;
}

static int append_instances(rl_instruction_view *view, size_t index, const char *name, rl_error *err) {
  if (starts(name, "sass__inst_executed_per_opcode")) return append_histogram(view, index, name, err);
  return rl_collector_of(name) == RL_COLLECTOR_TOPOLOGY ? append_topology(view, index, name, err) : 0;
}

int rl_instruction_view_append_metrics(rl_instruction_view *view, size_t index, rl_error *err) {
  for (size_t i = 0; i < rl_raw_metric_count; i++) {
    const char *name = rl_raw_metrics[i].name, *reason = "";
    if (!rl_instruction_view_selects(view->request->profile, &rl_raw_metrics[i])) continue;
    double value = value_of(view, index, name, &reason);
    if (append(view, index, name, value, reason, err) < 0) return -1;
    if (!isnan(value) && append_instances(view, index, name, err) < 0) return -1;
  }
  return 0;
}
