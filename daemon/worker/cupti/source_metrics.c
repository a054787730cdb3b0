/* What the views of a kernel make of the catalogue's metrics. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "worker/cupti/sass.h"
#include "worker/cupti/source_parts.h"

static bool starts(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

rl_view rl_source_view(const char *metric) {
  if (starts(metric, "numa__") || starts(metric, "nvlink__") || starts(metric, "c2clink__")) return RL_VIEW_PLACE;
  if (starts(metric, "smsp__pcsamp_")) return RL_VIEW_SAMPLING;
  if (starts(metric, "profiler__pmsampler_")) return RL_VIEW_TIMELINE;
  return RL_VIEW_SASS;
}

static bool collects(const rl_raw_metric *metric) {
  return metric->origin == RL_ORIGIN_SASS || metric->origin == RL_ORIGIN_SAMPLING ||
         (metric->origin == RL_ORIGIN_DEVICE && rl_source_view(metric->name) == RL_VIEW_PLACE);
}

bool rl_source_collects(const char *metric) {
  for (size_t i = 0; i < rl_raw_metric_count; i++)
    if (strcmp(rl_raw_metrics[i].name, metric) == 0) return collects(&rl_raw_metrics[i]);
  return false;
}

static bool has_line(const char *lines, const char *word) {
  size_t length = strlen(word);
  for (const char *at = lines; *at != '\0'; at += strcspn(at, "\n"), at += *at == '\n')
    if (strncmp(at, word, length) == 0 && (at[length] == '\n' || at[length] == '\0')) return true;
  return false;
}

bool rl_source_wants(const rl_profile *profile, const rl_raw_metric *metric) {
  return collects(metric) && ((metric->sections & profile->sections) != 0 || has_line(profile->metrics, metric->name));
}

/* --- values ------------------------------------------------------------------------------------------------------------ */

/* Of the kernel of the request at an index. */
static double sampling_value(const rl_source *source, size_t index, const char *name, const char **reason) {
  const rl_listing *listing = &source->kernels[index].listing;
  const char *const *names = NULL;
  size_t count = rl_sampling_reasons(source->sampling, &names);
  double samples = rl_listing_sum(listing, RL_SAMPLES);
  if (strcmp(name, RL_SAMPLES) == 0) return samples;
  if (strcmp(name, "smsp__pcsamp_aggregated_passes") == 0)
    return rl_source_sampling_rounds(source, source->request->kernels[index].launch);
  if (strcmp(name, "smsp__pcsamp_interval_cycles") == 0) return ldexp(1, (int)source->period);
  *reason = samples == 0 ? "the kernel was over before a sample was taken" : "this device has no such stall reason";
  for (size_t i = 0; i < count && samples > 0; i++)
    if (strcmp(names[i], name) == 0) return rl_listing_sum(listing, name);
  return NAN;
}

static double place_value(const rl_source *source, const char *name, const char **reason) {
  for (size_t i = 0; i < source->place.count; i++)
    if (strcmp(source->place.items[i].metric, name) == 0) {
      *reason = source->place.items[i].reason;
      return source->place.items[i].value;
    }
  *reason = "NVML does not tell it";
  return NAN;
}

/* Rows of the section; the lines themselves are series. */
static double line_value(const rl_source *source, size_t index, const char *name, const char **reason) {
  const struct {
    const char *name;
    double value;
  } facts[] = {{"profiler__pmsampler_buffer_size_bytes", (double)rl_pm_buffer_bytes},
               {"profiler__pmsampler_interval_time", source->interval_ns},
               {"profiler__pmsampler_pass_groups", 1}};
  *reason = source->kernels[index].no_line;
  for (size_t i = 0; i < sizeof facts / sizeof *facts && **reason == '\0'; i++)
    if (strcmp(facts[i].name, name) == 0) return facts[i].value;
  return NAN;
}

static double executed(rl_listing *listing) { return rl_listing_divergence(listing).executed; }
static double executed_on(rl_listing *listing) { return rl_listing_divergence(listing).executed_on; }
static double unexecuted_on(rl_listing *listing) { return rl_listing_divergence(listing).unexecuted_on; }
static double derivative_on(rl_listing *listing) { return rl_listing_divergence(listing).derivative_on; }

/* There is no telling which accesses to local memory the compiler spilled; where there are none, none was spilled. */
static double spilled(rl_listing *listing) {
  double accesses =
      rl_listing_sum(listing, "sass__inst_executed_local_loads") + rl_listing_sum(listing, "sass__inst_executed_local_stores");
  return accesses == 0 ? 0 : NAN;
}

static double with_text(rl_listing *listing) { return listing->text == NULL ? NAN : rl_listing_sum(listing, RL_EXECUTED); }

static const struct {
  const char *name;
  double (*value)(rl_listing *listing);
  const char *reason; /* why it is NAN; NULL: the listing's reason for having no text */
} derived[] = {
    {"derived__avg_thread_executed", executed, ""},
    {"derived__avg_thread_executed_true", executed_on, ""},
    {"derived__avg_thread_unexecuted_true", unexecuted_on, ""},
    {"derived__derivative_avg_thread_executed_true", derivative_on, ""},
    {"derived__memory_l1_conflicts_shared_nway", rl_listing_conflicts, ""},
    {"sass__inst_executed_per_opcode", with_text, NULL},
    {"sass__inst_executed_per_opcode_category", with_text, NULL},
    {"sass__inst_executed_register_spilling", spilled, "CUPTI does not tell spills from other accesses to local memory"}};

static double sass_value(rl_listing *listing, const char *name, const char **reason) {
  if (rl_sass_counts(name)) return rl_listing_sum(listing, name);
  for (size_t i = 0; i < sizeof derived / sizeof *derived; i++)
    if (strcmp(derived[i].name, name) == 0) {
      *reason = derived[i].reason != NULL ? derived[i].reason : listing->text_reason;
      return derived[i].value(listing);
    }
  *reason = "CUPTI's SASS metrics do not have it";
  return NAN;
}

static double value_of(rl_source *source, size_t index, const char *name, const char **reason) {
  rl_view from = rl_source_view(name);
  *reason = source->reasons[from];
  if (**reason != '\0') return NAN;
  switch (from) {
    case RL_VIEW_PLACE: return place_value(source, name, reason);
    case RL_VIEW_SAMPLING: return sampling_value(source, index, name, reason);
    case RL_VIEW_TIMELINE: return line_value(source, index, name, reason);
    default: return sass_value(&source->kernels[index].listing, name, reason);
  }
}

/* --- rows -------------------------------------------------------------------------------------------------------------- */

static int append(rl_source *source, size_t index, const char *name, double value, const char *reason, rl_error *err) {
  rl_kernel_metric metric = {.ordinal = source->request->kernels[index].ordinal, .value = value};
  snprintf(metric.metric, sizeof metric.metric, "%s", name);
  if (isnan(value)) snprintf(metric.reason, sizeof metric.reason, "%s", reason);
  return rl_records_add_metric(source->records, &metric, err);
}

/* "sass__inst_executed_per_opcode:LDG" */
static int append_mix(rl_source *source, size_t index, const char *name, rl_error *err) {
  rl_mix_part parts[RL_MIX_MOST];
  rl_mix_key key = strcmp(name, "sass__inst_executed_per_opcode") == 0 ? RL_MIX_OPCODE : RL_MIX_CATEGORY;
  int count = rl_listing_mix(&source->kernels[index].listing, key, parts);
  for (int i = 0; i < count; i++) {
    char whole[RL_METRIC_NAME_SIZE];
    snprintf(whole, sizeof whole, "%s:%s", name, parts[i].name);
    if (append(source, index, whole, parts[i].executed, NULL, err) != 0) return -1;
  }
  return 0;
}

/* "numa__cpu_affinity:0-15" */
static int append_place(rl_source *source, size_t index, const char *name, rl_error *err) {
  for (size_t i = 0; i < source->place.count; i++) {
    const rl_kernel_metric *item = &source->place.items[i];
    if (starts(item->metric, name) && item->metric[strlen(name)] == ':' &&
        append(source, index, item->metric, item->value, NULL, err) != 0)
      return -1;
  }
  return 0;
}

static int append_parts(rl_source *source, size_t index, const char *name, rl_error *err) {
  if (starts(name, "sass__inst_executed_per_opcode")) return append_mix(source, index, name, err);
  return rl_source_view(name) == RL_VIEW_PLACE ? append_place(source, index, name, err) : 0;
}

int rl_source_append_metrics(rl_source *source, size_t index, rl_error *err) {
  for (size_t i = 0; i < rl_raw_metric_count; i++) {
    const char *name = rl_raw_metrics[i].name, *reason = "";
    if (!rl_source_wants(source->request->profile, &rl_raw_metrics[i])) continue;
    double value = value_of(source, index, name, &reason);
    if (append(source, index, name, value, reason, err) != 0) return -1;
    if (!isnan(value) && append_parts(source, index, name, err) != 0) return -1;
  }
  return 0;
}
