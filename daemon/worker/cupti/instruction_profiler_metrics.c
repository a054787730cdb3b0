/* Computes the values of the catalogue's metrics from the data that instruction_profiler.h has collected, and appends them to the
 * records. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "worker/code/operands.h"
#include "worker/cupti/sass_metrics.h"
#include "worker/cupti/instruction_profiler_internal.h"

rl_collector rl_collector_of_metric(const char *metric) {
  if (rl_begins_with(metric, "numa__") || rl_begins_with(metric, "nvlink__") || rl_begins_with(metric, "c2clink__"))
    return RL_COLLECTOR_INTERCONNECT_TOPOLOGY;
  if (rl_begins_with(metric, "smsp__pcsamp_")) return RL_COLLECTOR_PC_SAMPLING;
  if (rl_begins_with(metric, "profiler__pmsampler_")) return RL_COLLECTOR_PM_SAMPLING;
  return RL_COLLECTOR_SASS_METRICS;
}

static bool is_collected_here(const rl_raw_metric *metric) {
  return metric->origin == RL_ORIGIN_SASS || metric->origin == RL_ORIGIN_SAMPLING ||
         (metric->origin == RL_ORIGIN_DEVICE && rl_collector_of_metric(metric->name) == RL_COLLECTOR_INTERCONNECT_TOPOLOGY);
}

bool rl_instruction_profiler_collects(const char *metric) {
  const rl_raw_metric *known = rl_raw_metric_find(metric);
  return known != NULL && is_collected_here(known);
}

/* Returns true when a line of the text equals the word. */
static bool has_line(const char *text, const char *word) {
  size_t length = strlen(word);
  for (const char *line = text; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n')
    if (strncmp(line, word, length) == 0 && (line[length] == '\n' || line[length] == '\0')) return true;
  return false;
}

bool rl_instruction_profiler_selects(const rl_profile_options *profile_options, const rl_raw_metric *metric) {
  return is_collected_here(metric) &&
         ((metric->sections & profile_options->sections) != 0 || has_line(profile_options->metrics, metric->name));
}

/* The next functions return one metric of the request's kernel `index`, or NAN and set *reason. */

enum { NCU_INTERVAL_OFFSET = 5 }; /* ncu's interval i stands for 2^(5 + i) cycles */

static double pc_sampling_value(const rl_instruction_profiler *profiler, size_t index, const char *name, const char **reason) {
  const rl_instruction_profile *profile = &profiler->kernels[index].profile;
  const char *const *names = NULL;
  size_t count = rl_pc_sampling_stall_reasons(profiler->pc_sampling, &names);
  double samples = rl_instruction_profile_sum(profile, RL_PCSAMP_SAMPLE_COUNT);
  if (strcmp(name, RL_PCSAMP_SAMPLE_COUNT) == 0) return samples;
  if (strcmp(name, RL_DROPPED_SAMPLES) == 0) return rl_instruction_profile_sum(profile, name);
  if (strcmp(name, "smsp__pcsamp_aggregated_passes") == 0)
    return rl_instruction_profiler_sampling_rounds(profiler, profiler->request->kernels[index].launch_index);
  if (strcmp(name, "smsp__pcsamp_interval_cycles") == 0) return ldexp(1, (int)profiler->sampling_period_log2);
  if (strcmp(name, "smsp__pcsamp_interval") == 0) return (double)profiler->sampling_period_log2 - NCU_INTERVAL_OFFSET;
  if (strcmp(name, "smsp__pcsamp_buffer_size_bytes") == 0) return (double)rl_pc_sampling_buffer_bytes(profiler->pc_sampling);
  *reason = samples == 0 ? rl_instruction_profile_no_sample_reason(profile) : "this device has no such stall reason";
  for (size_t i = 0; i < count && samples > 0; i++)
    if (strcmp(names[i], name) == 0) return rl_instruction_profile_sum(profile, name);
  return NAN;
}

static double topology_value(const rl_instruction_profiler *profiler, const char *name, const char **reason) {
  for (size_t i = 0; i < profiler->interconnect_topology.count; i++)
    if (strcmp(profiler->interconnect_topology.items[i].metric, name) == 0) {
      *reason = profiler->interconnect_topology.items[i].reason;
      return profiler->interconnect_topology.items[i].value;
    }
  *reason = "NVML does not report it";
  return NAN;
}

/* Returns a parameter of PM sampling. The samples themselves are stored as series, not as metrics. */
static double pm_sampling_value(const rl_instruction_profiler *profiler, size_t index, const char *name, const char **reason) {
  const struct {
    const char *name;
    double value;
  } parameters[] = {{"profiler__pmsampler_buffer_size_bytes", (double)rl_pm_sampling_buffer_bytes},
                    {"profiler__pmsampler_interval_time", profiler->pm_interval_ns},
                    {"profiler__pmsampler_pass_groups", 1}};
  *reason = profiler->kernels[index].no_timeline_reason;
  for (size_t i = 0; i < sizeof parameters / sizeof *parameters && **reason == '\0'; i++)
    if (strcmp(parameters[i].name, name) == 0) return parameters[i].value;
  return NAN;
}

static double threads_executed(rl_instruction_profile *profile) { return rl_instruction_profile_divergence(profile).executed; }
static double threads_executed_true(rl_instruction_profile *profile) {
  return rl_instruction_profile_divergence(profile).executed_true;
}
static double threads_unexecuted_true(rl_instruction_profile *profile) {
  return rl_instruction_profile_divergence(profile).unexecuted_true;
}
static double threads_derivative_true(rl_instruction_profile *profile) {
  return rl_instruction_profile_divergence(profile).derivative_true;
}

/* Returns 0 register spills if the kernel does not access local memory, else NAN: CUPTI does not distinguish spills from other
 * accesses to local memory. */
static double register_spilling(rl_instruction_profile *profile) {
  double accesses = rl_instruction_profile_sum(profile, "sass__inst_executed_local_loads") +
                    rl_instruction_profile_sum(profile, "sass__inst_executed_local_stores");
  return accesses == 0 ? 0 : NAN;
}

/* Returns the number of executed instructions, which is the total of the histogram by opcode. Returns NAN without SASS, because
 * the histogram needs SASS. */
static double executed_if_disassembled(rl_instruction_profile *profile) {
  return profile->sass == NULL ? NAN : rl_instruction_profile_sum(profile, RL_INST_EXECUTED);
}

/* Defines a metric that needs operands: NAN without SASS. */
#define OPERAND_METRIC(NAME) \
  static double NAME(rl_instruction_profile *profile) { return profile->sass == NULL ? NAN : rl_operands_##NAME(profile); }
OPERAND_METRIC(hfma2_moves)
OPERAND_METRIC(hadd2_moves)
OPERAND_METRIC(spilled_bytes)
OPERAND_METRIC(dependent_loads)
#undef OPERAND_METRIC

/* Metrics that are computed from SASS metrics. */
#define UNKNOWN_SPILLS "CUPTI does not distinguish spills from other accesses to local memory"
static const struct {
  const char *name;
  double (*value)(rl_instruction_profile *profile);
  const char *reason; /* reason why the value is NAN; NULL: the profile's sass_reason */
} derived_metrics[] = {{"derived__avg_thread_executed", threads_executed, ""},
                       {"derived__avg_thread_executed_true", threads_executed_true, ""},
                       {"derived__avg_thread_unexecuted_true", threads_unexecuted_true, ""},
                       {"derived__derivative_avg_thread_executed_true", threads_derivative_true, ""},
                       {"derived__memory_l1_conflicts_shared_nway", rl_instruction_profile_shared_conflicts, ""},
                       {"code__thread_inst_executed_hfma2_moves", hfma2_moves, NULL},
                       {"code__thread_inst_executed_hadd2_moves", hadd2_moves, NULL},
                       {"code__spilled_bytes", spilled_bytes, "the code also has arrays in local memory"},
                       {"code__inst_executed_dependent_loads", dependent_loads, NULL},
                       {"sass__inst_executed_per_opcode", executed_if_disassembled, NULL},
                       {"sass__inst_executed_per_opcode_category", executed_if_disassembled, NULL},
                       {"sass__inst_executed_register_spilling", register_spilling, UNKNOWN_SPILLS},
                       {"sass__inst_executed_register_spilling_mem_local", register_spilling, UNKNOWN_SPILLS},
                       {"sass__inst_executed_register_spilling_mem_shared", register_spilling, UNKNOWN_SPILLS},
                       {"sass__inst_executed_register_spilling_op_read", register_spilling, UNKNOWN_SPILLS},
                       {"sass__inst_executed_register_spilling_op_write", register_spilling, UNKNOWN_SPILLS}};
#undef UNKNOWN_SPILLS

static double sass_value(rl_instruction_profile *profile, const char *name, const char **reason) {
  if (rl_sass_metrics_has_metric(name)) return rl_instruction_profile_sum(profile, name);
  for (size_t i = 0; i < sizeof derived_metrics / sizeof *derived_metrics; i++)
    if (strcmp(derived_metrics[i].name, name) == 0) {
      bool lacks_sass = profile->sass == NULL && derived_metrics[i].value != register_spilling;
      *reason = derived_metrics[i].reason == NULL || lacks_sass ? profile->sass_reason : derived_metrics[i].reason;
      return derived_metrics[i].value(profile);
    }
  *reason = "CUPTI's SASS metrics do not have it";
  return NAN;
}

static double metric_value(rl_instruction_profiler *profiler, size_t index, const char *name, const char **reason) {
  rl_collector collector = rl_collector_of_metric(name);
  *reason = profiler->reasons[collector];
  if (**reason != '\0') return NAN;
  switch (collector) {
    case RL_COLLECTOR_INTERCONNECT_TOPOLOGY: return topology_value(profiler, name, reason);
    case RL_COLLECTOR_PC_SAMPLING: return pc_sampling_value(profiler, index, name, reason);
    case RL_COLLECTOR_PM_SAMPLING: return pm_sampling_value(profiler, index, name, reason);
    default: return sass_value(&profiler->kernels[index].profile, name, reason);
  }
}

static int append_metric(rl_instruction_profiler *profiler, size_t index, const char *name, double value, const char *reason,
                         rl_error *err) {
  rl_kernel_metric metric = {.ordinal = profiler->request->kernels[index].ordinal, .value = value};
  snprintf(metric.metric, sizeof metric.metric, "%s", name);
  if (isnan(value)) snprintf(metric.reason, sizeof metric.reason, "%s", reason);
  return rl_records_add_metric(profiler->records, &metric, err);
}

/* Appends one metric per opcode or category: "sass__inst_executed_per_opcode:LDG". */
static int append_histogram(rl_instruction_profiler *profiler, size_t index, const char *name, rl_error *err) {
  rl_opcode_count counts[RL_MAX_OPCODE_COUNTS];
  rl_opcode_grouping grouping = strcmp(name, "sass__inst_executed_per_opcode") == 0 ? RL_BY_OPCODE : RL_BY_CATEGORY;
  int count = rl_instruction_profile_histogram(&profiler->kernels[index].profile, grouping, counts);
  for (int i = 0; i < count; i++) {
    char full_name[RL_METRIC_NAME_SIZE];
    snprintf(full_name, sizeof full_name, "%s:%s", name, counts[i].name);
    if (append_metric(profiler, index, full_name, counts[i].executed, NULL, err) < 0) return -1;
  }
  return 0;
}

/* Appends the instances of a topology metric: "numa__cpu_affinity:0-15". */
static int append_topology(rl_instruction_profiler *profiler, size_t index, const char *name, rl_error *err) {
  for (size_t i = 0; i < profiler->interconnect_topology.count; i++) {
    const rl_kernel_metric *item = &profiler->interconnect_topology.items[i];
    if (rl_begins_with(item->metric, name) && item->metric[strlen(name)] == ':' &&
        append_metric(profiler, index, item->metric, item->value, NULL, err) < 0)
      return -1;
  }
  return 0;
}

static int append_instances(rl_instruction_profiler *profiler, size_t index, const char *name, rl_error *err) {
  if (rl_begins_with(name, "sass__inst_executed_per_opcode")) return append_histogram(profiler, index, name, err);
  return rl_collector_of_metric(name) == RL_COLLECTOR_INTERCONNECT_TOPOLOGY ? append_topology(profiler, index, name, err) : 0;
}

int rl_instruction_profiler_append_metrics(rl_instruction_profiler *profiler, size_t index, rl_error *err) {
  for (size_t i = 0; i < rl_raw_metric_count; i++) {
    const char *name = rl_raw_metrics[i].name, *reason = "";
    if (!rl_instruction_profiler_selects(profiler->request->profile_options, &rl_raw_metrics[i])) continue;
    double value = metric_value(profiler, index, name, &reason);
    if (append_metric(profiler, index, name, value, reason, err) < 0) return -1;
    if (!isnan(value) && append_instances(profiler, index, name, err) < 0) return -1;
  }
  return 0;
}
