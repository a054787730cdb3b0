/* Lists the times at which the innermost open range of a thread changes. Finds the range of each operation's API call in this
 * list and adds the operation's times to the range. Then adds each range, the inner ones first, to its enclosing range and to its
 * name. */
#include "analyze/range_times.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "model/records.h"

static const uint32_t NO_RANGE = UINT32_MAX;

typedef struct range {
  const rl_trace_event *event;
  uint32_t parent; /* index of the enclosing range; NO_RANGE: none */
  uint32_t depth;
  bool in_same_name; /* inside a range of the same name */
  int64_t first_ns, last_ns, own_ns;
  size_t operation_count;
  int64_t class_ns[RL_TIME_CLASS_COUNT];
  int64_t totals[RL_OPERATION_TOTAL_COUNT];
} range;

typedef struct range_change { /* from time_ns on, `range` is the thread's innermost open range */
  int64_t time_ns;
  uint32_t thread, range;
} range_change;

typedef struct thread_range {
  uint32_t thread, range; /* ALL_THREADS: the range belongs to every thread of the process */
} thread_range;

enum { ALL_THREADS = 0 };

RL_DEFINE_CLEANUP(free_thread_ranges, thread_range *, free, NULL)

typedef struct projection {
  const rl_trace_index *index;
  const rl_time_observer *observer; /* NULL: none */
  const int64_t *path_ns;           /* rl_critical_path.operation_ns; NULL: unknown */
  range *ranges;                    /* sorted by start, outer ranges first; the last item is for the time outside of ranges */
  size_t count;
  range_change *changes; /* sorted by thread, then by time */
  size_t change_count, change_capacity;
  uint32_t thread;            /* the thread whose ranges are being nested */
  uint32_t *open, open_count; /* open ranges of the thread, the outermost first */
  uint32_t *open_of_name;     /* number of the thread's open ranges of each name */
  uint32_t *row_of_name;      /* 1 + index into rl_range_times.items; 0: none yet */
  uint32_t *range_of;         /* range_of[operation]: index of its range; `count`: none */
} projection;

static int out_of_memory(rl_error *err) { return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the ranges of a trace"); }

/* --- nesting ----------------------------------------------------------------------------------------------------------- */

static int add_change(projection *p, int64_t time_ns, rl_error *err) {
  if (rl_array_reserve(&p->changes, p->change_count, &p->change_capacity, sizeof *p->changes, err) < 0) return -1;
  uint32_t innermost = p->open_count > 0 ? p->open[p->open_count - 1] : NO_RANGE;
  p->changes[p->change_count++] = (range_change){time_ns, p->thread, innermost};
  return 0;
}

static int64_t innermost_end(const projection *p) { return p->ranges[p->open[p->open_count - 1]].event->end_ns; }

static void close_innermost(projection *p) { p->open_of_name[p->ranges[p->open[--p->open_count]].event->name]--; }

/* Closes the ranges that end at or before the time. */
static int close_ranges(projection *p, int64_t time_ns, rl_error *err) {
  while (p->open_count > 0 && innermost_end(p) <= time_ns) {
    int64_t end_ns = innermost_end(p);
    while (p->open_count > 0 && innermost_end(p) <= end_ns) close_innermost(p);
    if (add_change(p, end_ns, err) < 0) return -1;
  }
  return 0;
}

/* Closes the ranges of p->thread that ended when range i starts. If a range is still open, it becomes the parent of range i. The
 * ranges of the process are nested first, so an open range of the thread replaces a parent from the process. */
static int set_parent(projection *p, uint32_t i, rl_error *err) {
  range *entered = &p->ranges[i];
  if (close_ranges(p, entered->event->start_ns, err) < 0) return -1;
  if (p->open_count > 0) entered->parent = p->open[p->open_count - 1];
  if (entered->parent != NO_RANGE) entered->depth = p->ranges[entered->parent].depth + 1;
  entered->in_same_name |= p->open_of_name[entered->event->name] > 0;
  return 0;
}

static int open_range(projection *p, uint32_t i, rl_error *err) {
  if (set_parent(p, i, err) < 0) return -1;
  p->open_of_name[p->ranges[i].event->name]++;
  p->open[p->open_count++] = i;
  return add_change(p, p->ranges[i].event->start_ns, err);
}

/* Nests the ranges of the process, and gives the ranges of threads their parents among these. */
static int nest_ranges_of_process(projection *p, rl_error *err) {
  p->thread = ALL_THREADS;
  for (uint32_t i = 0; i < p->count; i++)
    if ((p->ranges[i].event->thread == ALL_THREADS ? open_range : set_parent)(p, i, err) < 0) return -1;
  return close_ranges(p, INT64_MAX, err);
}

static int compare_threads(const void *left, const void *right) {
  const thread_range *a = left, *b = right;
  if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
  return (a->range > b->range) - (a->range < b->range);
}

static int nest_ranges_of_threads(projection *p, rl_error *err) {
  RL_CLEANUP(free_thread_ranges) thread_range *list = malloc((p->count + 1) * sizeof *list);
  size_t count = 0;
  if (list == NULL) return out_of_memory(err);
  for (uint32_t i = 0; i < p->count; i++)
    if (p->ranges[i].event->thread != ALL_THREADS) list[count++] = (thread_range){p->ranges[i].event->thread, i};
  qsort(list, count, sizeof *list, compare_threads);
  for (size_t i = 0; i < count; i++) {
    if (list[i].thread != p->thread && close_ranges(p, INT64_MAX, err) < 0) return -1;
    p->thread = list[i].thread;
    if (open_range(p, list[i].range, err) < 0) return -1;
  }
  return close_ranges(p, INT64_MAX, err);
}

/* Returns the innermost range of a thread at a time; NO_RANGE: none is open. */
static uint32_t range_of_thread_at(const projection *p, uint32_t thread, int64_t time_ns) {
  size_t low = 0, high = p->change_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    const range_change *change = &p->changes[middle];
    if (change->thread > thread || (change->thread == thread && change->time_ns > time_ns)) high = middle;
    else low = middle + 1;
  }
  return low > 0 && p->changes[low - 1].thread == thread ? p->changes[low - 1].range : NO_RANGE;
}

/* --- operations -------------------------------------------------------------------------------------------------------- */

/* A CPU span has no API call, so its own start determines its range. */
static uint32_t range_of_operation(const projection *p, size_t operation) {
  const rl_trace_event *event = p->index->operations[operation], *call = p->index->launched_by[operation];
  if (event->kind == RL_ACTIVITY_CPU_SPAN) call = event;
  if (call == NULL) return (uint32_t)p->count;
  uint32_t found = range_of_thread_at(p, call->thread, call->start_ns);
  if (found == NO_RANGE) found = range_of_thread_at(p, ALL_THREADS, call->start_ns);
  return found != NO_RANGE ? found : (uint32_t)p->count;
}

static void extend(range *r, int64_t first_ns, int64_t last_ns, size_t operation_count) {
  if (operation_count == 0) return;
  if (r->operation_count == 0 || first_ns < r->first_ns) r->first_ns = first_ns;
  if (r->operation_count == 0 || last_ns > r->last_ns) r->last_ns = last_ns;
  r->operation_count += operation_count;
}

static void project_operations(projection *p) {
  for (size_t i = 0; i < p->index->operation_count; i++) {
    const rl_trace_event *operation = p->index->operations[i];
    p->range_of[i] = range_of_operation(p, i);
    range *r = &p->ranges[p->range_of[i]];
    extend(r, operation->start_ns, operation->end_ns, 1);
    rl_operation_totals_add(p->index, p->path_ns, i, r->totals);
  }
}

static void add_time(void *context, size_t operation, rl_time_class time_class, int64_t time_ns) {
  const projection *p = context;
  range *r = &p->ranges[p->range_of[operation]];
  r->class_ns[time_class] += time_ns;
  r->own_ns += time_ns;
  if (p->observer != NULL) p->observer->add(p->observer->context, operation, time_class, time_ns);
}

static void add_to_parents(projection *p) {
  for (size_t i = p->count; i-- > 0;) {
    const range *inner = &p->ranges[i];
    if (inner->parent == NO_RANGE) continue;
    range *outer = &p->ranges[inner->parent];
    extend(outer, inner->first_ns, inner->last_ns, inner->operation_count);
    for (int k = 0; k < RL_TIME_CLASS_COUNT; k++) outer->class_ns[k] += inner->class_ns[k];
    for (int k = 0; k < RL_OPERATION_TOTAL_COUNT; k++) outer->totals[k] += inner->totals[k];
  }
}

/* --- names ------------------------------------------------------------------------------------------------------------- */

static void add_operations(const range *r, rl_range_time *row) {
  row->operation_count += r->operation_count;
  for (int k = 0; k < RL_OPERATION_TOTAL_COUNT; k++) row->totals[k] += r->totals[k];
  for (int k = 0; k < RL_TIME_CLASS_COUNT; k++) {
    row->class_ns[k] += r->class_ns[k];
    row->time_ns += r->class_ns[k];
  }
}

static void add_range(projection *p, const range *r, rl_range_times *times) {
  uint32_t *row_number = &p->row_of_name[r->event->name];
  if (*row_number == 0) {
    times->items[times->count] = (rl_range_time){.name = r->event->name, .depth = r->depth};
    *row_number = (uint32_t)++times->count;
  }
  rl_range_time *row = &times->items[*row_number - 1];
  if (r->depth < row->depth) row->depth = r->depth;
  row->range_count++;
  row->own_ns += r->own_ns;
  row->projected_ns += r->last_ns - r->first_ns;
  row->host_ns += r->event->end_ns - r->event->start_ns;
  if (!r->in_same_name) add_operations(r, row);
}

static int add_names(projection *p, rl_range_times *times, rl_error *err) {
  times->items = malloc((p->count + 1) * sizeof *times->items);
  if (times->items == NULL) return out_of_memory(err);
  for (size_t i = 0; i < p->count; i++) add_range(p, &p->ranges[i], times);
  add_operations(&p->ranges[p->count], &times->outside);
  times->outside.own_ns = times->outside.time_ns;
  return 0;
}

static int allocate(projection *p, rl_error *err) {
  const rl_trace_event **events = NULL;
  if (rl_trace_index_ranges(p->index, &events, &p->count, err) < 0) return -1;
  p->ranges = calloc(p->count + 1, sizeof *p->ranges);
  p->open = malloc((p->count + 1) * sizeof *p->open);
  p->open_of_name = calloc(p->index->events->name_count + 1, sizeof *p->open_of_name);
  p->row_of_name = calloc(p->index->events->name_count + 1, sizeof *p->row_of_name);
  p->range_of = malloc((p->index->operation_count + 1) * sizeof *p->range_of);
  for (size_t i = 0; i < p->count && p->ranges != NULL; i++) p->ranges[i] = (range){.event = events[i], .parent = NO_RANGE};
  free((void *)events);
  return p->ranges == NULL || p->open == NULL || p->open_of_name == NULL || p->row_of_name == NULL || p->range_of == NULL
             ? out_of_memory(err)
             : 0;
}

static int compute(projection *p, rl_time_classes *classes, rl_range_times *times, rl_error *err) {
  const rl_time_observer observer = {add_time, p};
  if (allocate(p, err) < 0 || nest_ranges_of_process(p, err) < 0 || nest_ranges_of_threads(p, err) < 0) return -1;
  project_operations(p);
  if (rl_time_classes_compute(p->index, &observer, classes, err) < 0) return -1;
  add_to_parents(p);
  return add_names(p, times, err);
}

int rl_range_times_compute(const rl_trace_index *index, const rl_time_observer *observer, const int64_t *path_ns,
                           rl_time_classes *classes, rl_range_times *times, rl_error *err) {
  projection p = {.index = index, .observer = observer, .path_ns = path_ns};
  *classes = (rl_time_classes){0};
  *times = (rl_range_times){0};
  int rc = compute(&p, classes, times, err);
  free(p.ranges);
  free(p.changes);
  free(p.open);
  free(p.open_of_name);
  free(p.row_of_name);
  free(p.range_of);
  if (rc < 0) rl_time_classes_clear(classes);
  return rc;
}

void rl_range_times_clear(rl_range_times *times) {
  free(times->items);
  *times = (rl_range_times){0};
}
