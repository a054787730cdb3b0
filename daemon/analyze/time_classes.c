/* Sweeps over the operations in order of start. The launch call of the operation after a gap determines how the gap is divided
 * into classes. */
#include "analyze/time_classes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/thresholds.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "model/records.h"

const char *const rl_time_class_names[RL_TIME_CLASS_COUNT] = {
    [RL_TIME_COMPUTE] = "compute",
    [RL_TIME_COMPUTE_AND_COPY] = "compute_and_copy",
    [RL_TIME_COPY] = "copy",
    [RL_TIME_IDLE_HOST_WORK] = "idle_host_work",
    [RL_TIME_IDLE_LAUNCH_LATENCY] = "idle_launch_latency",
    [RL_TIME_IDLE_FIRST_LAUNCH] = "idle_first_launch",
    [RL_TIME_IDLE_SYNCHRONIZATION] = "idle_synchronization",
    [RL_TIME_IDLE_COPY] = "idle_copy",
    [RL_TIME_IDLE_GRAPH] = "idle_graph",
    [RL_TIME_IDLE_DEVICE_LATENCY] = "idle_device_latency",
    [RL_TIME_IDLE_PROFILER] = "idle_profiler",
    [RL_TIME_IDLE_UNKNOWN] = "idle_unknown",
};

bool rl_time_class_is_idle(rl_time_class time_class) { return time_class >= RL_TIME_FIRST_IDLE; }

/* The metrics of a class. */
#define NAMES(CLASS, name) [CLASS] = {"timeline__" name "_pct", "timeline__" name "_us", "timeline__" name "_intervals"}
static const char *const class_metrics[RL_TIME_CLASS_COUNT][3] = {
    NAMES(RL_TIME_COMPUTE, "compute"),
    NAMES(RL_TIME_COMPUTE_AND_COPY, "compute_and_copy"),
    NAMES(RL_TIME_COPY, "copy"),
    NAMES(RL_TIME_IDLE_HOST_WORK, "idle_host_work"),
    NAMES(RL_TIME_IDLE_LAUNCH_LATENCY, "idle_launch_latency"),
    NAMES(RL_TIME_IDLE_FIRST_LAUNCH, "idle_first_launch"),
    NAMES(RL_TIME_IDLE_SYNCHRONIZATION, "idle_synchronization"),
    NAMES(RL_TIME_IDLE_COPY, "idle_copy"),
    NAMES(RL_TIME_IDLE_GRAPH, "idle_graph"),
    NAMES(RL_TIME_IDLE_DEVICE_LATENCY, "idle_device_latency"),
    NAMES(RL_TIME_IDLE_PROFILER, "idle_profiler"),
    NAMES(RL_TIME_IDLE_UNKNOWN, "idle_unknown"),
};

typedef const rl_trace_event *event_ref;

/* An interval of an API call, of an overhead, or of time without records. */
typedef struct call_span {
  uint32_t thread; /* ANY_THREAD: the span belongs to no particular thread */
  int64_t start_ns, end_ns;
  event_ref call;
} call_span;

enum { ANY_THREAD = 0 };

typedef struct spans { /* spans are sorted by thread, then by time; after merge_spans they are disjoint */
  call_span *items;
  size_t count;
} spans;

/* What delays a launch while a span of its thread is in progress. */
typedef enum delay { DELAY_PROFILER, DELAY_LOADING, DELAY_SYNCHRONIZATION, DELAY_COPY, DELAY_COUNT } delay;
static const rl_time_class delay_classes[DELAY_COUNT] = {RL_TIME_IDLE_PROFILER, RL_TIME_IDLE_FIRST_LAUNCH,
                                                         RL_TIME_IDLE_SYNCHRONIZATION, RL_TIME_IDLE_COPY};
enum { DELAYS_IN_CALL = DELAY_LOADING + 1 }; /* the first DELAYS_IN_CALL delays also lengthen the launch call itself */

typedef struct launch_durations { /* durations of the launch calls whose first operation has the same name */
  event_ref first;
  int64_t later_ns;
  size_t later_count;
} launch_durations;

typedef struct analysis {
  const rl_trace_index *index;
  const rl_time_observer *observer; /* NULL: none */
  spans delays[DELAY_COUNT];
  spans synchronizations, unrecorded; /* spans of all threads, merged */
  launch_durations *launches[2];      /* launches[is_in_graph][name]: durations of launch calls */
  size_t idle_capacity;
  rl_time_classes *result;
} analysis;

static int out_of_memory(rl_error *err) { return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the classes of a trace"); }

static bool is_short_kernel(event_ref event) {
  return event->kind == RL_ACTIVITY_KERNEL && event->end_ns - event->start_ns < RL_SHORT_KERNEL_NS;
}

/* --- spans of calls ---------------------------------------------------------------------------------------------------- */

static int order(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int compare_spans(const void *left, const void *right) {
  const call_span *a = left, *b = right;
  return a->thread != b->thread ? order(a->thread, b->thread) : order(a->start_ns, b->start_ns);
}

/* Unites overlapping spans of a thread. */
static void merge_spans(spans *list) {
  size_t merged = 0;
  qsort(list->items, list->count, sizeof *list->items, compare_spans);
  for (size_t i = 0; i < list->count; i++) {
    const call_span *span = &list->items[i];
    call_span *last = merged > 0 && list->items[merged - 1].thread == span->thread ? &list->items[merged - 1] : NULL;
    if (last == NULL || span->start_ns > last->end_ns) list->items[merged++] = *span;
    else if (span->end_ns > last->end_ns) last->end_ns = span->end_ns;
  }
  list->count = merged;
}

static int allocate_spans(spans *list, size_t most, rl_error *err) {
  list->items = malloc((most + 1) * sizeof *list->items);
  return list->items == NULL ? out_of_memory(err) : 0;
}

static int add_call_spans(analysis *a, unsigned char kind, bool by_thread, spans *list, rl_error *err) {
  if (allocate_spans(list, a->index->call_count, err) < 0) return -1;
  for (size_t i = 0; i < a->index->call_count; i++) {
    event_ref call = a->index->calls[i];
    uint32_t thread = by_thread ? call->thread : ANY_THREAD;
    if (rl_trace_call_is(a->index, call, kind))
      list->items[list->count++] = (call_span){thread, call->start_ns, call->end_ns, call};
  }
  merge_spans(list);
  return 0;
}

static int add_overheads(analysis *a, rl_overhead_cause cause, spans *list, rl_error *err) {
  if (allocate_spans(list, a->index->overhead_count, err) < 0) return -1;
  for (size_t i = 0; i < a->index->overhead_count; i++) {
    const rl_trace_overhead *overhead = &a->index->overheads[i];
    if (overhead->cause == cause && overhead->call != NULL)
      list->items[list->count++] =
          (call_span){overhead->call->thread, overhead->event->start_ns, overhead->event->end_ns, overhead->call};
  }
  merge_spans(list);
  return 0;
}

/* Returns the thread's first span that ends after the time; NULL: there is none. */
static const call_span *first_span_after(const spans *list, uint32_t thread, int64_t time_ns) {
  size_t low = 0, high = list->count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    const call_span *span = &list->items[middle];
    if (span->thread > thread || (span->thread == thread && span->end_ns > time_ns)) high = middle;
    else low = middle + 1;
  }
  return low < list->count && list->items[low].thread == thread ? &list->items[low] : NULL;
}

/* --- launches without operations --------------------------------------------------------------------------------------- */

typedef struct launch_call {
  event_ref call;
  bool is_recorded; /* an operation has its correlation id */
} launch_call;

RL_DEFINE_CLEANUP(free_launch_calls, launch_call *, free, NULL)

static int compare_launch_calls(const void *left, const void *right) {
  const launch_call *a = left, *b = right;
  if (a->call->thread != b->call->thread) return order(a->call->thread, b->call->thread);
  if (a->call->start_ns != b->call->start_ns) return order(a->call->start_ns, b->call->start_ns);
  return order(b->call->end_ns, a->call->end_ns); /* the outer call first */
}

/* Lists the launch calls, sorted by thread, then by start. Returns their number. */
static size_t list_launch_calls(const rl_trace_index *index, launch_call *launches) {
  size_t count = 0;
  for (size_t i = 0; i < index->call_count; i++)
    if (rl_trace_call_is(index, index->calls[i], RL_CALL_LAUNCHES))
      launches[count++] = (launch_call){index->calls[i], index->has_operation[i]};
  qsort(launches, count, sizeof *launches, compare_launch_calls);
  return count;
}

/* A call of the runtime API contains a call of the driver API, and the two have different correlation ids. If an operation has
 * either id, both calls count as recorded. */
static void join_nested_calls(launch_call *launches, size_t count) {
  for (size_t i = 1; i < count; i++) {
    launch_call *outer = &launches[i - 1], *inner = &launches[i];
    if (inner->call->thread == outer->call->thread && inner->call->end_ns <= outer->call->end_ns)
      inner->is_recorded = outer->is_recorded |= inner->is_recorded;
  }
}

static int find_unrecorded_launches(analysis *a, rl_error *err) {
  RL_CLEANUP(free_launch_calls) launch_call *launches = malloc((a->index->call_count + 1) * sizeof *launches);
  if (launches == NULL) return out_of_memory(err);
  if (allocate_spans(&a->unrecorded, a->index->call_count, err) < 0) return -1;
  size_t count = list_launch_calls(a->index, launches);
  join_nested_calls(launches, count);
  for (size_t i = 0; i < count; i++) {
    event_ref call = launches[i].call;
    if (launches[i].is_recorded) continue;
    const call_span *end = first_span_after(&a->synchronizations, ANY_THREAD, call->end_ns);
    int64_t end_ns = end != NULL ? end->end_ns : a->result->end_ns;
    if (end_ns > call->start_ns)
      a->unrecorded.items[a->unrecorded.count++] = (call_span){ANY_THREAD, call->start_ns, end_ns, call};
    a->result->unrecorded_launch_count++;
  }
  merge_spans(&a->unrecorded);
  return 0;
}

/* --- first launches ---------------------------------------------------------------------------------------------------- */

static launch_durations *durations_of(const analysis *a, event_ref operation) {
  return &a->launches[operation->graph_node != 0][operation->name];
}

/* Adds the duration of each launch call to the durations of its first operation's name. */
static int measure_launches(analysis *a, rl_error *err) {
  const rl_trace_index *index = a->index;
  bool *seen = calloc(index->events->count + 1, sizeof *seen); /* seen[i]: event i is a launch call that was added already */
  for (int i = 0; i < 2; i++) a->launches[i] = calloc(index->events->name_count + 1, sizeof *a->launches[i]);
  if (seen == NULL || a->launches[0] == NULL || a->launches[1] == NULL) {
    free(seen);
    return out_of_memory(err);
  }
  for (size_t i = 0; i < index->operation_count; i++) {
    event_ref call = index->launched_by[i];
    if (call == NULL || seen[call - index->items]) continue;
    launch_durations *durations = durations_of(a, index->operations[i]);
    seen[call - index->items] = true;
    if (durations->first == NULL) {
      durations->first = call;
    } else {
      durations->later_ns += call->end_ns - call->start_ns;
      durations->later_count++;
    }
  }
  free(seen);
  return 0;
}

static bool is_slow_first_launch(const analysis *a, event_ref call, event_ref operation) {
  const launch_durations *durations = durations_of(a, operation);
  if (durations->first != call || durations->later_count < RL_FIRST_LAUNCH_MIN_LATER) return false;
  double mean_later_ns = (double)durations->later_ns / (double)durations->later_count;
  return (double)(call->end_ns - call->start_ns) > RL_FIRST_LAUNCH_MIN_FACTOR * mean_later_ns;
}

static void observe(const analysis *a, size_t operation, rl_time_class time_class, int64_t time_ns) {
  if (a->observer != NULL && time_ns > 0) a->observer->add(a->observer->context, operation, time_class, time_ns);
}

/* --- idle time --------------------------------------------------------------------------------------------------------- */

typedef struct idle_gap { /* no operation runs from start_ns to end_ns */
  int64_t start_ns, end_ns;
  event_ref before, after;
  size_t operation; /* index of `after` */
  event_ref call;   /* launch call of `after`; NULL: not recorded */
} idle_gap;

/* Adds idle time before a short kernel to the sums of idle time that a graph or fusing the kernel would save. */
static void count_idle_before_short_kernel(event_ref kernel, rl_time_class time_class, int64_t time_ns, rl_time_classes *result) {
  bool waits_for_host = time_class == RL_TIME_IDLE_HOST_WORK || time_class == RL_TIME_IDLE_LAUNCH_LATENCY;
  if (time_class == RL_TIME_IDLE_DEVICE_LATENCY) result->device_latency_before_short_kernels_ns += time_ns;
  if (waits_for_host && kernel->graph_node == 0) result->host_time_before_short_kernels_ns += time_ns;
}

static int add_idle(analysis *a, const idle_gap *gap, int64_t start_ns, int64_t end_ns, rl_time_class time_class, event_ref call,
                    rl_error *err) {
  rl_time_classes *result = a->result;
  if (end_ns <= start_ns) return 0;
  if (rl_array_reserve(&result->idle, result->idle_count, &a->idle_capacity, sizeof *result->idle, err) < 0) return -1;
  result->class_ns[time_class] += end_ns - start_ns;
  result->interval_counts[time_class]++;
  observe(a, gap->operation, time_class, end_ns - start_ns);
  if (is_short_kernel(gap->after)) count_idle_before_short_kernel(gap->after, time_class, end_ns - start_ns, result);
  result->idle[result->idle_count++] = (rl_idle_interval){
      start_ns, end_ns, time_class, gap->before, gap->after, call, gap->call != NULL, gap->call != NULL ? gap->call->thread : 0};
  return 0;
}

/* Returns the first delay, of the first `count` ones, that is in progress on the thread at start_ns; DELAY_COUNT: none is. Lowers
 * *end_ns to the time at which this result changes. Sets *call to the delaying call. */
static delay delay_at(const analysis *a, uint32_t thread, int count, int64_t start_ns, int64_t *end_ns, event_ref *call) {
  for (int i = 0; i < count; i++) {
    const call_span *span = first_span_after(&a->delays[i], thread, start_ns);
    if (span == NULL) continue;
    bool in_progress = span->start_ns <= start_ns;
    int64_t boundary_ns = in_progress ? span->end_ns : span->start_ns;
    if (boundary_ns < *end_ns) *end_ns = boundary_ns;
    if (!in_progress) continue;
    *call = span->call;
    return (delay)i;
  }
  return DELAY_COUNT;
}

/* Adds a part of a gap. While one of the first `count` delays is in progress, the time belongs to the delay's class. The rest
 * belongs to the class `otherwise` and is explained by other_call. */
static int add_delayed(analysis *a, const idle_gap *gap, int64_t start_ns, int64_t end_ns, int count, rl_time_class otherwise,
                       event_ref other_call, rl_error *err) {
  while (start_ns < end_ns) {
    int64_t part_end_ns = end_ns;
    event_ref call = other_call;
    delay found = delay_at(a, gap->call->thread, count, start_ns, &part_end_ns, &call);
    rl_time_class time_class = found < DELAY_COUNT ? delay_classes[found] : otherwise;
    if (add_idle(a, gap, start_ns, part_end_ns, time_class, call, err) < 0) return -1;
    start_ns = part_end_ns;
  }
  return 0;
}

static rl_time_class class_in_call(const analysis *a, const idle_gap *gap) {
  if (rl_trace_call_is(a->index, gap->call, RL_CALL_COPIES)) return RL_TIME_IDLE_COPY;
  return is_slow_first_launch(a, gap->call, gap->after) ? RL_TIME_IDLE_FIRST_LAUNCH : RL_TIME_IDLE_LAUNCH_LATENCY;
}

/* Returns the class of a gap whose operation was queued before the gap began. */
static rl_time_class queued_class(const analysis *a, const idle_gap *gap) {
  bool same_launch = gap->before->correlation == gap->after->correlation && gap->after->graph_node != 0;
  bool graph = gap->before->graph_node != 0 || gap->after->graph_node != 0;
  if (!same_launch && graph) return RL_TIME_IDLE_GRAPH;
  if (gap->end_ns - gap->start_ns > RL_DEVICE_LATENCY_MAX_NS) return RL_TIME_IDLE_UNKNOWN;
  bool next_to_host_copy = rl_trace_copy_of(a->index, gap->before) == RL_TRACE_HOST_COPY ||
                           rl_trace_copy_of(a->index, gap->after) == RL_TRACE_HOST_COPY;
  return next_to_host_copy ? RL_TIME_IDLE_COPY : RL_TIME_IDLE_DEVICE_LATENCY;
}

/* Adds a part of a gap in which no unrecorded launch can be running. */
static int add_explained(analysis *a, const idle_gap *gap, int64_t start_ns, int64_t end_ns, rl_error *err) {
  if (gap->after->kind == RL_ACTIVITY_CPU_SPAN) return add_idle(a, gap, start_ns, end_ns, RL_TIME_IDLE_HOST_WORK, NULL, err);
  if (gap->call == NULL) return add_idle(a, gap, start_ns, end_ns, RL_TIME_IDLE_UNKNOWN, NULL, err);
  if (gap->call->end_ns <= gap->start_ns) return add_idle(a, gap, start_ns, end_ns, queued_class(a, gap), gap->call, err);
  int64_t call_ns = gap->call->start_ns > start_ns ? gap->call->start_ns : start_ns;
  if (call_ns > end_ns) call_ns = end_ns;
  if (add_delayed(a, gap, start_ns, call_ns, DELAY_COUNT, RL_TIME_IDLE_HOST_WORK, NULL, err) < 0) return -1;
  return add_delayed(a, gap, call_ns, end_ns, DELAYS_IN_CALL, class_in_call(a, gap), gap->call, err);
}

/* Adds the gap that ends when this operation starts. */
static int add_gap(analysis *a, int64_t start_ns, int64_t end_ns, event_ref before, size_t operation, rl_error *err) {
  idle_gap gap = {start_ns, end_ns, before, a->index->operations[operation], operation, a->index->launched_by[operation]};
  if (a->index->events->incomplete_reason != NULL) return add_idle(a, &gap, start_ns, end_ns, RL_TIME_IDLE_UNKNOWN, NULL, err);
  while (start_ns < end_ns) {
    const call_span *unknown = first_span_after(&a->unrecorded, ANY_THREAD, start_ns);
    if (unknown != NULL && unknown->start_ns >= end_ns) unknown = NULL;
    int64_t known_end_ns = unknown != NULL ? unknown->start_ns : end_ns;
    if (known_end_ns > start_ns) {
      if (add_explained(a, &gap, start_ns, known_end_ns, err) < 0) return -1;
      start_ns = known_end_ns;
    }
    if (unknown == NULL) break;
    int64_t unknown_end_ns = unknown->end_ns < end_ns ? unknown->end_ns : end_ns;
    if (add_idle(a, &gap, start_ns, unknown_end_ns, RL_TIME_IDLE_UNKNOWN, unknown->call, err) < 0) return -1;
    start_ns = unknown_end_ns;
  }
  return 0;
}

/* --- the sweep --------------------------------------------------------------------------------------------------------- */

typedef struct running_operations {
  int64_t end_ns[RL_TRACE_COPY_COUNT]; /* the latest ends of the operations that started so far */
  event_ref last;                      /* the operation that ends last */
  size_t first;                        /* index of the running operation that started first */
} running_operations;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Adds busy time. Each part belongs to the running operation that started first. */
static void add_busy(analysis *a, running_operations *running, int64_t from_ns, int64_t to_ns, rl_time_class time_class) {
  if (to_ns > from_ns) a->result->class_ns[time_class] += to_ns - from_ns;
  while (from_ns < to_ns) {
    int64_t end_ns = a->index->operations[running->first]->end_ns;
    if (end_ns > from_ns) observe(a, running->first, time_class, smaller(end_ns, to_ns) - from_ns);
    if (end_ns < to_ns) running->first++;
    from_ns = larger(from_ns, smaller(end_ns, to_ns));
  }
}

/* Adds the times of copies from `from_ns`, when the operations run, to end_ns[…], when they end. */
static void add_copies(const int64_t end_ns[RL_TRACE_COPY_COUNT], int64_t from_ns, rl_time_classes *result) {
  int64_t kernel_end_ns = end_ns[RL_TRACE_NO_COPY], host_end_ns = end_ns[RL_TRACE_HOST_COPY];
  int64_t others_end_ns = larger(kernel_end_ns, larger(host_end_ns, end_ns[RL_TRACE_OTHER_COPY]));
  result->host_copies_beside_ns += smaller(kernel_end_ns, host_end_ns) - from_ns;
  result->host_copies_alone_ns += larger(0, host_end_ns - kernel_end_ns);
  result->device_copies_alone_ns += larger(0, end_ns[RL_TRACE_DEVICE_COPY] - others_end_ns);
}

/* Classifies the time from `from_ns` to `to_ns`, in which no operation starts. Then the operation `next` starts. */
static int add_time(analysis *a, running_operations *running, int64_t from_ns, int64_t to_ns, size_t next, rl_error *err) {
  int64_t end_ns[RL_TRACE_COPY_COUNT], copy_end_ns = from_ns;
  for (int i = 0; i < RL_TRACE_COPY_COUNT; i++) end_ns[i] = larger(from_ns, smaller(running->end_ns[i], to_ns));
  for (int i = RL_TRACE_NO_COPY + 1; i < RL_TRACE_COPY_COUNT; i++) copy_end_ns = larger(copy_end_ns, end_ns[i]);
  int64_t kernel_end_ns = end_ns[RL_TRACE_NO_COPY];
  int64_t both_end_ns = smaller(kernel_end_ns, copy_end_ns), busy_end_ns = larger(kernel_end_ns, copy_end_ns);
  add_busy(a, running, from_ns, both_end_ns, RL_TIME_COMPUTE_AND_COPY);
  add_busy(a, running, both_end_ns, busy_end_ns, kernel_end_ns > copy_end_ns ? RL_TIME_COMPUTE : RL_TIME_COPY);
  add_copies(end_ns, from_ns, a->result);
  return busy_end_ns < to_ns ? add_gap(a, busy_end_ns, to_ns, running->last, next, err) : 0;
}

static void start_operation(const rl_trace_index *index, event_ref operation, running_operations *running) {
  int64_t *end_ns = &running->end_ns[rl_trace_copy_of(index, operation)];
  *end_ns = larger(*end_ns, operation->end_ns);
  if (running->last == NULL || operation->end_ns >= running->last->end_ns) running->last = operation;
}

static void count_operation(event_ref operation, rl_time_classes *result) {
  result->kernel_count += operation->kind == RL_ACTIVITY_KERNEL;
  if (!is_short_kernel(operation)) return;
  result->short_kernel_count++;
  result->short_kernels_ns += operation->end_ns - operation->start_ns;
}

static int sweep(analysis *a, rl_error *err) {
  running_operations running = {.last = NULL};
  int64_t now_ns = a->index->start_ns;
  for (int i = 0; i < RL_TRACE_COPY_COUNT; i++) running.end_ns[i] = INT64_MIN;
  for (size_t i = 0; i < a->index->operation_count; i++) {
    event_ref operation = a->index->operations[i];
    if (running.last != NULL && add_time(a, &running, now_ns, operation->start_ns, i, err) < 0) return -1;
    now_ns = operation->start_ns;
    start_operation(a->index, operation, &running);
    count_operation(operation, a->result);
  }
  return running.last != NULL ? add_time(a, &running, now_ns, a->index->end_ns, a->index->operation_count, err) : 0;
}

static int analyze(analysis *a, rl_error *err) {
  a->result->start_ns = a->index->start_ns;
  a->result->end_ns = a->index->end_ns;
  a->result->operation_count = a->index->operation_count;
  if (add_overheads(a, RL_OVERHEAD_OF_PROFILER, &a->delays[DELAY_PROFILER], err) < 0 ||
      add_overheads(a, RL_OVERHEAD_OF_LOADING, &a->delays[DELAY_LOADING], err) < 0 ||
      add_call_spans(a, RL_CALL_SYNCHRONIZES, true, &a->delays[DELAY_SYNCHRONIZATION], err) < 0 ||
      add_call_spans(a, RL_CALL_COPIES, true, &a->delays[DELAY_COPY], err) < 0 ||
      add_call_spans(a, RL_CALL_SYNCHRONIZES, false, &a->synchronizations, err) < 0 || find_unrecorded_launches(a, err) < 0 ||
      measure_launches(a, err) < 0)
    return -1;
  return sweep(a, err);
}

int rl_time_classes_compute(const rl_trace_index *index, const rl_time_observer *observer, rl_time_classes *classes,
                            rl_error *err) {
  *classes = (rl_time_classes){0};
  analysis a = {.index = index, .observer = observer, .result = classes};
  int rc = analyze(&a, err);
  for (int i = 0; i < DELAY_COUNT; i++) free(a.delays[i].items);
  for (int i = 0; i < 2; i++) free(a.launches[i]);
  free(a.synchronizations.items);
  free(a.unrecorded.items);
  if (rc < 0) rl_time_classes_clear(classes);
  return rc;
}

void rl_time_classes_clear(rl_time_classes *classes) {
  free(classes->idle);
  *classes = (rl_time_classes){0};
}

/* --- metrics ----------------------------------------------------------------------------------------------------------- */

static double pct_of_window(const rl_time_classes *classes, int64_t time_ns) {
  int64_t window_ns = classes->end_ns - classes->start_ns;
  return window_ns > 0 ? 100.0 * (double)time_ns / (double)window_ns : NAN;
}

static rl_metric_value copies_metric(const char *name, const rl_time_classes *classes, int64_t time_ns,
                                     const char *no_copies_reason) {
  return (rl_metric_value){name, no_copies_reason == NULL ? pct_of_window(classes, time_ns) : NAN, no_copies_reason};
}

size_t rl_time_classes_metrics(const rl_time_classes *classes, const char *no_copies_reason,
                               rl_metric_value metrics[RL_TIME_METRIC_COUNT]) {
  size_t count = 0;
  for (int i = 0; i < RL_TIME_CLASS_COUNT; i++) {
    bool is_idle = rl_time_class_is_idle((rl_time_class)i);
    metrics[count++] = (rl_metric_value){class_metrics[i][0], pct_of_window(classes, classes->class_ns[i]), NULL};
    metrics[count++] = (rl_metric_value){class_metrics[i][1], (double)classes->class_ns[i] / 1000, NULL};
    metrics[count++] = (rl_metric_value){class_metrics[i][2], is_idle ? (double)classes->interval_counts[i] : NAN,
                                         is_idle ? NULL : "not of idle time"};
  }
  const rl_metric_value whole[] = {
      copies_metric("timeline__device_copies_alone_pct", classes, classes->device_copies_alone_ns, no_copies_reason),
      copies_metric("timeline__host_copies_alone_pct", classes, classes->host_copies_alone_ns, no_copies_reason),
      copies_metric("timeline__host_copies_beside_pct", classes, classes->host_copies_beside_ns, no_copies_reason),
      {"timeline__small_kernels", (double)classes->short_kernel_count, NULL},
      {"timeline__small_kernels_latency_pct", pct_of_window(classes, classes->device_latency_before_short_kernels_ns), NULL},
      {"timeline__small_kernels_launch_pct", pct_of_window(classes, classes->host_time_before_short_kernels_ns), NULL},
      {"timeline__small_kernels_pct", pct_of_window(classes, classes->short_kernels_ns), NULL},
      {"timeline__unrecorded_launches", (double)classes->unrecorded_launch_count, NULL},
      {"timeline__window_us", (double)(classes->end_ns - classes->start_ns) / 1000, NULL},
  };
  memcpy(metrics + count, whole, sizeof whole);
  count += sizeof whole / sizeof *whole;
  rl_metric_values_sort(metrics, count);
  return count;
}
