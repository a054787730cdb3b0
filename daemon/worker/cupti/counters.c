/* Runs the launches of the step several times: first while a trace records the step's kernels, then once for each replay pass.
 * The ordinal of a kernel is its index in the step, in order of issue. */
#include "worker/cupti/counters.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/metrics.h"
#include "worker/cupti/device_attributes.h"
#include "worker/cupti/cluster_limits.h"
#include "worker/cupti/counter_evaluation.h"
#include "worker/cupti/cache_flush.h"
#include "worker/cupti/launch_metrics.h"
#include "worker/cupti/check.h"
#include "worker/cupti/subscriber.h"

enum { SASS_TIMEOUT_MS = 1000 };

typedef struct rl_step_kernel {
  rl_activity_row activity;
  rl_launch_attributes attributes;
  size_t launch_index;                                         /* into rl_sequence.launches: the launch that issued it */
  int barriers;                                                /* named barriers that a block uses; negative: unknown */
  char name[RL_KERNEL_NAME_SIZE], symbol[RL_KERNEL_NAME_SIZE]; /* demangled; mangled */
} step_kernel;

typedef struct profiled_step {
  rl_counters *counters;
  rl_instance *instance;
  const rl_sequence *sequence;
  const rl_observer *observer; /* NULL is allowed */
  rl_cache_flush *flush;
  const step_kernel *kernels;
  bool *selected; /* for each of the kernel_count kernels: whether the profile options select it */
  size_t kernel_count, selected_count;
  /* Ranges of the range profiler, in order of issue: one for each kernel, and one for each kernel that a flush launches. */
  size_t *range_of_kernel;
  bool *range_selected; /* for each of the range_count ranges: whether it is that of a selected kernel */
  size_t range_count;
  uint64_t replay_count, replays_done; /* replay passes of the range profiler: all, and those completed */
  rl_stage_timer timer;
} profiled_step;

/* Issues each launch of a sequence once and waits for the device. tag_launches: calls rl_trace_push_launch with the index of each
 * launch, so that the trace records to which launch a kernel belongs. */
static int run_sequence(const profiled_step *step, const rl_sequence *sequence, bool tag_launches, rl_error *err) {
  rl_stream stream = step->instance->device->stream;
  for (size_t i = 0; i < sequence->launch_count; i++) {
    const rl_launch *launch = &sequence->launches[i];
    if (tag_launches && rl_trace_push_launch((uint32_t)i, err) < 0) return -1;
    int result = launch->enqueue(launch->arg, stream, err);
    if (tag_launches && rl_trace_pop_launch(result < 0 ? NULL : err) < 0) return -1;
    if (result < 0) return rl_wrap(err, "%s", launch->name);
  }
  return rl_cuda_check(cudaStreamSynchronize(stream), sequence->name, err);
}

/* Runs the sequences before the step, which prepare its inputs. */
static int run_preceding_sequences(const profiled_step *step, rl_error *err) {
  const rl_sequence_list *iteration = &step->instance->iteration;
  for (const rl_sequence *sequence = iteration->sequences; sequence < step->sequence; sequence++)
    if (sequence->repeat > 0 && run_sequence(step, sequence, false, err) < 0) return -1;
  return 0;
}

static int restore_inputs(void *context, rl_error *err) {
  const profiled_step *step = context;
  if (step->instance->ops->restore(step->instance, err) < 0) return -1;
  return rl_cuda_check(cudaDeviceSynchronize(), "restoring the step's inputs", err);
}

/* Runs the step once, and flushes the caches before each selected kernel. */
static int run_with_cold_caches(void *context, rl_error *err) {
  const profiled_step *step = context;
  uint64_t launched = 0;
  if (rl_cache_flush_enable(step->flush, step->selected, step->kernel_count, err) < 0) return -1;
  int result = run_sequence(step, step->sequence, false, err);
  if (rl_cache_flush_disable(step->flush, &launched, result < 0 ? NULL : err) < 0 || result < 0) return -1;
  if (launched != step->kernel_count)
    return rl_fail(err, RL_CUPTI, 0, "the step launched %zu kernels when traced and %llu under the range profiler",
                   step->kernel_count, (unsigned long long)launched);
  return 0;
}

/* Called after each replay pass. Reports progress to the observer; -1 when the observer cancels the request. */
static int on_pass_ended(void *context, rl_error *err) {
  profiled_step *step = context;
  const rl_observer *observer = step->observer;
  step->replays_done++;
  if (observer == NULL) return 0;
  if (observer->progress != NULL) observer->progress(observer->context, step->replays_done, step->replay_count);
  if (observer->cancelled != NULL && observer->cancelled(observer->context))
    return rl_fail(err, RL_ERRNO, ECANCELED, "cancelled between two passes of the range profiler");
  return 0;
}

static int compare_correlation(const void *a, const void *b) {
  const rl_external_correlation *x = a, *y = b;
  return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

/* Compares two kernels by correlation id, which grows with each API call. */
static int compare_issue_order(const void *a, const void *b) {
  const step_kernel *x = a, *y = b;
  return (x->activity.correlation > y->activity.correlation) - (x->activity.correlation < y->activity.correlation);
}

static const rl_launch_attributes *find_attributes(const rl_trace_result *traced, uint32_t correlation) {
  for (size_t i = 0; i < traced->attributes_count; i++)
    if (traced->launch_attributes[i].correlation == correlation) return &traced->launch_attributes[i];
  return NULL;
}

/* Runs the step once, because the first launch of a kernel loads its module. Must run while PC sampling is enabled, because CUPTI
 * samples only modules that were loaded while it was enabled. Later traces and replay passes do not include the loading. */
static int load_modules(profiled_step *step, rl_error *err) {
  return run_sequence(step, step->sequence, false, err) < 0 ? -1 : restore_inputs(step, err);
}

/* Sets max_cluster_blocks of the kernels whose activity record has no value. Does nothing unless there are as many limits as
 * kernels. Both lists are in order of issue. */
static void add_cluster_limits(rl_kernel_list *list, const rl_cluster_limits *limits) {
  for (size_t i = 0; i < list->count && limits->count == list->count; i++)
    if (list->kernels[i].attributes.max_cluster_blocks == 0)
      list->kernels[i].attributes.max_cluster_blocks = (uint32_t)limits->max_blocks[i];
}

/* Runs the step once while the trace records it. */
static int trace_step(const profiled_step *step, rl_trace_result *traced, rl_cluster_limits *limits, rl_error *err) {
  rl_trace *trace = step->counters->trace;
  if (rl_trace_start(trace, rl_trace_launch_kinds, err) < 0) return -1;
  int result = rl_cluster_limits_start(limits, err);
  if (result == 0) result = run_sequence(step, step->sequence, true, err);
  rl_cluster_limits_stop();
  return rl_trace_stop(trace, traced, result < 0 ? NULL : err) < 0 ? -1 : result;
}

/* Returns a copy of the trace's correlations, sorted by correlation id. Returns NULL if memory is exhausted. */
static rl_external_correlation *sorted_correlations(const rl_trace_result *traced) {
  rl_external_correlation *sorted = calloc(traced->correlation_count + 1, sizeof *sorted);
  if (sorted == NULL) return NULL;
  if (traced->correlation_count > 0) memcpy(sorted, traced->correlations, traced->correlation_count * sizeof *sorted);
  qsort(sorted, traced->correlation_count, sizeof *sorted, compare_correlation);
  return sorted;
}

/* Sets names, and the number of barriers if the kernel's code is known. */
static void set_name_and_barriers(step_kernel *kernel, const rl_name_entry *name) {
  snprintf(kernel->name, sizeof kernel->name, "%s", name->demangled);
  snprintf(kernel->symbol, sizeof kernel->symbol, "%s", name->mangled);
  rl_cubin_function function = {.barriers = -1};
  (void)rl_loaded_function_find_unique(kernel->symbol, &function);
  kernel->barriers = function.barriers;
}

/* Adds the kernel of an activity record; -1 when CUPTI did not record its launch. correlations: sorted by correlation id. */
static int add_step_kernel(const rl_trace_result *traced, const rl_external_correlation *correlations,
                           const rl_activity_row *activity, rl_kernel_list *list, rl_error *err) {
  const rl_name_entry *name = &traced->names->items[activity->name];
  const rl_external_correlation *correlation = bsearch(&(rl_external_correlation){activity->correlation, 0}, correlations,
                                                       traced->correlation_count, sizeof *correlations, compare_correlation);
  const rl_launch_attributes *attributes = find_attributes(traced, activity->correlation);
  if (correlation == NULL || attributes == NULL)
    return rl_fail(err, RL_CUPTI, 0, "CUPTI did not record which launch %s belongs to", name->demangled);
  step_kernel *kernel = &list->kernels[list->count++];
  kernel->activity = *activity;
  kernel->attributes = *attributes;
  kernel->launch_index = correlation->launch_index;
  set_name_and_barriers(kernel, name);
  return 0;
}

static int list_kernels(const rl_trace_result *traced, rl_kernel_list *list, rl_error *err) {
  list->kernels = calloc(traced->kernel_count + 1, sizeof *list->kernels);
  rl_external_correlation *correlations = sorted_correlations(traced);
  if (list->kernels == NULL || correlations == NULL) {
    free(correlations);
    return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the kernels of a step");
  }
  int result = 0;
  for (size_t i = 0; i < traced->row_count && result == 0; i++)
    if (traced->rows[i].kind == RL_ACTIVITY_KERNEL) result = add_step_kernel(traced, correlations, &traced->rows[i], list, err);
  free(correlations);
  if (result == 0 && (traced->dropped_count > 0 || list->count == 0))
    result = rl_fail(err, RL_CUPTI, 0, "CUPTI recorded %zu kernels of the step and dropped %llu records", list->count,
                     (unsigned long long)traced->dropped_count);
  qsort(list->kernels, list->count, sizeof *list->kernels, compare_issue_order);
  return result;
}

static int trace_and_list_kernels(const profiled_step *step, rl_kernel_list *list, rl_error *err) {
  rl_cluster_limits limits = {0};
  rl_trace_result traced;
  int result = trace_step(step, &traced, &limits, err);
  if (result == 0) result = list_kernels(&traced, list, err);
  if (result == 0) add_cluster_limits(list, &limits);
  rl_cluster_limits_clear(&limits);
  if (result == 0) list->instance = step->instance;
  return result;
}

/* Traces the step and sets its kernels. Keeps the list for later collections of the same instance: replay requires anyway that
 * the step launches the same kernels every time. */
static int list_step_kernels(profiled_step *step, rl_error *err) {
  rl_kernel_list *list = &step->counters->kernel_list;
  if (list->instance != step->instance) {
    rl_counters_reset(step->counters);
    if (load_modules(step, err) < 0 || trace_and_list_kernels(step, list, err) < 0) return -1;
  }
  step->kernels = list->kernels;
  step->kernel_count = list->count;
  return 0;
}

/* Returns true if the pattern of the profile options is empty or matches the kernel's name or its launch's name. */
static bool kernel_matches(const rl_profile_options *profile_options, const rl_launch *launch, const char *kernel_name) {
  return profile_options->kernel_pattern[0] == '\0' || fnmatch(profile_options->kernel_pattern, kernel_name, 0) == 0 ||
         fnmatch(profile_options->kernel_pattern, launch->name, 0) == 0;
}

/* Selects the kernels that match the pattern: all of them, or the one with index matching_index among them. Returns -1 with
 * RL_INPUT when there is none. */
static int select_kernels(const rl_profile_options *profile_options, profiled_step *step, rl_error *err) {
  int64_t matching = 0; /* kernels that match so far */
  step->selected = calloc(step->kernel_count + 1, sizeof *step->selected);
  if (step->selected == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the kernels of a step");
  for (size_t i = 0; i < step->kernel_count; i++) {
    const step_kernel *kernel = &step->kernels[i];
    if (!kernel_matches(profile_options, &step->sequence->launches[kernel->launch_index], kernel->name)) continue;
    step->selected[i] = profile_options->matching_index == RL_ALL_MATCHING_KERNELS || profile_options->matching_index == matching;
    step->selected_count += step->selected[i];
    matching++;
  }
  if (step->selected_count > 0) return 0;
  return rl_fail(err, RL_INPUT, 0, "the step has %zu kernels; %lld match \"%s\", so there is no matching kernel with index %lld",
                 step->kernel_count, (long long)matching, profile_options->kernel_pattern,
                 (long long)(profile_options->matching_index < 0 ? 0 : profile_options->matching_index));
}

/* Lists the ranges of a step whose selected kernels are flushed. */
static int list_ranges(profiled_step *step, rl_error *err) {
  const size_t flush_kernels = rl_cache_flush_kernel_count(step->flush);
  step->range_count = step->kernel_count + flush_kernels * step->selected_count;
  step->range_of_kernel = calloc(step->kernel_count + 1, sizeof *step->range_of_kernel);
  step->range_selected = calloc(step->range_count + 1, sizeof *step->range_selected);
  if (step->range_of_kernel == NULL || step->range_selected == NULL)
    return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the ranges of a step");
  size_t range = 0;
  for (size_t k = 0; k < step->kernel_count; k++) {
    if (step->selected[k]) range += flush_kernels;
    step->range_selected[range] = step->selected[k];
    step->range_of_kernel[k] = range++;
  }
  return 0;
}

/* Collects the counters of a plan and starts to evaluate them. */
static int collect_counters(const rl_counter_plan *plan, profiled_step *step, rl_counter_evaluation *evaluation, rl_error *err) {
  const rl_user_replay replay = {.restore = restore_inputs,
                                 .run = run_with_cold_caches,
                                 .on_pass_ended = on_pass_ended,
                                 .context = step,
                                 .timer = &step->timer};
  for (size_t g = 0; g < plan->group_count; g++) {
    size_t image_size = 0;
    if (rl_range_profiler_collect(&step->counters->range_profiler, &plan->groups[g], &replay, step->range_count, err) < 0)
      return -1;
    const uint8_t *image = rl_range_profiler_image(step->counters->range_profiler, &image_size);
    if (rl_counter_evaluation_add(evaluation, g, image, image_size, err) < 0) return -1;
  }
  rl_counter_evaluation_start(evaluation);
  return 0;
}

static int append_kernel(const rl_counters *counters, const profiled_step *step, size_t ordinal, rl_records *records,
                         rl_error *err) {
  const step_kernel *kernel = &step->kernels[ordinal];
  const rl_launch *launch = &step->sequence->launches[kernel->launch_index];
  const rl_activity_row *activity = &kernel->activity;
  rl_kernel record = {.ordinal = (int64_t)ordinal,
                      .launches = 1,
                      .total_us = NAN,
                      .min_us = NAN,
                      .median_us = NAN,
                      .max_us = NAN,
                      .share_ratio = NAN,
                      .registers_per_thread = activity->registers,
                      .static_shared_bytes = activity->static_shared_bytes,
                      .dynamic_shared_bytes = activity->dynamic_shared_bytes,
                      .grid_x = activity->grid[0],
                      .grid_y = activity->grid[1],
                      .grid_z = activity->grid[2],
                      .block_x = activity->block[0],
                      .block_y = activity->block[1],
                      .block_z = activity->block[2],
                      .theoretical_occupancy_ratio = rl_occupancy_ratio(counters->device_limits, activity, kernel->barriers)};
  snprintf(record.launch, sizeof record.launch, "%s", launch->name);
  snprintf(record.phase, sizeof record.phase, "%s", launch->nvtx_range);
  snprintf(record.name, sizeof record.name, "%s", kernel->name);
  snprintf(record.reason, sizeof record.reason,
           "the counters pass replays each launch alone with cold caches; the activity pass has the times");
  return rl_records_add(records, RL_RECORD_KERNEL, &record, 1, err);
}

static int append_metric(int64_t ordinal, const char *name, double value, const char *reason, rl_records *records,
                         rl_error *err) {
  rl_kernel_metric record = {.ordinal = ordinal, .value = isfinite(value) ? value : NAN};
  snprintf(record.metric, sizeof record.metric, "%s", name);
  if (!isfinite(value)) snprintf(record.reason, sizeof record.reason, "%s", reason);
  return rl_records_add_metric(records, &record, err);
}

static int append_counters(const rl_prepared_profile *prepared, size_t ordinal, const double *values, rl_records *records,
                           rl_error *err) {
  const rl_counter_plan *plan = prepared->plan;
  for (size_t m = 0; m < plan->metric_count; m++) {
    const char *reason = plan->missing_reasons[m].text;
    if (reason[0] != '\0' && rl_is_only_on_raw_page(prepared->counter_names[m]))
      continue; /* the report lists these names itself */
    if (reason[0] == '\0') reason = RL_METRIC_UNDEFINED;
    double value = values[ordinal * plan->metric_count + m];
    const char *contradiction = rl_counter_contradiction(prepared->counter_names[m], value);
    if (contradiction != NULL) value = NAN, reason = contradiction;
    if (append_metric((int64_t)ordinal, prepared->counter_names[m], value, reason, records, err) < 0) return -1;
  }
  return 0;
}

/* Returns whether the options select the section "Occupancy", to which the occupancy curves belong. */
static bool selects_occupancy_curves(const rl_profile_options *profile_options) {
  for (size_t i = 0; i < rl_section_count; i++)
    if (strcmp(rl_sections[i].id, "Occupancy") == 0) return (profile_options->sections & UINT32_C(1) << i) != 0;
  return false;
}

/* The counters of one plan. */
typedef struct collected_counters {
  const rl_prepared_profile *prepared;
  rl_counter_evaluation *evaluation; /* owned */
  const double *values;              /* values[kernel * prepared->plan->metric_count + metric]; set when they are evaluated */
} collected_counters;

enum { MAX_PLANS = 2 };
typedef struct collection {
  collected_counters plans[MAX_PLANS];
  size_t plan_count;
} collection;

static void clear_collection(collection *collected) {
  for (size_t i = 0; i < collected->plan_count; i++) rl_counter_evaluation_close(collected->plans[i].evaluation);
}

/* Waits until the counters that were collected are evaluated. */
static int wait_for_values(collection *collected, rl_error *err) {
  for (size_t i = 0; i < collected->plan_count; i++) {
    if (rl_counter_evaluation_wait(collected->plans[i].evaluation, err) < 0) return -1;
    collected->plans[i].values = rl_counter_evaluation_values(collected->plans[i].evaluation);
  }
  return 0;
}

static const rl_prepared_profile *last_profile(const collection *collected) {
  return collected->plans[collected->plan_count - 1].prepared;
}

/* Returns the value of a counter; NAN if no plan has collected it. */
static double collected_value(const collection *collected, size_t ordinal, const char *counter) {
  for (size_t i = 0; i < collected->plan_count; i++) {
    const rl_prepared_profile *prepared = collected->plans[i].prepared;
    const size_t found = rl_prepared_profile_index(prepared, counter);
    if (found < prepared->plan->metric_count) return collected->plans[i].values[ordinal * prepared->plan->metric_count + found];
  }
  return NAN;
}

static int append_collected(const collection *collected, size_t ordinal, rl_records *records, rl_error *err) {
  for (size_t i = 0; i < collected->plan_count; i++)
    if (append_counters(collected->plans[i].prepared, ordinal, collected->plans[i].values, records, err) < 0) return -1;
  return 0;
}

/* Returns the value of a skipped metric: the sum of its terms, 0 when no profiled kernel has an instruction that the metric
 * counts, else NAN. Sets *reason to why it was not collected, or why it has no value. */
static double skipped_value(const collection *collected, size_t ordinal, const rl_selected_metric *metric, const char **reason) {
  double values[RL_MAX_TERMS];
  *reason = metric->skip_reason;
  if (metric->term_count == 0) return metric->known_value;
  for (size_t t = 0; t < metric->term_count; t++) values[t] = collected_value(collected, ordinal, metric->terms[t]);
  const char *contradiction;
  const double sum = rl_counter_terms_sum(values, metric->term_count, metric->added_term_count, &contradiction);
  if (contradiction != NULL) *reason = contradiction;
  return sum;
}

/* Appends a metric that was not collected, with the reason also if it has a value. */
static int append_skipped(const collection *collected, size_t ordinal, const rl_selected_metric *metric, rl_records *records,
                          rl_error *err) {
  const char *reason;
  rl_kernel_metric record = {.ordinal = (int64_t)ordinal, .value = skipped_value(collected, ordinal, metric, &reason)};
  snprintf(record.metric, sizeof record.metric, "%s", metric->name);
  snprintf(record.reason, sizeof record.reason, "%s", reason);
  return rl_records_add_metric(records, &record, err);
}

/* Appends the metrics that need no counters: launch metrics, device attributes and skipped metrics. The profile of the last plan
 * lists them. */
static int append_other_metrics(const rl_counters *counters, const collection *collected, const profiled_step *step,
                                size_t ordinal, rl_records *records, rl_error *err) {
  const rl_metric_selection *selection = &last_profile(collected)->selection;
  const step_kernel *kernel = &step->kernels[ordinal];
  const rl_launch_metric_inputs launch_inputs =
      rl_launch_metric_inputs_of(counters->device_limits, &kernel->activity, &kernel->attributes, kernel->barriers);
  for (size_t i = selection->counter_count; i < selection->count; i++) { /* the counters come first */
    const rl_selected_metric *metric = &selection->items[i];
    const char *reason = "";
    double value;
    if (metric->skip_reason != NULL) {
      if (append_skipped(collected, ordinal, metric, records, err) < 0) return -1;
      continue;
    }
    if (metric->origin == RL_ORIGIN_LAUNCH) value = rl_launch_metric(&launch_inputs, metric->name, &reason);
    else if (strncmp(metric->name, "device__", 8) == 0)
      value = rl_device_attribute(counters->device_index, metric->name, &reason);
    else continue;
    if (append_metric((int64_t)ordinal, metric->name, value, reason, records, err) < 0) return -1;
  }
  return 0;
}

/* Appends the selected kernels with the counters of all plans and the other metrics. */
static int append_results(const rl_counters *counters, const collection *collected, const profiled_step *step,
                          rl_records *records, rl_error *err) {
  for (size_t k = 0; k < step->kernel_count; k++) {
    const rl_block_resources resources = rl_block_resources_of(&step->kernels[k].activity, step->kernels[k].barriers);
    if (!step->selected[k]) continue;
    if (append_kernel(counters, step, k, records, err) < 0 || append_collected(collected, k, records, err) < 0 ||
        append_other_metrics(counters, collected, step, k, records, err) < 0)
      return -1;
    if (selects_occupancy_curves(&last_profile(collected)->profile_options) &&
        rl_occupancy_curves(counters->device_limits, &resources, (int64_t)k, records, err) < 0)
      return -1;
  }
  return 0;
}

static rl_launched_kernel *launched_kernels(const profiled_step *step) {
  rl_launched_kernel *kernels = calloc(step->kernel_count, sizeof *kernels);
  for (size_t i = 0; kernels != NULL && i < step->kernel_count; i++) {
    const rl_activity_row *activity = &step->kernels[i].activity;
    kernels[i] = (rl_launched_kernel){.symbol = step->kernels[i].symbol,
                                      .launch_index = step->kernels[i].launch_index,
                                      .duration_ns = (double)(activity->end_ns - activity->start_ns),
                                      .blocks = (int64_t)activity->grid[0] * activity->grid[1] * activity->grid[2],
                                      .ordinal = step->selected[i] ? (int64_t)i : -1};
  }
  return kernels;
}

/* Plans and collects the counters that code without instructions of absent_classes needs, except counters that *collected already
 * has. Adds the values to *collected. */
static int add_plan(rl_counters *counters, const rl_profile_options *profile_options, rl_instruction_classes absent_classes,
                    profiled_step *step, collection *collected, rl_error *err) {
  collected_counters *plan = &collected->plans[collected->plan_count];
  const rl_prepared_profile *before = collected->plan_count > 0 ? collected->plans[0].prepared : NULL;
  const rl_kernel_ranges ranges = {step->range_of_kernel, step->selected, step->kernel_count};
  if (wait_for_values(collected, err) < 0 ||
      rl_prepared_profile_find(&counters->prepared_profiles, counters->device_index, profile_options, absent_classes, before,
                               &plan->prepared, err) < 0)
    return -1;
  rl_stage_timer_lap(&step->timer, RL_PROFILER_STAGE_PLANNING);
  if (rl_counter_evaluation_open(plan->prepared->plan, &ranges, &plan->evaluation, err) < 0) return -1;
  collected->plan_count++;
  step->replay_count += plan->prepared->plan->passes;
  return collect_counters(plan->prepared->plan, step, plan->evaluation, err);
}

/* Collects the counters. A counter that only instructions of absent classes increment is not collected; its value is 0. While
 * nvdisasm runs, collects the counters that every kernel needs; afterwards collects the counters of the special instructions that
 * the kernels have. */
static int collect_all(rl_counters *counters, const rl_profile_options *profile_options, profiled_step *step,
                       collection *collected, rl_error *err) {
  const char *chip = rl_instruction_profiler_chip(counters->instruction_profiler);
  if (rl_instruction_profiler_awaits_sass(counters->instruction_profiler) &&
      add_plan(counters, profile_options, rl_all_instruction_classes(chip), step, collected, err) < 0)
    return -1;
  const rl_instruction_classes absent_classes =
      rl_instruction_profiler_absent_classes(counters->instruction_profiler, collected->plan_count > 0 ? SASS_TIMEOUT_MS : 0);
  rl_stage_timer_lap(&step->timer, RL_PROFILER_STAGE_APPENDING);
  return add_plan(counters, profile_options, absent_classes, step, collected, err);
}

typedef struct step_collection { /* context of the callbacks of the instruction profiler */
  profiled_step *step;
  collection *collected;
} step_collection;

static int restore_step(void *context, rl_error *err) { return restore_inputs(((step_collection *)context)->step, err); }

static void release_range_profiler(void *context) {
  rl_range_profiler_release(((step_collection *)context)->step->counters->range_profiler);
}

static int finish_evaluation(void *context, rl_error *err) {
  return wait_for_values(((step_collection *)context)->collected, err);
}

/* Collects the counters, and SASS metrics, PC samples and PM samples (instruction_profiler.h), while the counters are evaluated.
 */
static int collect_and_append(rl_counters *counters, const rl_profile_options *profile_options, profiled_step *step,
                              collection *collected, rl_records *records, rl_error *err) {
  if (collect_all(counters, profile_options, step, collected, err) < 0 ||
      rl_instruction_profiler_collect(counters->instruction_profiler, records, err) < 0 || wait_for_values(collected, err) < 0 ||
      append_results(counters, collected, step, records, err) < 0)
    return -1;
  rl_stage_timer_lap(&step->timer, RL_PROFILER_STAGE_EVALUATING);
  return rl_instruction_profiler_append(counters->instruction_profiler, err);
}

/* Collects everything about a step. rl_instruction_profiler_begin comes first, because it disables PC sampling: CUPTI can't
 * collect counters while PC sampling is enabled. */
static int collect_step(rl_counters *counters, const rl_profile_options *profile_options, profiled_step *step,
                        rl_records *records, rl_error *err) {
  collection collected = {0};
  step_collection context = {step, &collected};
  rl_launched_kernel *kernels = launched_kernels(step);
  if (kernels == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the kernels of a step");
  const rl_instruction_profiler_request request = {.instance = step->instance,
                                                   .sequence = step->sequence,
                                                   .kernels = kernels,
                                                   .kernel_count = step->kernel_count,
                                                   .profile_options = profile_options,
                                                   .flush = step->flush,
                                                   .restore = restore_step,
                                                   .release_range_profiler = release_range_profiler,
                                                   .finish_evaluation = finish_evaluation,
                                                   .context = &context,
                                                   .timer = &step->timer};
  int result = rl_instruction_profiler_begin(counters->instruction_profiler, &request, err);
  if (result == 0) result = collect_and_append(counters, profile_options, step, &collected, records, err);
  clear_collection(&collected);
  rl_instruction_profiler_end(counters->instruction_profiler);
  free(kernels);
  return result;
}

static int open_instruction_profiler(rl_counters *counters, rl_error *err) {
  return counters->instruction_profiler != NULL
             ? 0
             : rl_instruction_profiler_open(counters->device_index, &counters->instruction_profiler, err);
}

/* Profiles one step. The caller saves the instance's state before the call and restores it afterwards. */
static int profile_step(rl_counters *counters, const rl_profile_options *profile_options, profiled_step *step,
                        rl_records *records, rl_error *err) {
  if (list_step_kernels(step, err) < 0 || select_kernels(profile_options, step, err) < 0 ||
      open_instruction_profiler(counters, err) < 0 || rl_cache_flush_open(&step->flush, profile_options->cache, err) < 0 ||
      list_ranges(step, err) < 0)
    return -1;
  rl_stage_timer_lap(&step->timer, RL_PROFILER_STAGE_TRACING);
  return collect_step(counters, profile_options, step, records, err);
}

static int append_measurements(const profiled_step *step, rl_records *records, rl_error *err) {
  if (rl_records_add_measurement(records, "counter_passes", (double)step->replay_count, NULL, err) < 0) return -1;
  return rl_stage_timer_record(&step->timer, records, err);
}

int rl_counters_collect(rl_counters *counters, rl_instance *instance, const rl_profile_options *profile_options,
                        const rl_observer *observer, rl_records *records, char reason[RL_REASON_SIZE], rl_error *err) {
  rl_error profiling_error = {0};
  profiled_step step = {.counters = counters,
                        .instance = instance,
                        .observer = observer,
                        .sequence = &instance->iteration.sequences[instance->step_sequence]};
  rl_stage_timer_start(&step.timer);
  if (rl_cuda_check(cudaSetDevice(counters->device_index), "cudaSetDevice", err) < 0 || run_preceding_sequences(&step, err) < 0 ||
      instance->ops->save(instance, err) < 0)
    return -1;
  int result = profile_step(counters, profile_options, &step, records, &profiling_error);
  if (result < 0) rl_counters_reset(counters);
  rl_cache_flush_close(step.flush);
  free(step.selected);
  free(step.range_of_kernel);
  free(step.range_selected);
  if (restore_inputs(&step, result < 0 ? NULL : err) < 0 && result == 0) return -1;
  if (result == 0) return append_measurements(&step, records, err);
  if (rl_cupti_error_means_unavailable(&profiling_error)) {
    snprintf(reason, RL_REASON_SIZE, "%s", profiling_error.message);
    return 1;
  }
  if (err != NULL) *err = profiling_error;
  return -1;
}

void rl_counters_prepare(rl_counters *counters) {
  const rl_profile_options requested = {.matching_index = RL_ALL_MATCHING_KERNELS},
                           full = rl_profile_options_resolve(RL_PROFILE_SET_FULL, &requested);
  const rl_prepared_profile *common = NULL, *special = NULL;
  rl_error ignored;
  if (open_instruction_profiler(counters, &ignored) < 0) return;
  rl_instruction_profiler_prepare(counters->instruction_profiler);
  const rl_instruction_classes all = rl_all_instruction_classes(rl_instruction_profiler_chip(counters->instruction_profiler));
  rl_prepared_profiles *profiles = &counters->prepared_profiles;
  if (rl_prepared_profile_find(profiles, counters->device_index, &full, all, NULL, &common, &ignored) == 0)
    (void)rl_prepared_profile_find(profiles, counters->device_index, &full, all, common, &special, &ignored);
}

void rl_counters_reset(rl_counters *counters) {
  rl_range_profiler_release(counters->range_profiler);
  rl_instruction_profiler_restart_pc_sampling(counters->instruction_profiler);
  free(counters->kernel_list.kernels);
  counters->kernel_list = (rl_kernel_list){0};
}

void rl_counters_close(rl_counters *counters) {
  rl_counters_reset(counters);
  rl_range_profiler_close(&counters->range_profiler);
  rl_prepared_profiles_close(&counters->prepared_profiles);
  rl_instruction_profiler_close(counters->instruction_profiler);
}
