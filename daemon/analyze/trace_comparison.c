/* Adds up the times of each run by name, joins the names of both runs, and makes a row for each operation and each class of idle
 * time before it. */
#include "analyze/trace_comparison.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const rl_trace_change_names[RL_TRACE_CHANGE_COUNT] = {
    [RL_TRACE_SAME] = "same",     [RL_TRACE_NEW] = "new",         [RL_TRACE_GONE] = "gone",
    [RL_TRACE_LONGER] = "longer", [RL_TRACE_SHORTER] = "shorter",
};

enum { IDLE_CLASS_COUNT = RL_TIME_CLASS_COUNT - RL_TIME_FIRST_IDLE };

struct rl_compared_name {
  const char *name; /* borrowed from rl_trace_times.texts */
  size_t operation_count, interval_counts[IDLE_CLASS_COUNT];
  int64_t total_ns, busy_ns, idle_ns[IDLE_CLASS_COUNT];
};

typedef struct measured_names {
  const rl_trace_index *index;
  rl_compared_name *times_of_name; /* times_of_name[name] */
} measured_names;

static int out_of_memory(rl_error *err) { return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the comparison of traces"); }

/* --- the times of a run ------------------------------------------------------------------------------------------------ */

static void add_busy(void *context, size_t operation, rl_time_class time_class, int64_t time_ns) {
  measured_names *m = context;
  if (!rl_time_class_is_idle(time_class)) m->times_of_name[m->index->operations[operation]->name].busy_ns += time_ns;
}

static void add_durations(measured_names *m) {
  for (size_t i = 0; i < m->index->operation_count; i++) {
    const rl_trace_event *operation = m->index->operations[i];
    m->times_of_name[operation->name].operation_count++;
    m->times_of_name[operation->name].total_ns += operation->end_ns - operation->start_ns;
  }
}

static void add_idle(measured_names *m, const rl_time_classes *classes) {
  for (size_t i = 0; i < classes->idle_count; i++) {
    const rl_idle_interval *interval = &classes->idle[i];
    rl_compared_name *after = &m->times_of_name[interval->after->name];
    after->interval_counts[interval->time_class - RL_TIME_FIRST_IDLE]++;
    after->idle_ns[interval->time_class - RL_TIME_FIRST_IDLE] += interval->end_ns - interval->start_ns;
  }
}

/* Copies the names that have operations. */
static int copy_names(const measured_names *m, rl_trace_times *times, rl_error *err) {
  const rl_trace_events *events = m->index->events;
  size_t count = 0, bytes = 0;
  for (size_t i = 0; i < events->name_count; i++) {
    if (m->times_of_name[i].operation_count == 0) continue;
    count++;
    bytes += strlen(events->names[i]) + 1;
  }
  times->names = malloc((count + 1) * sizeof *times->names);
  char *text = times->texts = malloc(bytes + 1);
  if (times->names == NULL || times->texts == NULL) return out_of_memory(err);
  for (size_t i = 0; i < events->name_count; i++) {
    if (m->times_of_name[i].operation_count == 0) continue;
    times->names[times->count] = m->times_of_name[i];
    times->names[times->count++].name = text;
    text = stpcpy(text, events->names[i]) + 1;
  }
  return 0;
}

static int measure(measured_names *m, rl_trace_times *times, rl_error *err) {
  const rl_time_observer observer = {add_busy, m};
  rl_time_classes classes;
  if (m->times_of_name == NULL) return out_of_memory(err);
  add_durations(m);
  if (rl_time_classes_compute(m->index, &observer, &classes, err) < 0) return -1;
  add_idle(m, &classes);
  times->window_ns = classes.end_ns - classes.start_ns;
  memcpy(times->class_ns, classes.class_ns, sizeof classes.class_ns);
  rl_time_classes_clear(&classes);
  return copy_names(m, times, err);
}

int rl_trace_times_compute(const rl_trace_index *index, rl_trace_times *times, rl_error *err) {
  measured_names m = {index, calloc(index->events->name_count + 1, sizeof *m.times_of_name)};
  *times = (rl_trace_times){0};
  int rc = measure(&m, times, err);
  free(m.times_of_name);
  if (rc < 0) rl_trace_times_clear(times);
  return rc;
}

void rl_trace_times_clear(rl_trace_times *times) {
  free(times->names);
  free(times->texts);
  *times = (rl_trace_times){0};
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
static void add_rows(rl_trace_comparison *comparison, const rl_compared_name pair[2]) {
  const char *name = pair[0].name != NULL ? pair[0].name : pair[1].name;
  add_row(comparison, (rl_compared_time){.name = name,
                                         .count = {pair[0].operation_count, pair[1].operation_count},
                                         .total_ns = {pair[0].total_ns, pair[1].total_ns},
                                         .time_ns = {pair[0].busy_ns, pair[1].busy_ns}});
  for (int i = 0; i < IDLE_CLASS_COUNT; i++)
    add_row(comparison, (rl_compared_time){.name = name,
                                           .is_idle = true,
                                           .time_class = (rl_time_class)(RL_TIME_FIRST_IDLE + i),
                                           .count = {pair[0].interval_counts[i], pair[1].interval_counts[i]},
                                           .total_ns = {pair[0].idle_ns[i], pair[1].idle_ns[i]},
                                           .time_ns = {pair[0].idle_ns[i], pair[1].idle_ns[i]}});
}

typedef struct used_name {
  const rl_compared_name *times;
  int run;
} used_name;

static int compare_names(const void *left, const void *right) {
  const used_name *a = left, *b = right;
  int order = strcmp(a->times->name, b->times->name);
  return order != 0 ? order : a->run - b->run;
}

static int compare_rows(const void *left, const void *right) {
  const rl_compared_time *a = left, *b = right;
  long long a_ns = llabs(difference_ns(a)), b_ns = llabs(difference_ns(b));
  if (a_ns != b_ns) return a_ns < b_ns ? 1 : -1;
  int order = strcmp(a->name, b->name);
  return order != 0 ? order : (int)a->time_class - (int)b->time_class;
}

/* used: the names of both runs, sorted. */
static void join_names(rl_trace_comparison *comparison, const used_name *used, size_t count) {
  for (size_t i = 0; i < count;) {
    rl_compared_name pair[2] = {{0}, {0}};
    const char *name = used[i].times->name;
    for (; i < count && strcmp(used[i].times->name, name) == 0; i++) pair[used[i].run] = *used[i].times;
    add_rows(comparison, pair);
  }
}

static int make_rows(const rl_trace_times *const runs[2], rl_trace_comparison *comparison, rl_error *err) {
  size_t count = 0;
  used_name *used = malloc((runs[0]->count + runs[1]->count + 1) * sizeof *used);
  if (used == NULL) return out_of_memory(err);
  for (int run = 0; run < 2; run++)
    for (size_t i = 0; i < runs[run]->count; i++) used[count++] = (used_name){&runs[run]->names[i], run};
  qsort(used, count, sizeof *used, compare_names);
  comparison->rows = malloc((count * (IDLE_CLASS_COUNT + 1) + 1) * sizeof *comparison->rows);
  if (comparison->rows != NULL) join_names(comparison, used, count);
  free(used);
  if (comparison->rows == NULL) return out_of_memory(err);
  qsort(comparison->rows, comparison->count, sizeof *comparison->rows, compare_rows);
  return 0;
}

int rl_trace_comparison_compute(const rl_trace_times *a, const rl_trace_times *b, rl_trace_comparison *comparison,
                                rl_error *err) {
  const rl_trace_times *const runs[2] = {a, b};
  *comparison = (rl_trace_comparison){0};
  for (int run = 0; run < 2; run++) {
    comparison->window_ns[run] = runs[run]->window_ns;
    memcpy(comparison->class_ns[run], runs[run]->class_ns, sizeof runs[run]->class_ns);
  }
  return make_rows(runs, comparison, err);
}

void rl_trace_comparison_clear(rl_trace_comparison *comparison) {
  free(comparison->rows);
  *comparison = (rl_trace_comparison){0};
}
