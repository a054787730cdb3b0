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

static int out_of_memory(rl_error *err) { return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the timeline"); }

static bool is_kernel(const rl_activity_row *row) { return row->kind == RL_ACTIVITY_KERNEL; }
static bool is_work(const rl_activity_row *row) {
  return is_kernel(row) || row->kind == RL_ACTIVITY_MEMCPY || row->kind == RL_ACTIVITY_MEMSET || row->kind == RL_ACTIVITY_SPAN;
}
static bool is_aggregated(const rl_activity_row *row) { return is_kernel(row) || row->kind == RL_ACTIVITY_SPAN; }
static bool is_call(const rl_activity_row *row) { return row->kind == RL_ACTIVITY_RUNTIME || row->kind == RL_ACTIVITY_DRIVER; }
static bool is_range(const rl_activity_row *row) { return row->kind == RL_ACTIVITY_RANGE; }

static int by_start(const void *a, const void *b, void *context) {
  const rl_activity_row *rows = context;
  const rl_activity_row *x = &rows[*(const size_t *)a], *y = &rows[*(const size_t *)b];
  if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
  return (*(const size_t *)a > *(const size_t *)b) - (*(const size_t *)a < *(const size_t *)b);
}

/* Returns the indices of the rows that `filter` accepts, sorted by start; equal starts keep their order. NULL: out of memory. */
static size_t *sorted_indices(const rl_activity_row *rows, size_t count, bool (*filter)(const rl_activity_row *),
                              size_t *index_count) {
  size_t *order = malloc((count + 1) * sizeof *order);
  *index_count = 0;
  if (!order) return NULL;
  for (size_t i = 0; i < count; i++)
    if (filter(&rows[i])) order[(*index_count)++] = i;
  qsort_r(order, *index_count, sizeof *order, by_start, (void *)(uintptr_t)rows);
  return order;
}

int rl_timeline_busy(const rl_activity_row *rows, size_t count, rl_busy *busy, rl_error *err) {
  rl_busy found = {0};
  rl_auto(free_sizes) size_t *order = sorted_indices(rows, count, is_work, &found.rows);
  if (!order) return out_of_memory(err);
  for (size_t i = 0; i < found.rows; i++) {
    const rl_activity_row *row = &rows[order[i]];
    if (i == 0) found.first_ns = found.last_ns = row->start_ns;
    int64_t from = row->start_ns > found.last_ns ? row->start_ns : found.last_ns;
    if (row->end_ns > from) {
      found.busy_ns += row->end_ns - from;
      found.last_ns = row->end_ns;
    }
  }
  *busy = found;
  return 0;
}

/* --- launches of kernels ------------------------------------------------------------------------------------ */

typedef struct mapped_kernel { /* a kernel of the first trace, which is recorded without CUDA graphs */
  const char *name;            /* in names */
  size_t launch;               /* index into expected */
} mapped_kernel;

struct rl_launch_map {
  char *names; /* kernel names, NUL-terminated, one after another */
  mapped_kernel *kernels;
  size_t count;
  rl_named_launch *expected;
};

static const char *name_of(const rl_records *records, const rl_activity_row *row) {
  return row->name < records->name_count ? records->names[row->name] : "";
}

/* Sets launch_of[i] to the index in `expected` of the launch that range i belongs to, or NO_LAUNCH. Walks the ranges in order
 * of start: a range gets the next expected launch if their names are equal, else it is skipped. */
static void match_ranges(const rl_records *eager, const size_t *ranges, size_t range_count, const rl_named_launch *expected,
                         size_t expected_count, int64_t *launch_of) {
  size_t next = 0;
  for (size_t i = 0; i < range_count; i++) {
    launch_of[i] = NO_LAUNCH;
    if (next < expected_count && strcmp(name_of(eager, &eager->rows[ranges[i]]), expected[next].launch) == 0)
      launch_of[i] = (int64_t)next++;
  }
}

/* Finds the API call with this correlation id and returns the launch of the innermost range in which it started, or NO_LAUNCH. */
static int64_t find_launch(const rl_records *eager, uint32_t correlation, const size_t *calls, size_t call_count,
                           const size_t *ranges, const int64_t *launch_of, size_t range_count) {
  for (size_t c = 0; c < call_count; c++) {
    const rl_activity_row *call = &eager->rows[calls[c]];
    if (call->correlation != correlation) continue;
    for (size_t r = range_count; r-- > 0;) {
      const rl_activity_row *range = &eager->rows[ranges[r]];
      if (launch_of[r] != NO_LAUNCH && range->start_ns <= call->start_ns && call->start_ns <= range->end_ns) return launch_of[r];
    }
  }
  return NO_LAUNCH;
}

int rl_launch_map_build(const rl_records *eager, const rl_named_launch *expected, size_t count, rl_launch_map **attribution,
                        rl_error *err) {
  size_t kernel_count, call_count, range_count, text = 0;
  rl_auto(free_sizes) size_t *kernels = sorted_indices(eager->rows, eager->row_count, is_kernel, &kernel_count);
  rl_auto(free_sizes) size_t *calls = sorted_indices(eager->rows, eager->row_count, is_call, &call_count);
  rl_auto(free_sizes) size_t *ranges = sorted_indices(eager->rows, eager->row_count, is_range, &range_count);
  if (!kernels || !calls || !ranges) return out_of_memory(err);
  int64_t *launch_of = calloc(range_count + 1, sizeof *launch_of);
  rl_auto(rl_launch_map_cleanup) rl_launch_map *learned = calloc(1, sizeof *learned);
  for (size_t k = 0; k < kernel_count; k++) text += strlen(name_of(eager, &eager->rows[kernels[k]])) + 1;
  if (learned) {
    learned->names = malloc(text + 1);
    learned->kernels = calloc(kernel_count + 1, sizeof *learned->kernels);
    learned->expected = malloc((count + 1) * sizeof *expected);
  }
  if (!launch_of || !learned || !learned->names || !learned->kernels || !learned->expected) {
    free(launch_of);
    return out_of_memory(err);
  }
  if (count) memcpy(learned->expected, expected, count * sizeof *expected);
  match_ranges(eager, ranges, range_count, expected, count, launch_of);
  char *end = learned->names;
  for (size_t k = 0; k < kernel_count; k++) {
    const rl_activity_row *row = &eager->rows[kernels[k]];
    int64_t launch = find_launch(eager, row->correlation, calls, call_count, ranges, launch_of, range_count);
    if (launch == NO_LAUNCH) continue;
    learned->kernels[learned->count++] = (mapped_kernel){.name = end, .launch = (size_t)launch};
    end = stpcpy(end, name_of(eager, row)) + 1;
  }
  free(launch_of);
  *attribution = rl_steal(&learned);
  return 0;
}

void rl_launch_map_free(rl_launch_map *attribution) {
  if (!attribution) return;
  free(attribution->names);
  free(attribution->kernels);
  free(attribution->expected);
  free(attribution);
}

/* Fills launches[count] with the launch of every kernel called `name`, in order, each sequence repeated as often as it runs.
 * Returns false unless there are exactly `count` such kernels. */
static bool expand_launches(const rl_launch_map *attribution, const char *name, int64_t *launches, size_t count) {
  size_t filled = 0;
  for (size_t i = 0; i < attribution->count;) {
    uint32_t sequence = attribution->expected[attribution->kernels[i].launch].sequence;
    uint64_t repeat = attribution->expected[attribution->kernels[i].launch].repeat;
    size_t end = i;
    while (end < attribution->count && attribution->expected[attribution->kernels[end].launch].sequence == sequence) end++;
    for (uint64_t r = 0; r < repeat; r++) {
      size_t before = filled;
      for (size_t j = i; j < end; j++) {
        if (strcmp(attribution->kernels[j].name, name) != 0) continue;
        if (filled == count) return false;
        launches[filled++] = (int64_t)attribution->kernels[j].launch;
      }
      if (filled == before) break; /* the sequence has no kernel of this name */
    }
    i = end;
  }
  return filled == count && count > 0;
}

/* --- totals ---------------------------------------------------------------------------------------------------------- */

typedef struct kernel_row { /* a row of a KERNEL or SPAN */
  const rl_activity_row *row;
  const char *name;
  size_t order;   /* by start */
  int64_t launch; /* index into expected, or NO_LAUNCH */
} kernel_row;

RL_DEFINE_CLEANUP(free_kernel_rows, kernel_row *, free, NULL)

static int by_name_then_start(const void *a, const void *b) {
  const kernel_row *x = a, *y = b;
  int names = strcmp(x->name, y->name);
  return names ? names : (x->order > y->order) - (x->order < y->order);
}

static int by_name_launch_start(const void *a, const void *b) {
  const kernel_row *x = a, *y = b;
  int names = strcmp(x->name, y->name);
  if (names) return names;
  if (x->launch != y->launch) return x->launch < y->launch ? -1 : 1;
  return (x->order > y->order) - (x->order < y->order);
}

static int64_t launch_named(const rl_aggregate_options *options, const char *name) {
  for (size_t i = 0; i < options->expected_count; i++)
    if (strcmp(options->expected[i].launch, name) == 0) return (int64_t)i;
  return NO_LAUNCH;
}

/* Returns the first launch with the same name. A step with a full batch and the last step with a smaller batch have launches of
 * the same name, which are totalled together. */
static int64_t canonical_launch(const rl_aggregate_options *options, int64_t launch) {
  return launch == NO_LAUNCH ? NO_LAUNCH : launch_named(options, options->expected[launch].launch);
}

/* Sets the launch of each row. The rows are sorted by name, then by start. */
static int map_launches(const rl_aggregate_options *options, kernel_row *rows_of_kernels, size_t count, rl_error *err) {
  int64_t *launches = malloc((count + 1) * sizeof *launches);
  if (!launches) return out_of_memory(err);
  for (size_t i = 0; i < count;) {
    size_t end = i;
    while (end < count && strcmp(rows_of_kernels[end].name, rows_of_kernels[i].name) == 0) end++;
    bool known = options->attribution && is_kernel(rows_of_kernels[i].row) &&
                 expand_launches(options->attribution, rows_of_kernels[i].name, launches, end - i);
    for (size_t j = i; j < end; j++)
      rows_of_kernels[j].launch = rows_of_kernels[j].row->kind == RL_ACTIVITY_SPAN
                                      ? launch_named(options, rows_of_kernels[j].name)
                                  : known ? canonical_launch(options, launches[j - i])
                                          : NO_LAUNCH;
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
         a->dynamic_shared_bytes == b->dynamic_shared_bytes;
}

/* Totals rows_of_kernels[0..count), which have one name and launch. durations[count]: temporary. */
static rl_kernel total(const rl_aggregate_options *options, const kernel_row *rows_of_kernels, size_t count, double *durations) {
  const rl_activity_row *first = rows_of_kernels[0].row;
  bool on_gpu = is_kernel(first), varies = false;
  rl_kernel kernel = {.launches = (int64_t)count};
  snprintf(kernel.name, sizeof kernel.name, "%s", rows_of_kernels[0].name);
  if (rows_of_kernels[0].launch != NO_LAUNCH) {
    snprintf(kernel.launch, sizeof kernel.launch, "%s", options->expected[rows_of_kernels[0].launch].launch);
    snprintf(kernel.phase, sizeof kernel.phase, "%s", options->expected[rows_of_kernels[0].launch].phase);
  }
  for (size_t i = 0; i < count; i++) {
    durations[i] = (double)(rows_of_kernels[i].row->end_ns - rows_of_kernels[i].row->start_ns) * 1e-3;
    kernel.total_us += durations[i];
    varies |= !same_configuration(rows_of_kernels[i].row, first);
  }
  rl_summary summary = rl_summarize(durations, count);
  kernel.min_us = summary.minimum;
  kernel.median_us = summary.median;
  kernel.max_us = summary.maximum;
  kernel.share_ratio = options->epoch_us > 0 ? kernel.total_us / options->epoch_us : NAN;
  kernel.registers_per_thread = on_gpu ? first->registers : NAN;
  kernel.static_shared_bytes = on_gpu ? first->static_shared_bytes : NAN;
  kernel.dynamic_shared_bytes = on_gpu ? first->dynamic_shared_bytes : NAN;
  kernel.theoretical_occupancy_ratio = on_gpu && options->occupancy ? options->occupancy(options->context, first) : NAN;
  kernel.grid_x = first->grid[0], kernel.grid_y = first->grid[1], kernel.grid_z = first->grid[2];
  kernel.block_x = first->block[0], kernel.block_y = first->block[1], kernel.block_z = first->block[2];
  if (isnan(kernel.share_ratio)) append_reason(&kernel, "the epoch's time is unknown");
  if (!on_gpu) append_reason(&kernel, options->reason ? options->reason : "no GPU kernel");
  else if (isnan(kernel.theoretical_occupancy_ratio))
    append_reason(&kernel, options->reason ? options->reason : "occupancy is unknown");
  if (on_gpu && rows_of_kernels[0].launch == NO_LAUNCH) append_reason(&kernel, "the launch of this kernel is unknown");
  if (varies) append_reason(&kernel, "launch configuration or resources differ between launches; the first is shown");
  return kernel;
}

typedef struct group {
  size_t begin, end, first_order; /* rows [begin, end); start order of the first */
} group;

static int by_first(const void *a, const void *b) {
  const group *x = a, *y = b;
  return (x->first_order > y->first_order) - (x->first_order < y->first_order);
}

RL_DEFINE_CLEANUP(free_groups, group *, free, NULL)

int rl_timeline_kernels(const rl_records *from, const rl_aggregate_options *options, rl_records *into, rl_error *err) {
  size_t count, group_count = 0;
  rl_auto(free_sizes) size_t *order = sorted_indices(from->rows, from->row_count, is_aggregated, &count);
  rl_auto(free_kernel_rows) kernel_row *rows_of_kernels = calloc((order ? count : 0) + 1, sizeof *rows_of_kernels);
  rl_auto(free_groups) group *groups = calloc((order ? count : 0) + 1, sizeof *groups);
  rl_auto(free_doubles) double *durations = calloc((order ? count : 0) + 1, sizeof *durations);
  if (!order || !rows_of_kernels || !groups || !durations) return out_of_memory(err);
  for (size_t i = 0; i < count; i++) {
    const rl_activity_row *row = &from->rows[order[i]];
    rows_of_kernels[i] = (kernel_row){.row = row, .name = name_of(from, row), .order = i, .launch = NO_LAUNCH};
  }
  qsort(rows_of_kernels, count, sizeof *rows_of_kernels, by_name_then_start);
  if (map_launches(options, rows_of_kernels, count, err)) return -1;
  qsort(rows_of_kernels, count, sizeof *rows_of_kernels, by_name_launch_start);
  for (size_t i = 0; i < count;) {
    size_t end = i;
    while (end < count && strcmp(rows_of_kernels[end].name, rows_of_kernels[i].name) == 0 &&
           rows_of_kernels[end].launch == rows_of_kernels[i].launch)
      end++;
    groups[group_count++] = (group){.begin = i, .end = end, .first_order = rows_of_kernels[i].order};
    i = end;
  }
  qsort(groups, group_count, sizeof *groups, by_first);
  for (size_t g = 0; g < group_count; g++) {
    rl_kernel kernel = total(options, rows_of_kernels + groups[g].begin, groups[g].end - groups[g].begin, durations);
    kernel.ordinal = (int64_t)g;
    if (rl_records_add(into, RL_RECORD_KERNEL, &kernel, 1, err) < 0) return -1;
  }
  return 0;
}
