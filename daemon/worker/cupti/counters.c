#include "worker/cupti/counters.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cupti/attributes.h"
#include "worker/cupti/clusters.h"
#include "worker/cupti/flush.h"
#include "worker/cupti/launch.h"
#include "worker/cupti/result.h"
#include "worker/cupti/subscriber.h"

typedef struct rl_step_kernel {
  rl_activity_row row;
  rl_launch_detail detail;
  size_t launch;
  int barriers;                                                /* that a block takes; negative when its code is not known */
  char name[RL_KERNEL_NAME_SIZE], symbol[RL_KERNEL_NAME_SIZE]; /* demangled and not */
} step_kernel;

typedef struct counted_step { /* what is replayed */
  rl_counters *counters;
  rl_instance *instance;
  const rl_sequence *sequence;
  const rl_observer *observer;
  rl_flush *flush;
  const step_kernel *kernels;
  bool *chosen; /* by kernel: whether it is looked at */
  size_t kernel_count, chosen_count;
  uint64_t passes, passes_done;
  rl_spent spent;
} counted_step;

/* Each launch of a sequence once on the stream, and wait. mark: note for the trace whose kernels are whose. */
static int enqueue(const counted_step *step, const rl_sequence *sequence, bool mark, rl_error *err) {
  rl_stream stream = step->instance->device->stream;
  for (size_t i = 0; i < sequence->launch_count; i++) {
    const rl_launch *launch = &sequence->launches[i];
    if (mark && rl_trace_mark((uint32_t)i, err) != 0) return -1;
    int result = launch->enqueue(launch->arg, stream, err);
    if (mark && rl_trace_unmark(result == 0 ? err : NULL) != 0) return -1;
    if (result != 0) return rl_wrap(err, "%s", launch->name);
  }
  return rl_cuda_check(cudaStreamSynchronize(stream), sequence->name, err);
}

/* What comes before the step in an iteration: it prepares what the step reads. */
static int lead_up(const counted_step *step, rl_error *err) {
  const rl_program *iteration = &step->instance->iteration;
  for (const rl_sequence *sequence = iteration->sequences; sequence < step->sequence; sequence++)
    if (sequence->repeat > 0 && enqueue(step, sequence, false, err) != 0) return -1;
  return 0;
}

static int restore(void *context, rl_error *err) {
  const counted_step *step = context;
  if (step->instance->ops->restore(step->instance, err) != 0) return -1;
  return rl_cuda_check(cudaDeviceSynchronize(), "putting the step's inputs back", err);
}

static int run_cold(void *context, rl_error *err) {
  const counted_step *step = context;
  uint64_t launched = 0;
  if (rl_flush_arm(step->flush, step->chosen, step->kernel_count, err) != 0) return -1;
  int result = enqueue(step, step->sequence, false, err);
  if (rl_flush_disarm(step->flush, &launched, result == 0 ? err : NULL) != 0 || result != 0) return -1;
  if (launched != step->kernel_count)
    return rl_fail(err, RL_CUPTI, 0, "the step launched %zu kernels when it was traced and %llu under the profiler",
                   step->kernel_count, (unsigned long long)launched);
  return 0;
}

static int advanced(void *context, rl_error *err) {
  counted_step *step = context;
  const rl_observer *observer = step->observer;
  step->passes_done++;
  if (observer == NULL) return 0;
  if (observer->advanced != NULL) observer->advanced(observer->context, step->passes_done, step->passes);
  if (observer->cancelled != NULL && observer->cancelled(observer->context))
    return rl_fail(err, RL_SYS, ECANCELED, "cancelled between two passes over the counters");
  return 0;
}

static int by_correlation(const void *a, const void *b) {
  const rl_mark *x = a, *y = b;
  return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

static int in_order_of_issue(const void *a, const void *b) {
  const step_kernel *x = a, *y = b;
  return (x->row.correlation > y->row.correlation) - (x->row.correlation < y->row.correlation);
}

static const rl_launch_detail *find_detail(const rl_traced *traced, uint32_t correlation) {
  for (size_t i = 0; i < traced->detail_count; i++)
    if (traced->details[i].correlation == correlation) return &traced->details[i];
  return NULL;
}

/* Kernels are loaded when they are first launched: here, while modules are followed, and not in the trace or under counters. */
static int load_modules(counted_step *step, rl_error *err) {
  return enqueue(step, step->sequence, false, err) != 0 ? -1 : restore(step, err);
}

/* Launches that were watched are the kernels of the trace, in the same order. */
static void add_clusters(rl_listed *listed, const rl_clusters *clusters) {
  for (size_t i = 0; i < listed->count && clusters->count == listed->count; i++)
    if (listed->kernels[i].detail.largest_cluster == 0)
      listed->kernels[i].detail.largest_cluster = (uint32_t)clusters->largest[i];
}

static int trace_step(const counted_step *step, rl_traced *traced, rl_clusters *clusters, rl_error *err) {
  rl_trace *trace = step->counters->trace;
  if (rl_trace_start(trace, rl_trace_launches, err) != 0) return -1;
  int ran = rl_clusters_watch(clusters, err);
  if (ran == 0) ran = enqueue(step, step->sequence, true, err);
  rl_clusters_unwatch();
  return rl_trace_stop(trace, traced, ran == 0 ? err : NULL) != 0 ? -1 : ran;
}

static int list_kernels(const rl_traced *traced, rl_listed *listed, rl_error *err) {
  listed->kernels = calloc(traced->kernels + 1, sizeof *listed->kernels);
  rl_mark *marks = calloc(traced->mark_count + 1, sizeof *marks);
  if (listed->kernels == NULL || marks == NULL) {
    free(marks);
    return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the kernels of a step");
  }
  if (traced->mark_count > 0) memcpy(marks, traced->marks, traced->mark_count * sizeof *marks);
  qsort(marks, traced->mark_count, sizeof *marks, by_correlation);
  int result = 0;
  for (size_t i = 0; i < traced->row_count && result == 0; i++) {
    const rl_activity_row *row = &traced->rows[i];
    if (row->kind != RL_ACTIVITY_KERNEL) continue;
    const rl_mark *mark = bsearch(&(rl_mark){row->correlation, 0}, marks, traced->mark_count, sizeof *marks, by_correlation);
    const rl_launch_detail *detail = find_detail(traced, row->correlation);
    if (mark == NULL || detail == NULL) {
      result = rl_fail(err, RL_CUPTI, 0, "CUPTI did not say which launch %s belongs to", traced->names->items[row->name].text);
      break;
    }
    step_kernel *kernel = &listed->kernels[listed->count++];
    kernel->row = *row;
    kernel->detail = *detail;
    kernel->launch = mark->launch;
    snprintf(kernel->name, sizeof kernel->name, "%s", traced->names->items[row->name].text);
    snprintf(kernel->symbol, sizeof kernel->symbol, "%s", traced->names->items[row->name].raw);
    rl_cubin_function function = {.barriers = -1};
    (void)rl_module_is_sure(kernel->symbol, &function);
    kernel->barriers = function.barriers;
  }
  free(marks);
  if (result == 0 && (traced->dropped > 0 || listed->count == 0))
    result = rl_fail(err, RL_CUPTI, 0, "of one step, CUPTI recorded %zu kernels and dropped %llu records", listed->count,
                     (unsigned long long)traced->dropped);
  qsort(listed->kernels, listed->count, sizeof *listed->kernels, in_order_of_issue);
  return result;
}

static int list_anew(const counted_step *step, rl_listed *listed, rl_error *err) {
  rl_clusters clusters = {0};
  rl_traced traced;
  int result = trace_step(step, &traced, &clusters, err);
  if (result == 0) result = list_kernels(&traced, listed, err);
  if (result == 0) add_clusters(listed, &clusters);
  rl_clusters_clear(&clusters);
  if (result == 0) listed->instance = step->instance;
  return result;
}

/* Which kernels the step consists of, from a trace of it; an instance launches the same ones every time, as replay needs it. */
static int list_step(counted_step *step, rl_error *err) {
  rl_listed *listed = &step->counters->listed;
  if (listed->instance != step->instance) {
    rl_counters_release(step->counters);
    if (load_modules(step, err) != 0 || list_anew(step, listed, err) != 0) return -1;
  }
  step->kernels = listed->kernels;
  step->kernel_count = listed->count;
  return 0;
}

/* --- which of them are looked at ---------------------------------------------------------------------------------------- */

static bool matches(const rl_profile *profile, const rl_launch *launch, const char *kernel) {
  return profile->kernels[0] == '\0' || fnmatch(profile->kernels, kernel, 0) == 0 ||
         fnmatch(profile->kernels, launch->name, 0) == 0;
}

static int choose(const rl_profile *profile, counted_step *step, rl_error *err) {
  int64_t matching = 0;
  step->chosen = calloc(step->kernel_count + 1, sizeof *step->chosen);
  if (step->chosen == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the kernels of a step");
  for (size_t i = 0; i < step->kernel_count; i++) {
    const step_kernel *kernel = &step->kernels[i];
    if (!matches(profile, &step->sequence->launches[kernel->launch], kernel->name)) continue;
    step->chosen[i] = profile->launch < 0 || profile->launch == matching;
    step->chosen_count += step->chosen[i];
    matching++;
  }
  if (step->chosen_count > 0) return 0;
  return rl_fail(err, RL_INPUT, 0, "of the %zu kernels of a step %lld match \"%s\", and launch %lld is none of them",
                 step->kernel_count, (long long)matching, profile->kernels, (long long)profile->launch);
}

/* --- counters ------------------------------------------------------------------------------------------------------------- */

/* values[kernel * metric_count + metric]; NAN where the plan has no way to it, and of kernels that are not looked at. */
static int measure(const rl_counter_plan *plan, counted_step *step, double *values, rl_error *err) {
  const rl_replay replay = {.restore = restore, .run = run_cold, .advanced = advanced, .context = step, .spent = &step->spent};
  size_t kernels = step->kernel_count, metrics = plan->metric_count;
  double *group_values = calloc(kernels * metrics + 1, sizeof *group_values);
  if (group_values == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for counters");
  for (size_t i = 0; i < kernels * metrics; i++) values[i] = NAN;
  int result = 0;
  for (size_t g = 0; g < plan->group_count && result == 0; g++) {
    const rl_group *group = &plan->groups[g];
    result = rl_replay_group(&step->counters->reserved, group, &replay, step->chosen, kernels, group_values, err);
    for (size_t k = 0; k < kernels && result == 0; k++)
      for (size_t m = 0; m < group->count && step->chosen[k]; m++)
        values[k * metrics + group->metrics[m]] = group_values[k * group->count + m];
  }
  free(group_values);
  return result;
}

/* --- records -------------------------------------------------------------------------------------------------------------- */

static int append_kernel(const rl_counters *counters, const counted_step *step, size_t ordinal, rl_records *records,
                         rl_error *err) {
  const step_kernel *kernel = &step->kernels[ordinal];
  const rl_launch *launch = &step->sequence->launches[kernel->launch];
  const rl_activity_row *row = &kernel->row;
  rl_kernel made = {.ordinal = (int64_t)ordinal,
                    .launches = 1,
                    .total_us = NAN,
                    .min_us = NAN,
                    .median_us = NAN,
                    .max_us = NAN,
                    .share_ratio = NAN,
                    .registers_per_thread = row->registers,
                    .static_shared_bytes = row->static_shared_bytes,
                    .dynamic_shared_bytes = row->dynamic_shared_bytes,
                    .grid_x = row->grid[0],
                    .grid_y = row->grid[1],
                    .grid_z = row->grid[2],
                    .block_x = row->block[0],
                    .block_y = row->block[1],
                    .block_z = row->block[2],
                    .theoretical_occupancy_ratio = rl_occupancy_ratio(counters->occupancy, row, kernel->barriers)};
  snprintf(made.launch, sizeof made.launch, "%s", launch->name);
  snprintf(made.phase, sizeof made.phase, "%s", launch->range);
  snprintf(made.name, sizeof made.name, "%s", kernel->name);
  snprintf(made.reason, sizeof made.reason,
           "counters replay single launches with cold caches, so their times are no result: see the activity pass");
  return rl_records_add(records, RL_RECORD_KERNEL, &made, 1, err);
}

static int append_metric(int64_t ordinal, const char *name, double value, const char *reason, rl_records *records,
                         rl_error *err) {
  rl_kernel_metric made = {.ordinal = ordinal, .value = isfinite(value) ? value : NAN};
  snprintf(made.metric, sizeof made.metric, "%s", name);
  if (!isfinite(value)) snprintf(made.reason, sizeof made.reason, "%s", reason);
  return rl_records_add_metric(records, &made, err);
}

/* What was not counted says why, also beside a value. */
static int append_left_out(int64_t ordinal, const rl_wanted_metric *metric, rl_records *records, rl_error *err) {
  rl_kernel_metric made = {.ordinal = ordinal, .value = metric->decided};
  snprintf(made.metric, sizeof made.metric, "%s", metric->name);
  snprintf(made.reason, sizeof made.reason, "%s", metric->left_out);
  return rl_records_add_metric(records, &made, err);
}

static int append_counters(const rl_collection *collection, size_t ordinal, const double *values, rl_records *records,
                           rl_error *err) {
  const rl_counter_plan *plan = collection->plan;
  for (size_t m = 0; m < plan->metric_count; m++) {
    const char *missing = plan->reasons[m].text;
    if (missing[0] == '\0') missing = "undefined: the kernel did nothing of the kind (0 of 0)";
    if (append_metric((int64_t)ordinal, collection->counters[m], values[ordinal * plan->metric_count + m], missing, records,
                      err) != 0)
      return -1;
  }
  return 0;
}

static int append_facts(const rl_counters *counters, const rl_wanted *wanted, const counted_step *step, size_t ordinal,
                        rl_records *records, rl_error *err) {
  const step_kernel *kernel = &step->kernels[ordinal];
  const rl_launch_facts facts = rl_launch_facts_of(counters->occupancy, &kernel->row, &kernel->detail, kernel->barriers);
  for (size_t i = wanted->counters; i < wanted->count; i++) {
    const rl_wanted_metric *metric = &wanted->items[i];
    const char *reason = "";
    double value;
    if (metric->left_out != NULL) {
      if (append_left_out((int64_t)ordinal, metric, records, err) != 0) return -1;
      continue;
    }
    if (metric->origin == RL_ORIGIN_LAUNCH) value = rl_launch_fact(&facts, metric->name, &reason);
    else if (strncmp(metric->name, "device__", 8) == 0)
      value = rl_attribute_of_device(counters->device_index, metric->name, &reason);
    else continue;
    if (append_metric((int64_t)ordinal, metric->name, value, reason, records, err) != 0) return -1;
  }
  return 0;
}

static bool wants_curves(const rl_profile *profile) {
  for (size_t i = 0; i < rl_section_count; i++)
    if (strcmp(rl_sections[i].id, "Occupancy") == 0) return (profile->sections & UINT32_C(1) << i) != 0;
  return false;
}

static int append(const rl_counters *counters, const rl_collection *collection, const counted_step *step, const double *values,
                  rl_records *records, rl_error *err) {
  for (size_t k = 0; k < step->kernel_count; k++) {
    const rl_footprint footprint = rl_footprint_of(&step->kernels[k].row, step->kernels[k].barriers);
    if (!step->chosen[k]) continue;
    if (append_kernel(counters, step, k, records, err) != 0 || append_counters(collection, k, values, records, err) != 0 ||
        append_facts(counters, &collection->wanted, step, k, records, err) != 0)
      return -1;
    if (wants_curves(&collection->profile) && rl_occupancy_curves(counters->occupancy, &footprint, (int64_t)k, records, err) != 0)
      return -1;
  }
  return 0;
}

/* --- inside the kernels
 * ------------------------------------------------------------------------------------------------------ */

static rl_source_kernel *source_kernels(const counted_step *step) {
  rl_source_kernel *kernels = calloc(step->kernel_count, sizeof *kernels);
  for (size_t i = 0; kernels != NULL && i < step->kernel_count; i++) {
    const rl_activity_row *row = &step->kernels[i].row;
    kernels[i] = (rl_source_kernel){.symbol = step->kernels[i].symbol,
                                    .launch = step->kernels[i].launch,
                                    .duration_ns = (double)(row->end_ns - row->start_ns),
                                    .blocks = (int64_t)row->grid[0] * row->grid[1] * row->grid[2],
                                    .ordinal = step->chosen[i] ? (int64_t)i : -1};
  }
  return kernels;
}

/* What the code decides is not counted. */
static int count_and_append(rl_counters *counters, const rl_profile *profile, counted_step *step, rl_records *records,
                            rl_error *err) {
  const rl_collection *collection = NULL;
  if (rl_collection_find(&counters->collections, counters->device_index, profile, rl_source_absences(counters->source),
                         &collection, err) != 0)
    return -1;
  rl_spent_on(&step->spent, RL_PIECE_PLANNING);
  double *values = calloc(step->kernel_count * collection->plan->metric_count + 1, sizeof *values);
  if (values == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for counters");
  step->passes = collection->plan->passes;
  int result = measure(collection->plan, step, values, err);
  if (result == 0) result = append(counters, collection, step, values, records, err);
  free(values);
  rl_spent_on(&step->spent, RL_PIECE_EVALUATING);
  return result;
}

static void let_go(void *context) {
  const counted_step *step = context;
  rl_reservation_end(&step->counters->reserved);
}

/* Counters and what is inside, in the order that both need. */
static int look(rl_counters *counters, const rl_profile *profile, counted_step *step, rl_records *records, rl_error *err) {
  rl_source_kernel *kernels = source_kernels(step);
  if (kernels == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the kernels of a step");
  const rl_source_request request = {.instance = step->instance,
                                     .sequence = step->sequence,
                                     .kernels = kernels,
                                     .kernel_count = step->kernel_count,
                                     .profile = profile,
                                     .flush = step->flush,
                                     .restore = restore,
                                     .let_go = let_go,
                                     .context = step,
                                     .spent = &step->spent};
  int result = rl_source_begin(counters->source, &request, err);
  if (result == 0) result = count_and_append(counters, profile, step, records, err);
  if (result == 0) result = rl_source_collect(counters->source, records, err);
  rl_source_end(counters->source);
  free(kernels);
  return result;
}

/* With the state saved. */
static int count_step(rl_counters *counters, const rl_profile *profile, counted_step *step, rl_records *records, rl_error *err) {
  if (list_step(step, err) != 0 || choose(profile, step, err) != 0 ||
      (counters->source == NULL && rl_source_open(counters->device_index, &counters->source, err) != 0) ||
      rl_flush_open(&step->flush, err) != 0)
    return -1;
  rl_spent_on(&step->spent, RL_PIECE_TRACING);
  return look(counters, profile, step, records, err);
}

static int append_costs(const counted_step *step, rl_records *records, rl_error *err) {
  if (rl_records_measure(records, "counter_passes", (double)step->passes, NULL, err) != 0) return -1;
  return rl_spent_measure(&step->spent, records, err);
}

int rl_counters_count(rl_counters *counters, rl_instance *instance, const rl_profile *profile, const rl_observer *observer,
                      rl_records *records, char reason[RL_REASON_SIZE], rl_error *err) {
  rl_error why = {0};
  counted_step step = {.counters = counters,
                       .instance = instance,
                       .observer = observer,
                       .sequence = &instance->iteration.sequences[instance->step_sequence]};
  rl_spent_begin(&step.spent);
  if (rl_cuda_check(cudaSetDevice(counters->device_index), "cudaSetDevice", err) != 0 || lead_up(&step, err) != 0 ||
      instance->ops->save(instance, err) != 0)
    return -1;
  int result = count_step(counters, profile, &step, records, &why);
  if (result != 0) rl_counters_release(counters);
  rl_flush_close(step.flush);
  free(step.chosen);
  if (restore(&step, result == 0 ? err : NULL) != 0 && result == 0) return -1;
  if (result == 0) return append_costs(&step, records, err);
  if (rl_cupti_refused(&why)) {
    snprintf(reason, RL_REASON_SIZE, "%s", why.message);
    return 1;
  }
  if (err != NULL) *err = why;
  return -1;
}

void rl_counters_release(rl_counters *counters) {
  rl_reservation_end(&counters->reserved);
  rl_source_release(counters->source);
  free(counters->listed.kernels);
  counters->listed = (rl_listed){0};
}

void rl_counters_close(rl_counters *counters) {
  rl_counters_release(counters);
  rl_collections_close(&counters->collections);
  rl_source_close(counters->source);
}
