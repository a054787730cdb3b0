/* Maps each kernel to its launch by the NVTX range around its API call, in a trace without CUDA graphs, then groups the kernels
 * of a trace by name and launch and summarizes each group. */
#include "analyze/timeline.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/statistics.h"

RL_DEFINE_CLEANUP(free_sizes, size_t *, free, NULL)
RL_DEFINE_CLEANUP(free_doubles, double *, free, NULL)

enum { NO_LAUNCH = -1 };

static int out_of_memory(rl_error *err) { return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the timeline"); }

static bool is_kernel(const rl_activity_row *row) { return row->kind == RL_ACTIVITY_KERNEL; }
/* Returns true for rows during which the device is busy: kernels, copies, and on a CPU device the launches (CPU_SPAN). */
static bool is_device_work(const rl_activity_row *row) {
  return is_kernel(row) || row->kind == RL_ACTIVITY_MEMCPY || row->kind == RL_ACTIVITY_MEMSET ||
         row->kind == RL_ACTIVITY_CPU_SPAN;
}
static bool is_kernel_or_cpu_span(const rl_activity_row *row) { return is_kernel(row) || row->kind == RL_ACTIVITY_CPU_SPAN; }
static bool is_api_call(const rl_activity_row *row) {
  return row->kind == RL_ACTIVITY_RUNTIME || row->kind == RL_ACTIVITY_DRIVER;
}
static bool is_nvtx_range(const rl_activity_row *row) { return row->kind == RL_ACTIVITY_NVTX_RANGE; }

static int compare_start(const void *a, const void *b, void *context) {
  const rl_activity_row *rows = context;
  const rl_activity_row *x = &rows[*(const size_t *)a], *y = &rows[*(const size_t *)b];
  if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
  return (*(const size_t *)a > *(const size_t *)b) - (*(const size_t *)a < *(const size_t *)b);
}

/* Returns the indices of the rows that `filter` accepts, sorted by start; equal starts keep their order. Returns NULL if memory
 * is exhausted. */
static size_t *sorted_indices(const rl_activity_row *rows, size_t count, bool (*filter)(const rl_activity_row *),
                              size_t *index_count) {
  size_t *indices = malloc((count + 1) * sizeof *indices);
  *index_count = 0;
  if (!indices) return NULL;
  for (size_t i = 0; i < count; i++)
    if (filter(&rows[i])) indices[(*index_count)++] = i;
  qsort_r(indices, *index_count, sizeof *indices, compare_start, (void *)(uintptr_t)rows);
  return indices;
}

int rl_timeline_measure_busy_time(const rl_activity_row *rows, size_t count, rl_busy_time *busy, rl_error *err) {
  rl_busy_time total = {0};
  RL_CLEANUP(free_sizes) size_t *order = sorted_indices(rows, count, is_device_work, &total.row_count);
  if (!order) return out_of_memory(err);
  for (size_t i = 0; i < total.row_count; i++) {
    const rl_activity_row *row = &rows[order[i]];
    if (i == 0) total.first_ns = total.last_ns = row->start_ns;
    /* The time before total.last_ns is already counted. */
    int64_t uncounted_start_ns = row->start_ns > total.last_ns ? row->start_ns : total.last_ns;
    if (row->end_ns > uncounted_start_ns) {
      total.busy_ns += row->end_ns - uncounted_start_ns;
      total.last_ns = row->end_ns;
    }
  }
  *busy = total;
  return 0;
}

/* --- the launch of each kernel ------------------------------------------------------------------------------ */

typedef struct mapped_kernel { /* a kernel of the trace without graphs */
  const char *name;            /* borrowed from rl_launch_map.names */
  size_t launch;               /* index into rl_launch_map.expected */
} mapped_kernel;

struct rl_launch_map {
  char *names;            /* kernel names, NUL-terminated, one after another */
  mapped_kernel *kernels; /* sorted by start */
  size_t count;           /* number of kernels */
  rl_expected_launch *expected;
};

static const char *name_of(const rl_records *records, const rl_activity_row *row) {
  return row->name < records->name_count ? records->names[row->name] : "";
}

/* The rows of a trace without graphs by kind: indices into trace->rows, in order of start. */
typedef struct sorted_trace {
  const rl_records *trace;
  size_t *kernels, *api_calls, *nvtx_ranges;
  size_t kernel_count, api_call_count, nvtx_range_count;
  int64_t *launch_of_range; /* [nvtx_range_count]: index into `expected`, or NO_LAUNCH */
} sorted_trace;

static void free_sorted_trace(sorted_trace *sorted) {
  free(sorted->kernels);
  free(sorted->api_calls);
  free(sorted->nvtx_ranges);
  free(sorted->launch_of_range);
}

/* Call free_sorted_trace also after a failure. */
static int sort_trace(const rl_records *trace, sorted_trace *sorted, rl_error *err) {
  const rl_activity_row *rows = trace->rows;
  sorted->trace = trace;
  sorted->kernels = sorted_indices(rows, trace->row_count, is_kernel, &sorted->kernel_count);
  sorted->api_calls = sorted_indices(rows, trace->row_count, is_api_call, &sorted->api_call_count);
  sorted->nvtx_ranges = sorted_indices(rows, trace->row_count, is_nvtx_range, &sorted->nvtx_range_count);
  if (!sorted->kernels || !sorted->api_calls || !sorted->nvtx_ranges) return out_of_memory(err);
  sorted->launch_of_range = calloc(sorted->nvtx_range_count + 1, sizeof *sorted->launch_of_range);
  return sorted->launch_of_range ? 0 : out_of_memory(err);
}

/* Sets launch_of_range. Walks the ranges in order of start: a range gets the next expected launch if their names are equal, else
 * NO_LAUNCH. */
static void match_ranges(sorted_trace *sorted, const rl_expected_launch *expected, size_t expected_count) {
  size_t next = 0;
  for (size_t i = 0; i < sorted->nvtx_range_count; i++) {
    const rl_activity_row *range = &sorted->trace->rows[sorted->nvtx_ranges[i]];
    const bool matches = next < expected_count && strcmp(name_of(sorted->trace, range), expected[next].name) == 0;
    sorted->launch_of_range[i] = matches ? (int64_t)next++ : NO_LAUNCH;
  }
}

/* Returns the launch of a kernel: the launch of the innermost range in which the API call with the kernel's correlation id
 * started. NO_LAUNCH: there is none. */
static int64_t find_launch(const sorted_trace *sorted, const rl_activity_row *kernel) {
  const rl_activity_row *rows = sorted->trace->rows;
  for (size_t c = 0; c < sorted->api_call_count; c++) {
    const rl_activity_row *call = &rows[sorted->api_calls[c]];
    if (call->correlation != kernel->correlation) continue;
    for (size_t r = sorted->nvtx_range_count; r-- > 0;) {
      const rl_activity_row *range = &rows[sorted->nvtx_ranges[r]];
      if (sorted->launch_of_range[r] != NO_LAUNCH && range->start_ns <= call->start_ns && call->start_ns <= range->end_ns)
        return sorted->launch_of_range[r];
    }
  }
  return NO_LAUNCH;
}

/* Returns NULL if memory is exhausted. */
static rl_launch_map *new_launch_map(const sorted_trace *sorted, const rl_expected_launch *expected, size_t expected_count) {
  RL_CLEANUP(rl_launch_map_cleanup) rl_launch_map *map = calloc(1, sizeof *map);
  size_t names_bytes = 0;
  for (size_t k = 0; k < sorted->kernel_count; k++)
    names_bytes += strlen(name_of(sorted->trace, &sorted->trace->rows[sorted->kernels[k]])) + 1;
  if (!map) return NULL;
  map->names = malloc(names_bytes + 1);
  map->kernels = calloc(sorted->kernel_count + 1, sizeof *map->kernels);
  map->expected = malloc((expected_count + 1) * sizeof *expected);
  if (!map->names || !map->kernels || !map->expected) return NULL;
  if (expected_count > 0) memcpy(map->expected, expected, expected_count * sizeof *expected);
  return rl_take_ownership(&map);
}

static void map_kernels(const sorted_trace *sorted, rl_launch_map *map) {
  char *names_end = map->names;
  for (size_t k = 0; k < sorted->kernel_count; k++) {
    const rl_activity_row *kernel = &sorted->trace->rows[sorted->kernels[k]];
    const int64_t launch = find_launch(sorted, kernel);
    if (launch == NO_LAUNCH) continue;
    map->kernels[map->count++] = (mapped_kernel){.name = names_end, .launch = (size_t)launch};
    names_end = stpcpy(names_end, name_of(sorted->trace, kernel)) + 1;
  }
}

int rl_launch_map_build(const rl_records *trace_without_graphs, const rl_expected_launch *expected, size_t count,
                        rl_launch_map **launch_map, rl_error *err) {
  RL_CLEANUP(free_sorted_trace) sorted_trace sorted = {0};
  if (sort_trace(trace_without_graphs, &sorted, err) < 0) return -1;
  rl_launch_map *map = new_launch_map(&sorted, expected, count);
  if (!map) return out_of_memory(err);
  match_ranges(&sorted, expected, count);
  map_kernels(&sorted, map);
  *launch_map = map;
  return 0;
}

void rl_launch_map_free(rl_launch_map *launch_map) {
  if (!launch_map) return;
  free(launch_map->names);
  free(launch_map->kernels);
  free(launch_map->expected);
  free(launch_map);
}

static const rl_expected_launch *launch_of_kernel(const rl_launch_map *map, size_t kernel) {
  return &map->expected[map->kernels[kernel].launch];
}

/* Fills launches[] with the launch index of each execution of the kernel `name`, in order of execution, with every sequence
 * repeated. Returns false unless there are exactly `count` executions. */
static bool expand_launches(const rl_launch_map *map, const char *name, int64_t *launches, size_t count) {
  size_t filled = 0;
  for (size_t begin = 0, end; begin < map->count; begin = end) { /* kernels [begin, end) belong to one sequence */
    const rl_expected_launch *launch = launch_of_kernel(map, begin);
    for (end = begin; end < map->count && launch_of_kernel(map, end)->sequence_index == launch->sequence_index;) end++;
    for (uint64_t r = 0; r < launch->repeats; r++) {
      const size_t filled_before = filled;
      for (size_t k = begin; k < end; k++) {
        if (strcmp(map->kernels[k].name, name) != 0) continue;
        if (filled == count) return false;
        launches[filled++] = (int64_t)map->kernels[k].launch;
      }
      if (filled == filled_before) break; /* the sequence has no kernel of this name */
    }
  }
  return filled == count && count > 0;
}

/* --- summaries ------------------------------------------------------------------------------------------------------- */

typedef struct kernel_row { /* a row of kind KERNEL or CPU_SPAN */
  const rl_activity_row *row;
  const char *name;
  size_t start_order;   /* rank of the row by start among the summarized rows */
  int64_t launch;       /* index into rl_kernel_summary_options.expected, or NO_LAUNCH */
  bool is_repeat;       /* a launch of the same name in a later sequence executed the row */
  size_t configuration; /* number of the row's configuration among those of its name and launch */
} kernel_row;

RL_DEFINE_CLEANUP(free_kernel_rows, kernel_row *, free, NULL)

static int compare_name_start(const void *a, const void *b) {
  const kernel_row *x = a, *y = b;
  int name_order = strcmp(x->name, y->name);
  return name_order ? name_order : (x->start_order > y->start_order) - (x->start_order < y->start_order);
}

static int compare_name_launch(const kernel_row *x, const kernel_row *y) {
  int name_order = strcmp(x->name, y->name);
  return name_order ? name_order : (x->launch > y->launch) - (x->launch < y->launch);
}

static int compare_summaries(const kernel_row *x, const kernel_row *y) {
  int order = compare_name_launch(x, y);
  return order ? order : (x->configuration > y->configuration) - (x->configuration < y->configuration);
}

static int compare_summaries_start(const void *a, const void *b) {
  const kernel_row *x = a, *y = b;
  int order = compare_summaries(x, y);
  return order ? order : (x->start_order > y->start_order) - (x->start_order < y->start_order);
}

static int64_t find_expected_launch(const rl_kernel_summary_options *options, const char *name) {
  for (size_t i = 0; i < options->expected_count; i++)
    if (strcmp(options->expected[i].name, name) == 0) return (int64_t)i;
  return NO_LAUNCH;
}

/* Returns the first launch with the same name, so that launches of one name are summarized together. The last training step of an
 * epoch, if its batch is smaller, has separate launches with the names of the other steps' launches. */
static int64_t first_launch_of_name(const rl_kernel_summary_options *options, int64_t launch) {
  return launch == NO_LAUNCH ? NO_LAUNCH : find_expected_launch(options, options->expected[launch].name);
}

/* Sets the launch of each row. The rows are sorted by name, then by start. */
static int map_launches(const rl_kernel_summary_options *options, kernel_row *kernel_rows, size_t count, rl_error *err) {
  int64_t *launches = malloc((count + 1) * sizeof *launches);
  if (!launches) return out_of_memory(err);
  for (size_t i = 0; i < count;) {
    size_t end = i;
    while (end < count && strcmp(kernel_rows[end].name, kernel_rows[i].name) == 0) end++;
    bool is_mapped = options->launch_map && is_kernel(kernel_rows[i].row) &&
                     expand_launches(options->launch_map, kernel_rows[i].name, launches, end - i);
    for (size_t j = i; j < end; j++) {
      kernel_rows[j].launch = kernel_rows[j].row->kind == RL_ACTIVITY_CPU_SPAN
                                  ? find_expected_launch(options, kernel_rows[j].name)
                              : is_mapped ? first_launch_of_name(options, launches[j - i])
                                          : NO_LAUNCH;
      kernel_rows[j].is_repeat = is_mapped && options->expected[kernel_rows[j].launch].sequence_index !=
                                                  options->expected[launches[j - i]].sequence_index;
    }
    i = end;
  }
  free(launches);
  return 0;
}

static void append_reason(rl_kernel *kernel, const char *reason) {
  size_t used = strlen(kernel->reason);
  snprintf(kernel->reason + used, sizeof kernel->reason - used, "%s%s", used ? "; " : "", reason);
}

static bool same_configuration(const rl_activity_row *a, const rl_activity_row *b) {
  return memcmp(a->grid, b->grid, sizeof a->grid) == 0 && memcmp(a->block, b->block, sizeof a->block) == 0 &&
         a->registers == b->registers && a->static_shared_bytes == b->static_shared_bytes &&
         a->dynamic_shared_bytes == b->dynamic_shared_bytes && a->unknown == b->unknown;
}

/* Sets the configurations of kernel_rows[0..count), which have one name and launch, in order of start. A launch that executes a
 * kernel several times in a step, with different configurations, has a summary for each. A repeat's configuration that no other
 * row has, as in the smaller last step of an epoch, belongs to the first summary. first_rows: a buffer of `count` elements. */
static void set_configurations(kernel_row *kernel_rows, size_t count, const rl_activity_row **first_rows) {
  size_t known = 0;
  for (kernel_row *each = kernel_rows; each < kernel_rows + count; each++) {
    size_t found = 0;
    while (found < known && !same_configuration(first_rows[found], each->row)) found++;
    const bool is_new = found == known && (known == 0 || (each->launch != NO_LAUNCH && !each->is_repeat));
    if (is_new) first_rows[known++] = each->row;
    each->configuration = found < known ? found : 0;
  }
}

/* Returns the end of the rows that begin with kernel_rows[begin] and are equal to it. */
static size_t end_of_equal(const kernel_row *kernel_rows, size_t begin, size_t count,
                           int (*compare)(const kernel_row *x, const kernel_row *y)) {
  size_t end = begin;
  while (end < count && compare(&kernel_rows[end], &kernel_rows[begin]) == 0) end++;
  return end;
}

/* Sorts the rows by summary, then by start. */
static int sort_by_summary(kernel_row *kernel_rows, size_t count, rl_error *err) {
  const rl_activity_row **first_rows = malloc((count + 1) * sizeof *first_rows);
  if (!first_rows) return out_of_memory(err);
  qsort(kernel_rows, count, sizeof *kernel_rows, compare_summaries_start);
  for (size_t begin = 0, end; begin < count; begin = end) {
    end = end_of_equal(kernel_rows, begin, count, compare_name_launch);
    set_configurations(kernel_rows + begin, end - begin, first_rows);
  }
  qsort(kernel_rows, count, sizeof *kernel_rows, compare_summaries_start);
  free(first_rows);
  return 0;
}

static void append_unknown_shared_memory(unsigned unknown, rl_kernel *kernel) {
  const bool lacks_static = unknown & RL_UNKNOWN_STATIC_SHARED, lacks_dynamic = unknown & RL_UNKNOWN_DYNAMIC_SHARED;
  if (unknown & RL_UNKNOWN_SHARED_PARTS) append_reason(kernel, "shared memory: the trace has only the sum");
  else if (lacks_static && lacks_dynamic) append_reason(kernel, "shared memory: the trace does not have it");
  else if (lacks_static) append_reason(kernel, "static shared memory: the trace does not have it");
  else if (lacks_dynamic) append_reason(kernel, "dynamic shared memory: the trace does not have it");
}

/* Sets the registers and the shared memory of a GPU kernel, and adds the reasons of those that the row lacks. */
static void set_resources(const rl_activity_row *row, rl_kernel *kernel) {
  const bool lacks_registers = row->unknown & RL_UNKNOWN_REGISTERS, lacks_static = row->unknown & RL_UNKNOWN_STATIC_SHARED;
  const bool lacks_dynamic = row->unknown & (RL_UNKNOWN_DYNAMIC_SHARED | RL_UNKNOWN_SHARED_PARTS);
  kernel->registers_per_thread = lacks_registers ? NAN : row->registers;
  kernel->static_shared_bytes = lacks_static ? NAN : row->static_shared_bytes;
  kernel->dynamic_shared_bytes = lacks_dynamic ? NAN : row->dynamic_shared_bytes;
  if (lacks_registers) append_reason(kernel, "registers per thread: the trace does not have it");
  append_unknown_shared_memory(row->unknown, kernel);
}

/* Summarizes kernel_rows[0..count), which belong to one summary. durations: a buffer of `count` elements. */
static rl_kernel summarize_kernel(const rl_kernel_summary_options *options, const kernel_row *kernel_rows, size_t count,
                                  double *durations) {
  const rl_activity_row *first = kernel_rows[0].row;
  bool on_gpu = is_kernel(first), configuration_varies = false;
  rl_kernel kernel = {.launches = (int64_t)count};
  snprintf(kernel.name, sizeof kernel.name, "%s", kernel_rows[0].name);
  if (kernel_rows[0].launch != NO_LAUNCH) {
    snprintf(kernel.launch, sizeof kernel.launch, "%s", options->expected[kernel_rows[0].launch].name);
    snprintf(kernel.phase, sizeof kernel.phase, "%s", options->expected[kernel_rows[0].launch].phase);
  }
  for (size_t i = 0; i < count; i++) {
    durations[i] = (double)(kernel_rows[i].row->end_ns - kernel_rows[i].row->start_ns) * 1e-3;
    kernel.total_us += durations[i];
    configuration_varies |= !same_configuration(kernel_rows[i].row, first);
  }
  rl_sample_summary summary = rl_summarize_sample(durations, count);
  kernel.min_us = summary.minimum;
  kernel.median_us = summary.median;
  kernel.max_us = summary.maximum;
  kernel.share_ratio = options->epoch_us > 0 ? kernel.total_us / options->epoch_us : NAN;
  kernel.registers_per_thread = kernel.static_shared_bytes = kernel.dynamic_shared_bytes = NAN;
  kernel.theoretical_occupancy_ratio = on_gpu && options->occupancy ? options->occupancy(options->context, first) : NAN;
  kernel.grid_x = first->grid[0], kernel.grid_y = first->grid[1], kernel.grid_z = first->grid[2];
  kernel.block_x = first->block[0], kernel.block_y = first->block[1], kernel.block_z = first->block[2];
  if (isnan(kernel.share_ratio)) append_reason(&kernel, "the epoch's time is unknown");
  if (!on_gpu) append_reason(&kernel, options->missing_values_reason ? options->missing_values_reason : "no GPU kernel");
  else if (isnan(kernel.theoretical_occupancy_ratio))
    append_reason(&kernel, options->missing_values_reason ? options->missing_values_reason : "occupancy is unknown");
  if (on_gpu) set_resources(first, &kernel);
  if (on_gpu && kernel_rows[0].launch == NO_LAUNCH)
    append_reason(&kernel, "the workload's launch that issued this kernel is unknown");
  if (configuration_varies)
    append_reason(&kernel, "launch configuration or resources differ between launches; the first is shown");
  return kernel;
}

typedef struct kernel_group { /* kernel_rows [begin, end), which belong to one summary, in order of start */
  size_t begin, end;
  size_t first_start_order; /* start_order of the first */
} kernel_group;

static int compare_first_start(const void *a, const void *b) {
  const kernel_group *x = a, *y = b;
  return (x->first_start_order > y->first_start_order) - (x->first_start_order < y->first_start_order);
}

RL_DEFINE_CLEANUP(free_groups, kernel_group *, free, NULL)

int rl_timeline_summarize_kernels(const rl_records *trace, const rl_kernel_summary_options *options, rl_records *results,
                                  rl_error *err) {
  size_t count, group_count = 0;
  RL_CLEANUP(free_sizes) size_t *order = sorted_indices(trace->rows, trace->row_count, is_kernel_or_cpu_span, &count);
  RL_CLEANUP(free_kernel_rows) kernel_row *kernel_rows = calloc((order ? count : 0) + 1, sizeof *kernel_rows);
  RL_CLEANUP(free_groups) kernel_group *groups = calloc((order ? count : 0) + 1, sizeof *groups);
  RL_CLEANUP(free_doubles) double *durations = calloc((order ? count : 0) + 1, sizeof *durations);
  if (!order || !kernel_rows || !groups || !durations) return out_of_memory(err);
  for (size_t i = 0; i < count; i++) {
    const rl_activity_row *row = &trace->rows[order[i]];
    kernel_rows[i] = (kernel_row){.row = row, .name = name_of(trace, row), .start_order = i, .launch = NO_LAUNCH};
  }
  qsort(kernel_rows, count, sizeof *kernel_rows, compare_name_start);
  if (map_launches(options, kernel_rows, count, err) < 0) return -1;
  if (sort_by_summary(kernel_rows, count, err) < 0) return -1;
  for (size_t begin = 0, end; begin < count; begin = end) {
    end = end_of_equal(kernel_rows, begin, count, compare_summaries);
    groups[group_count++] = (kernel_group){.begin = begin, .end = end, .first_start_order = kernel_rows[begin].start_order};
  }
  qsort(groups, group_count, sizeof *groups, compare_first_start);
  for (size_t g = 0; g < group_count; g++) {
    rl_kernel kernel = summarize_kernel(options, kernel_rows + groups[g].begin, groups[g].end - groups[g].begin, durations);
    kernel.ordinal = (int64_t)g;
    if (rl_records_add(results, RL_RECORD_KERNEL, &kernel, 1, err) < 0) return -1;
  }
  return 0;
}
