#include "analyze/timeline.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/statistics.h"

RL_DEFINE_CLEANUP(free_sizes, size_t *, free, NULL)
RL_DEFINE_CLEANUP(free_doubles, double *, free, NULL)

enum { NOWHERE = -1 };

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

/* Indices of the rows that `wanted` accepts, by start; ties keep the order of the rows. NULL when memory is out. */
static size_t *pick(const rl_activity_row *rows, size_t count, bool (*wanted)(const rl_activity_row *), size_t *picked) {
  size_t *order = malloc((count + 1) * sizeof *order);
  *picked = 0;
  if (!order) return NULL;
  for (size_t i = 0; i < count; i++)
    if (wanted(&rows[i])) order[(*picked)++] = i;
  qsort_r(order, *picked, sizeof *order, by_start, (void *)(uintptr_t)rows);
  return order;
}

int rl_timeline_busy(const rl_activity_row *rows, size_t count, rl_busy *busy, rl_error *err) {
  rl_busy found = {0};
  rl_auto(free_sizes) size_t *order = pick(rows, count, is_work, &found.rows);
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

/* --- which launch a kernel belongs to ---------------------------------------------------------------------------------- */

typedef struct lesson { /* one kernel of the small trace */
  const char *name;     /* into names */
  size_t launch;        /* index into expected */
} lesson;

struct rl_attribution {
  char *names; /* copies of the kernels' names, one after another */
  lesson *lessons;
  size_t count;
  rl_expected *expected;
};

static const char *name_of(const rl_records *records, const rl_activity_row *row) {
  return row->name < records->name_count ? records->names[row->name] : "";
}

/* launch_of[range]: the ranges of the small trace that are launches: in order of their start, each next launch's name. */
static void match_ranges(const rl_records *eager, const size_t *ranges, size_t range_count, const rl_expected *expected,
                         size_t expected_count, int64_t *launch_of) {
  size_t next = 0;
  for (size_t i = 0; i < range_count; i++) {
    launch_of[i] = NOWHERE;
    if (next < expected_count && strcmp(name_of(eager, &eager->rows[ranges[i]]), expected[next].launch) == 0)
      launch_of[i] = (int64_t)next++;
  }
}

/* The launch in whose range the call of this correlation was made; the innermost, as ranges nest. */
static int64_t launch_at(const rl_records *eager, uint32_t correlation, const size_t *calls, size_t call_count,
                         const size_t *ranges, const int64_t *launch_of, size_t range_count) {
  for (size_t c = 0; c < call_count; c++) {
    const rl_activity_row *call = &eager->rows[calls[c]];
    if (call->correlation != correlation) continue;
    for (size_t r = range_count; r-- > 0;) {
      const rl_activity_row *range = &eager->rows[ranges[r]];
      if (launch_of[r] != NOWHERE && range->start_ns <= call->start_ns && call->start_ns <= range->end_ns) return launch_of[r];
    }
  }
  return NOWHERE;
}

int rl_attribution_learn(const rl_records *eager, const rl_expected *expected, size_t count, rl_attribution **attribution,
                         rl_error *err) {
  size_t kernel_count, call_count, range_count, text = 0;
  rl_auto(free_sizes) size_t *kernels = pick(eager->rows, eager->row_count, is_kernel, &kernel_count);
  rl_auto(free_sizes) size_t *calls = pick(eager->rows, eager->row_count, is_call, &call_count);
  rl_auto(free_sizes) size_t *ranges = pick(eager->rows, eager->row_count, is_range, &range_count);
  if (!kernels || !calls || !ranges) return out_of_memory(err);
  int64_t *launch_of = calloc(range_count + 1, sizeof *launch_of);
  rl_auto(rl_attribution_cleanup) rl_attribution *learned = calloc(1, sizeof *learned);
  for (size_t k = 0; k < kernel_count; k++) text += strlen(name_of(eager, &eager->rows[kernels[k]])) + 1;
  if (learned) {
    learned->names = malloc(text + 1);
    learned->lessons = calloc(kernel_count + 1, sizeof *learned->lessons);
    learned->expected = malloc((count + 1) * sizeof *expected);
  }
  if (!launch_of || !learned || !learned->names || !learned->lessons || !learned->expected) {
    free(launch_of);
    return out_of_memory(err);
  }
  if (count) memcpy(learned->expected, expected, count * sizeof *expected);
  match_ranges(eager, ranges, range_count, expected, count, launch_of);
  char *end = learned->names;
  for (size_t k = 0; k < kernel_count; k++) {
    const rl_activity_row *row = &eager->rows[kernels[k]];
    int64_t launch = launch_at(eager, row->correlation, calls, call_count, ranges, launch_of, range_count);
    if (launch == NOWHERE) continue;
    learned->lessons[learned->count++] = (lesson){.name = end, .launch = (size_t)launch};
    end = stpcpy(end, name_of(eager, row)) + 1;
  }
  free(launch_of);
  *attribution = rl_steal(&learned);
  return 0;
}

void rl_attribution_free(rl_attribution *attribution) {
  if (!attribution) return;
  free(attribution->names);
  free(attribution->lessons);
  free(attribution->expected);
  free(attribution);
}

/* The launches of the kernels of one name, in order, every sequence repeated: launches[most] when it is that many, else
 * none is known. */
static bool unroll(const rl_attribution *attribution, const char *name, int64_t *launches, size_t most) {
  size_t filled = 0;
  for (size_t i = 0; i < attribution->count;) {
    uint32_t sequence = attribution->expected[attribution->lessons[i].launch].sequence;
    uint64_t repeat = attribution->expected[attribution->lessons[i].launch].repeat;
    size_t end = i;
    while (end < attribution->count && attribution->expected[attribution->lessons[end].launch].sequence == sequence) end++;
    for (uint64_t r = 0; r < repeat; r++) {
      size_t before = filled;
      for (size_t j = i; j < end; j++) {
        if (strcmp(attribution->lessons[j].name, name) != 0) continue;
        if (filled == most) return false;
        launches[filled++] = (int64_t)attribution->lessons[j].launch;
      }
      if (filled == before) break; /* this sequence has none of that name */
    }
    i = end;
  }
  return filled == most && most > 0;
}

/* --- aggregates -------------------------------------------------------------------------------------------------------- */

typedef struct member { /* one row that is aggregated */
  const rl_activity_row *row;
  const char *name;
  size_t order;   /* by start */
  int64_t launch; /* index into expected or NOWHERE */
} member;

RL_DEFINE_CLEANUP(free_members, member *, free, NULL)

static int by_name_then_start(const void *a, const void *b) {
  const member *x = a, *y = b;
  int names = strcmp(x->name, y->name);
  return names ? names : (x->order > y->order) - (x->order < y->order);
}

static int by_name_launch_start(const void *a, const void *b) {
  const member *x = a, *y = b;
  int names = strcmp(x->name, y->name);
  if (names) return names;
  if (x->launch != y->launch) return x->launch < y->launch ? -1 : 1;
  return (x->order > y->order) - (x->order < y->order);
}

static int64_t launch_named(const rl_aggregate_options *options, const char *name) {
  for (size_t i = 0; i < options->expected_count; i++)
    if (strcmp(options->expected[i].launch, name) == 0) return (int64_t)i;
  return NOWHERE;
}

/* Two launches of the same name in different sequences (a step and the short last one) are one line. */
static int64_t first_of_name(const rl_aggregate_options *options, int64_t launch) {
  return launch == NOWHERE ? NOWHERE : launch_named(options, options->expected[launch].launch);
}

/* Set the launch of each member; members lie sorted by name and then by start. */
static int attribute(const rl_aggregate_options *options, member *members, size_t count, rl_error *err) {
  int64_t *launches = malloc((count + 1) * sizeof *launches);
  if (!launches) return out_of_memory(err);
  for (size_t i = 0; i < count;) {
    size_t end = i;
    while (end < count && strcmp(members[end].name, members[i].name) == 0) end++;
    bool known =
        options->attribution && is_kernel(members[i].row) && unroll(options->attribution, members[i].name, launches, end - i);
    for (size_t j = i; j < end; j++)
      members[j].launch = members[j].row->kind == RL_ACTIVITY_SPAN ? launch_named(options, members[j].name)
                          : known                                  ? first_of_name(options, launches[j - i])
                                                                   : NOWHERE;
    i = end;
  }
  free(launches);
  return 0;
}

static void note(rl_kernel *kernel, const char *reason) {
  size_t used = strlen(kernel->reason);
  snprintf(kernel->reason + used, sizeof kernel->reason - used, "%s%s", used ? "; " : "", reason);
}

static bool same_shape(const rl_activity_row *a, const rl_activity_row *b) {
  return memcmp(a->grid, b->grid, sizeof a->grid) == 0 && memcmp(a->block, b->block, sizeof a->block) == 0 &&
         a->registers == b->registers && a->static_shared_bytes == b->static_shared_bytes &&
         a->dynamic_shared_bytes == b->dynamic_shared_bytes;
}

/* One aggregate of members[0..count), all of one name and launch; durations[count] is scratch. */
static rl_kernel aggregate(const rl_aggregate_options *options, const member *members, size_t count, double *durations) {
  const rl_activity_row *first = members[0].row;
  bool on_gpu = is_kernel(first), varies = false;
  rl_kernel kernel = {.launches = (int64_t)count};
  snprintf(kernel.name, sizeof kernel.name, "%s", members[0].name);
  if (members[0].launch != NOWHERE) {
    snprintf(kernel.launch, sizeof kernel.launch, "%s", options->expected[members[0].launch].launch);
    snprintf(kernel.phase, sizeof kernel.phase, "%s", options->expected[members[0].launch].phase);
  }
  for (size_t i = 0; i < count; i++) {
    durations[i] = (double)(members[i].row->end_ns - members[i].row->start_ns) * 1e-3;
    kernel.total_us += durations[i];
    varies |= !same_shape(members[i].row, first);
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
  if (isnan(kernel.share_ratio)) note(&kernel, "the epoch's time is not known");
  if (!on_gpu) note(&kernel, options->reason ? options->reason : "no GPU kernel");
  else if (isnan(kernel.theoretical_occupancy_ratio)) note(&kernel, options->reason ? options->reason : "occupancy is not known");
  if (on_gpu && members[0].launch == NOWHERE) note(&kernel, "no launch is known for this kernel");
  if (varies) note(&kernel, "shape or resources differ between launches: the first is shown");
  return kernel;
}

typedef struct group {
  size_t begin, end, first; /* members; order of the first */
} group;

static int by_first(const void *a, const void *b) {
  const group *x = a, *y = b;
  return (x->first > y->first) - (x->first < y->first);
}

RL_DEFINE_CLEANUP(free_groups, group *, free, NULL)

int rl_timeline_kernels(const rl_records *from, const rl_aggregate_options *options, rl_records *into, rl_error *err) {
  size_t count, group_count = 0;
  rl_auto(free_sizes) size_t *order = pick(from->rows, from->row_count, is_aggregated, &count);
  rl_auto(free_members) member *members = calloc((order ? count : 0) + 1, sizeof *members);
  rl_auto(free_groups) group *groups = calloc((order ? count : 0) + 1, sizeof *groups);
  rl_auto(free_doubles) double *durations = calloc((order ? count : 0) + 1, sizeof *durations);
  if (!order || !members || !groups || !durations) return out_of_memory(err);
  for (size_t i = 0; i < count; i++) {
    const rl_activity_row *row = &from->rows[order[i]];
    members[i] = (member){.row = row, .name = name_of(from, row), .order = i, .launch = NOWHERE};
  }
  qsort(members, count, sizeof *members, by_name_then_start);
  if (attribute(options, members, count, err)) return -1;
  qsort(members, count, sizeof *members, by_name_launch_start);
  for (size_t i = 0; i < count;) {
    size_t end = i;
    while (end < count && strcmp(members[end].name, members[i].name) == 0 && members[end].launch == members[i].launch) end++;
    groups[group_count++] = (group){.begin = i, .end = end, .first = members[i].order};
    i = end;
  }
  qsort(groups, group_count, sizeof *groups, by_first);
  for (size_t g = 0; g < group_count; g++) {
    rl_kernel kernel = aggregate(options, members + groups[g].begin, groups[g].end - groups[g].begin, durations);
    kernel.ordinal = (int64_t)g;
    if (rl_records_add(into, RL_RECORD_KERNEL, &kernel, 1, err) < 0) return -1;
  }
  return 0;
}
