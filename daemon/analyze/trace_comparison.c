/* Adds the times of each run by name, joins the names of both runs, and makes a row for each operation and each class of idle
 * time before it. */
#include "analyze/trace_comparison.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const rl_trace_change_names[RL_TRACE_CHANGE_COUNT] = {
    [RL_TRACE_SAME] = "same",     [RL_TRACE_NEW] = "new",         [RL_TRACE_GONE] = "gone",
    [RL_TRACE_LONGER] = "longer", [RL_TRACE_SHORTER] = "shorter",
};

enum { IDLE_CLASSES = RL_TIME_CLASS_COUNT - RL_TIME_FIRST_IDLE };

typedef struct name_times { /* of the operations of a name */
  const char *name;
  int run;
  size_t operations, intervals[IDLE_CLASSES];
  int64_t total_ns, busy_ns, idle_ns[IDLE_CLASSES];
} name_times;

typedef struct run_times {
  const rl_trace_index *index;
  name_times *names; /* of each name of the trace */
} run_times;

static int out_of_memory(rl_error *err) { return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the comparison of traces"); }

/* --- the times of a run ------------------------------------------------------------------------------------------------ */

static void add_busy(void *context, size_t operation, rl_time_class time_class, int64_t time_ns) {
  run_times *times = context;
  if (!rl_time_class_is_idle(time_class)) times->names[times->index->operations[operation]->name].busy_ns += time_ns;
}

static void add_durations(run_times *times) {
  for (size_t i = 0; i < times->index->operation_count; i++) {
    const rl_trace_event *operation = times->index->operations[i];
    times->names[operation->name].operations++;
    times->names[operation->name].total_ns += operation->end_ns - operation->start_ns;
  }
}

static void add_idle(run_times *times, const rl_time_classes *classes) {
  for (size_t i = 0; i < classes->idle_count; i++) {
    const rl_idle_interval *interval = &classes->idle[i];
    name_times *after = &times->names[interval->after->name];
    after->intervals[interval->time_class - RL_TIME_FIRST_IDLE]++;
    after->idle_ns[interval->time_class - RL_TIME_FIRST_IDLE] += interval->end_ns - interval->start_ns;
  }
}

/* The caller frees times->names, also after a failure. */
static int add_run(int run, run_times *times, rl_trace_comparison *comparison, rl_error *err) {
  const rl_trace_events *events = times->index->events;
  const rl_time_observer observer = {add_busy, times};
  rl_time_classes classes;
  times->names = calloc(events->name_count + 1, sizeof *times->names);
  if (times->names == NULL) return out_of_memory(err);
  for (size_t i = 0; i < events->name_count; i++) times->names[i] = (name_times){.name = events->names[i], .run = run};
  add_durations(times);
  if (rl_time_classes_compute(times->index, &observer, &classes, err) < 0) return -1;
  add_idle(times, &classes);
  comparison->window_ns[run] = classes.end_ns - classes.start_ns;
  memcpy(comparison->class_ns[run], classes.class_ns, sizeof classes.class_ns);
  rl_time_classes_clear(&classes);
  return 0;
}

/* --- rows -------------------------------------------------------------------------------------------------------------- */

static int64_t difference_ns(const rl_compared_time *row) { return row->time_ns[1] - row->time_ns[0]; }

static rl_trace_change change_of(const rl_compared_time *row) {
  int64_t longer_ns = row->time_ns[0] > row->time_ns[1] ? row->time_ns[0] : row->time_ns[1];
  if (row->count[0] == 0) return RL_TRACE_NEW;
  if (row->count[1] == 0) return RL_TRACE_GONE;
  if ((double)llabs(difference_ns(row)) < RL_TRACE_CHANGE_MIN_RATIO * (double)longer_ns || longer_ns == 0) return RL_TRACE_SAME;
  return difference_ns(row) > 0 ? RL_TRACE_LONGER : RL_TRACE_SHORTER;
}

static void add_row(rl_trace_comparison *comparison, rl_compared_time row) {
  if (row.count[0] == 0 && row.count[1] == 0) return;
  row.change = change_of(&row);
  comparison->rows[comparison->count++] = row;
}

/* pair: the times of a name in both runs. */
static void add_rows(rl_trace_comparison *comparison, const name_times pair[2]) {
  const char *name = pair[0].name != NULL ? pair[0].name : pair[1].name;
  add_row(comparison, (rl_compared_time){.name = name,
                                         .count = {pair[0].operations, pair[1].operations},
                                         .total_ns = {pair[0].total_ns, pair[1].total_ns},
                                         .time_ns = {pair[0].busy_ns, pair[1].busy_ns}});
  for (int i = 0; i < IDLE_CLASSES; i++)
    add_row(comparison, (rl_compared_time){.name = name,
                                           .is_idle = true,
                                           .time_class = (rl_time_class)(RL_TIME_FIRST_IDLE + i),
                                           .count = {pair[0].intervals[i], pair[1].intervals[i]},
                                           .total_ns = {pair[0].idle_ns[i], pair[1].idle_ns[i]},
                                           .time_ns = {pair[0].idle_ns[i], pair[1].idle_ns[i]}});
}

static int compare_names(const void *left, const void *right) {
  const name_times *a = left, *b = right;
  int order = strcmp(a->name, b->name);
  return order != 0 ? order : a->run - b->run;
}

static int compare_rows(const void *left, const void *right) {
  const rl_compared_time *a = left, *b = right;
  long long a_ns = llabs(difference_ns(a)), b_ns = llabs(difference_ns(b));
  if (a_ns != b_ns) return a_ns < b_ns ? 1 : -1;
  int order = strcmp(a->name, b->name);
  return order != 0 ? order : (int)a->time_class - (int)b->time_class;
}

static size_t copy_used(const run_times *times, name_times *used) {
  size_t count = 0;
  for (size_t i = 0; i < times->index->events->name_count; i++)
    if (times->names[i].operations > 0) used[count++] = times->names[i];
  return count;
}

/* used: names of both runs, by name. */
static void join_names(rl_trace_comparison *comparison, const name_times *used, size_t count) {
  for (size_t i = 0; i < count;) {
    name_times pair[2] = {{.run = 0}, {.run = 1}};
    const char *name = used[i].name;
    for (; i < count && strcmp(used[i].name, name) == 0; i++) pair[used[i].run] = used[i];
    add_rows(comparison, pair);
  }
}

static int make_rows(const run_times runs[2], rl_trace_comparison *comparison, rl_error *err) {
  size_t most = runs[0].index->events->name_count + runs[1].index->events->name_count;
  name_times *used = malloc((most + 1) * sizeof *used);
  if (used == NULL) return out_of_memory(err);
  size_t count = copy_used(&runs[0], used);
  count += copy_used(&runs[1], used + count);
  qsort(used, count, sizeof *used, compare_names);
  comparison->rows = malloc((count * (IDLE_CLASSES + 1) + 1) * sizeof *comparison->rows);
  if (comparison->rows != NULL) join_names(comparison, used, count);
  free(used);
  if (comparison->rows == NULL) return out_of_memory(err);
  qsort(comparison->rows, comparison->count, sizeof *comparison->rows, compare_rows);
  return 0;
}

int rl_trace_comparison_compute(const rl_trace_index *a, const rl_trace_index *b, rl_trace_comparison *comparison,
                                rl_error *err) {
  run_times runs[2] = {{.index = a}, {.index = b}};
  *comparison = (rl_trace_comparison){0};
  int rc = add_run(0, &runs[0], comparison, err) < 0 || add_run(1, &runs[1], comparison, err) < 0 ||
                   make_rows(runs, comparison, err) < 0
               ? -1
               : 0;
  free(runs[0].names);
  free(runs[1].names);
  if (rc < 0) rl_trace_comparison_clear(comparison);
  return rc;
}

void rl_trace_comparison_clear(rl_trace_comparison *comparison) {
  free(comparison->rows);
  *comparison = (rl_trace_comparison){0};
}
