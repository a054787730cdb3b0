/* Goes back from the operation that ends last. Each step goes to the predecessor that became ready last, found by binary search
 * in lists sorted by stream, by end and by thread. */
#include "analyze/critical_path.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/records.h"

const char *const rl_path_part_names[RL_PATH_PART_COUNT] = {
    [RL_PATH_KERNELS] = "kernels",
    [RL_PATH_COPIES] = "copies",
    [RL_PATH_LAUNCHES] = "launches",
    [RL_PATH_HOST_WORK] = "host_work",
    [RL_PATH_SYNCHRONIZATION] = "synchronization",
    [RL_PATH_DEVICE_LATENCY] = "device_latency",
    [RL_PATH_UNKNOWN] = "unknown",
};

typedef const rl_trace_event *event_ref;

static const uint32_t NO_OPERATION = UINT32_MAX;
/* Maximum number of operations that a search for a predecessor skips, so that its time is bounded for any trace. */
enum { MAX_STEPS_BACK = 16 };

typedef struct ordered_call { /* calls are sorted by key, then by time */
  uint32_t key;               /* thread, stream or event */
  int64_t time_ns;
  event_ref call;
} ordered_call;

typedef struct ordered_calls {
  ordered_call *items;
  size_t count;
} ordered_calls;

typedef struct ordered_operation { /* operations are sorted by key, then by time */
  uint32_t key, operation;
  int64_t time_ns;
} ordered_operation;

typedef struct launch_span { /* the union of nested launch calls of a thread */
  uint32_t key;
  int64_t start_ns, end_ns;
  int64_t before_ns; /* total duration of the spans that stand before this one in the list */
} launch_span;

typedef struct path_search {
  const rl_trace_index *index;
  ordered_operation *by_stream; /* time_ns: start of the launch call */
  ordered_operation *by_end;    /* time_ns: end; all keys are 0 */
  uint32_t *previous;           /* previous[i]: the operation before operation i in its stream; NO_OPERATION: none */
  ordered_calls waiting;        /* calls that wait for the device, by thread and end */
  launch_span *launches;        /* sorted by thread, then by time */
  size_t launch_count;
  ordered_calls stream_waits;  /* cudaStreamWaitEvent, by stream and start */
  ordered_calls event_records; /* cudaEventRecord, by event and start */
  uint32_t *row_of_name;       /* 1 + index into path->names; 0: none */
  int64_t covered_from_ns;     /* start of the part of the window that the path covers so far */
  uint32_t operation;          /* the earliest operation on the path so far; NO_OPERATION: the path is complete */
  rl_critical_path *path;
} path_search;

static int out_of_memory(rl_error *err) { return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the critical path"); }

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* --- lists ------------------------------------------------------------------------------------------------------------- */

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static int compare_calls(const void *left, const void *right) {
  const ordered_call *a = left, *b = right;
  if (a->key != b->key) return COMPARE(a->key, b->key);
  return COMPARE(a->time_ns, b->time_ns);
}

static int compare_operations(const void *left, const void *right) {
  const ordered_operation *a = left, *b = right;
  if (a->key != b->key) return COMPARE(a->key, b->key);
  if (a->time_ns != b->time_ns) return COMPARE(a->time_ns, b->time_ns);
  return COMPARE(a->operation, b->operation);
}

/* Returns the number of items up to this key and time. */
static size_t calls_until(const ordered_calls *list, uint32_t key, int64_t time_ns) {
  size_t low = 0, high = list->count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    const ordered_call *item = &list->items[middle];
    if (item->key > key || (item->key == key && item->time_ns > time_ns)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/* Returns the number of items up to this key and time. */
static size_t operations_until(const path_search *s, const ordered_operation *items, uint32_t key, int64_t time_ns) {
  size_t low = 0, high = s->index->operation_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    const ordered_operation *item = &items[middle];
    if (item->key > key || (item->key == key && item->time_ns > time_ns)) high = middle;
    else low = middle + 1;
  }
  return low;
}

static int64_t launch_ns(const path_search *s, size_t operation) {
  event_ref call = s->index->launched_by[operation];
  return call != NULL ? call->start_ns : s->index->operations[operation]->start_ns;
}

static int list_operations(path_search *s, rl_error *err) {
  size_t count = s->index->operation_count;
  s->by_stream = malloc((count + 1) * sizeof *s->by_stream);
  s->by_end = malloc((count + 1) * sizeof *s->by_end);
  s->previous = malloc((count + 1) * sizeof *s->previous);
  if (s->by_stream == NULL || s->by_end == NULL || s->previous == NULL) return out_of_memory(err);
  for (uint32_t i = 0; i < count; i++) {
    event_ref operation = s->index->operations[i];
    s->by_stream[i] = (ordered_operation){operation->stream, i, operation->start_ns};
    s->by_end[i] = (ordered_operation){0, i, operation->end_ns};
  }
  qsort(s->by_stream, count, sizeof *s->by_stream, compare_operations);
  qsort(s->by_end, count, sizeof *s->by_end, compare_operations);
  for (size_t i = 0; i < count; i++) {
    bool has_previous = i > 0 && s->by_stream[i - 1].key == s->by_stream[i].key;
    s->previous[s->by_stream[i].operation] = has_previous ? s->by_stream[i - 1].operation : NO_OPERATION;
    s->by_stream[i].time_ns = launch_ns(s, s->by_stream[i].operation); /* a stream executes its operations in launch order */
  }
  return 0;
}

typedef struct call_list_options {
  ordered_calls *list;
  unsigned char kind;
  uint32_t (*key)(event_ref call); /* 0: the call does not belong to the list */
  bool by_end;
} call_list_options;

static int list_calls(path_search *s, const call_list_options *options, rl_error *err) {
  options->list->items = malloc((s->index->call_count + 1) * sizeof *options->list->items);
  if (options->list->items == NULL) return out_of_memory(err);
  for (size_t i = 0; i < s->index->call_count; i++) {
    event_ref call = s->index->calls[i];
    if (rl_trace_call_is(s->index, call, options->kind) && options->key(call) != 0)
      options->list->items[options->list->count++] =
          (ordered_call){options->key(call), options->by_end ? call->end_ns : call->start_ns, call};
  }
  qsort(options->list->items, options->list->count, sizeof *options->list->items, compare_calls);
  return 0;
}

/* Returns a key that is not 0, because the thread is 0 in a trace that does not record threads. */
static uint32_t thread_key(event_ref call) { return call->thread + 1; }
static uint32_t stream_key(event_ref call) { return call->event != 0 ? call->stream : 0; }
static uint32_t event_key(event_ref call) { return call->event; }

/* Merges nested launch calls of a thread: a runtime call and the driver call inside it. */
static int list_launches(path_search *s, rl_error *err) {
  ordered_calls calls = {0};
  const call_list_options options = {&calls, RL_CALL_LAUNCHES, thread_key, false};
  s->launches = malloc((s->index->call_count + 1) * sizeof *s->launches);
  if (s->launches == NULL) return out_of_memory(err);
  if (list_calls(s, &options, err) < 0) return -1;
  for (size_t i = 0; i < calls.count; i++) {
    const ordered_call *item = &calls.items[i];
    launch_span *last = s->launch_count > 0 ? &s->launches[s->launch_count - 1] : NULL;
    int64_t before_ns = last != NULL ? last->before_ns + last->end_ns - last->start_ns : 0;
    if (last != NULL && last->key == item->key && item->time_ns < last->end_ns)
      last->end_ns = larger(last->end_ns, item->call->end_ns);
    else s->launches[s->launch_count++] = (launch_span){item->key, item->time_ns, item->call->end_ns, before_ns};
  }
  free(calls.items);
  return 0;
}

static int prepare(path_search *s, rl_error *err) {
  const call_list_options lists[] = {{&s->waiting, RL_CALL_SYNCHRONIZES | RL_CALL_COPIES, thread_key, true},
                                     {&s->stream_waits, RL_CALL_WAITS_FOR_EVENT, stream_key, false},
                                     {&s->event_records, RL_CALL_RECORDS_EVENT, event_key, false}};
  s->row_of_name = calloc(s->index->events->name_count + 1, sizeof *s->row_of_name);
  s->path->names = calloc(s->index->events->name_count + 1, sizeof *s->path->names);
  s->path->operation_ns = calloc(s->index->operation_count + 1, sizeof *s->path->operation_ns);
  if (s->row_of_name == NULL || s->path->names == NULL || s->path->operation_ns == NULL) return out_of_memory(err);
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    if (list_calls(s, &lists[i], err) < 0) return -1;
  return list_launches(s, err) < 0 ? -1 : list_operations(s, err);
}

/* --- the path ---------------------------------------------------------------------------------------------------------- */

/* Extends the path back to from_ns, at most to the start of the window. */
static void extend(path_search *s, rl_path_part part, int64_t from_ns) {
  from_ns = larger(from_ns, s->index->start_ns);
  if (from_ns >= s->covered_from_ns) return;
  s->path->part_ns[part] += s->covered_from_ns - from_ns;
  s->covered_from_ns = from_ns;
}

/* Returns the total duration of the launch calls that the list has before time_ns of this thread, including the launch calls of
 * other threads. So only the difference between two times of the same thread is meaningful. */
static int64_t launching_ns(const path_search *s, uint32_t key, int64_t time_ns) {
  size_t low = 0, high = s->launch_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    const launch_span *span = &s->launches[middle];
    if (span->key > key || (span->key == key && span->start_ns >= time_ns)) high = middle;
    else low = middle + 1;
  }
  if (low == 0) return 0;
  const launch_span *last = &s->launches[low - 1];
  int64_t end_ns = last->key == key && last->end_ns > time_ns ? time_ns : last->end_ns;
  return last->before_ns + end_ns - last->start_ns;
}

/* Extends the path back through launch calls and work of a thread. */
static void extend_host(path_search *s, uint32_t key, int64_t from_ns) {
  int64_t to_ns = s->covered_from_ns;
  extend(s, RL_PATH_HOST_WORK, from_ns);
  int64_t launches_ns = launching_ns(s, key, to_ns) - launching_ns(s, key, s->covered_from_ns);
  s->path->part_ns[RL_PATH_HOST_WORK] -= launches_ns;
  s->path->part_ns[RL_PATH_LAUNCHES] += launches_ns;
}

static void add_operation(path_search *s) {
  event_ref operation = s->index->operations[s->operation];
  rl_critical_path *path = s->path;
  uint32_t *row = &s->row_of_name[operation->name];
  if (*row == 0) {
    path->names[path->name_count] = (rl_path_operations){.name = operation->name};
    *row = (uint32_t)++path->name_count;
  }
  path->operation_count++;
  path->names[*row - 1].count++;
  path->operation_ns[s->operation] = larger(s->covered_from_ns - operation->start_ns, 0);
  path->names[*row - 1].time_ns += path->operation_ns[s->operation];
  extend(s, rl_trace_is_copy(operation) ? RL_PATH_COPIES : RL_PATH_KERNELS, operation->start_ns);
}

/* Returns whether `after`, which starts later than `before`, can have waited for `before`. */
static bool can_follow(event_ref before, event_ref after) {
  int64_t overlap_ns = before->end_ns - after->start_ns;
  if (overlap_ns <= 0 || (before->stream != 0 && before->stream == after->stream)) return true;
  bool graph = before->graph_node != 0 || after->graph_node != 0;
  return graph && overlap_ns <= RL_NODE_OVERLAP_MAX_NS && overlap_ns <= (before->end_ns - before->start_ns) / 2;
}

/* Returns `candidate` if the current operation can have waited for it and if it ended later than `found`; otherwise `found`. */
static uint32_t later_predecessor(const path_search *s, uint32_t found, uint32_t candidate) {
  if (candidate == NO_OPERATION || candidate >= s->operation) return found;
  event_ref operation = s->index->operations[candidate];
  if (!can_follow(operation, s->index->operations[s->operation])) return found;
  return found == NO_OPERATION || operation->end_ns > s->index->operations[found]->end_ns ? candidate : found;
}

static uint32_t predecessor_in_stream(const path_search *s) {
  uint32_t found = NO_OPERATION, candidate = s->previous[s->operation];
  for (int i = 0; i < MAX_STEPS_BACK && candidate != NO_OPERATION && found == NO_OPERATION; i++) {
    found = later_predecessor(s, found, candidate);
    candidate = s->previous[candidate];
  }
  return found;
}

/* Returns the last operation that was launched into a stream before the time; NO_OPERATION: there is none. */
static uint32_t last_launched(const path_search *s, uint32_t stream, int64_t time_ns) {
  size_t count = operations_until(s, s->by_stream, stream, time_ns);
  return count > 0 && s->by_stream[count - 1].key == stream ? s->by_stream[count - 1].operation : NO_OPERATION;
}

/* Returns the operation that completes the event which the call waits for. */
static uint32_t operation_of_event(const path_search *s, event_ref call) {
  size_t count = calls_until(&s->event_records, call->event, call->start_ns);
  if (count == 0 || s->event_records.items[count - 1].key != call->event) return NO_OPERATION;
  event_ref record = s->event_records.items[count - 1].call;
  return last_launched(s, record->stream, record->start_ns);
}

/* Considers the events that the operation's stream waits for between the launch call of the stream's previous operation and the
 * launch call of this operation. */
static uint32_t predecessor_by_events(const path_search *s, uint32_t found) {
  uint32_t stream = s->index->operations[s->operation]->stream, previous = s->previous[s->operation];
  int64_t since_ns = previous != NO_OPERATION ? launch_ns(s, previous) : INT64_MIN;
  size_t wait = calls_until(&s->stream_waits, stream, launch_ns(s, s->operation));
  for (; wait > 0 && s->stream_waits.items[wait - 1].key == stream && s->stream_waits.items[wait - 1].time_ns > since_ns; wait--)
    found = later_predecessor(s, found, operation_of_event(s, s->stream_waits.items[wait - 1].call));
  return found;
}

/* Considers the last operations, on any stream, that ended before this operation started: nodes of a graph depend on each other,
 * and a graph depends on the graph before it. */
static uint32_t predecessor_by_graph(const path_search *s, uint32_t found) {
  event_ref operation = s->index->operations[s->operation];
  size_t count = operations_until(s, s->by_end, 0, operation->start_ns + RL_NODE_OVERLAP_MAX_NS);
  for (size_t i = count; i > 0 && count - i < MAX_STEPS_BACK; i--) {
    uint32_t candidate = s->by_end[i - 1].operation;
    if (s->index->operations[candidate]->graph_node == 0 && operation->graph_node == 0) continue;
    uint32_t later = later_predecessor(s, found, candidate);
    if (later != found) return later;
  }
  return found;
}

/* Returns the predecessor. Sets *inferred to whether it is known from the order in time alone. */
static uint32_t find_predecessor(const path_search *s, bool *inferred) {
  uint32_t known = predecessor_by_events(s, predecessor_in_stream(s));
  event_ref operation = s->index->operations[s->operation];
  uint32_t before = s->previous[s->operation];
  bool graph = operation->graph_node != 0 || (before != NO_OPERATION && s->index->operations[before]->graph_node != 0);
  uint32_t found = graph ? predecessor_by_graph(s, known) : known;
  *inferred = found != known;
  return found;
}

/* Returns the operation that a call waited for; NO_OPERATION: none ended during the call. */
static uint32_t awaited_operation(const path_search *s, event_ref call) {
  uint32_t found = NO_OPERATION;
  size_t count = operations_until(s, s->by_end, 0, call->end_ns);
  if (call->event != 0) found = operation_of_event(s, call);
  else if (call->stream != 0) found = last_launched(s, call->stream, call->start_ns);
  else if (count > 0) found = s->by_end[count - 1].operation;
  if (found == NO_OPERATION || found >= s->operation) return NO_OPERATION;
  int64_t end_ns = s->index->operations[found]->end_ns;
  return end_ns >= call->start_ns && end_ns <= call->end_ns ? found : NO_OPERATION;
}

/* Extends the path back from a launch call through the work of its thread, to the last operation that the thread waited for. */
static void follow_host(path_search *s, event_ref launch) {
  extend(s, RL_PATH_LAUNCHES, launch->start_ns);
  size_t next = calls_until(&s->waiting, thread_key(launch), s->covered_from_ns);
  uint32_t found = NO_OPERATION;
  for (; next > 0 && found == NO_OPERATION && s->covered_from_ns > s->index->start_ns; next--) {
    const ordered_call *waiting = &s->waiting.items[next - 1];
    if (waiting->key != thread_key(launch)) break;
    extend_host(s, waiting->key, waiting->time_ns);
    found = awaited_operation(s, waiting->call);
    if (found != NO_OPERATION) extend(s, RL_PATH_SYNCHRONIZATION, s->index->operations[found]->end_ns);
  }
  if (found == NO_OPERATION) extend_host(s, thread_key(launch), s->index->start_ns);
  s->operation = found;
}

static void follow_device(path_search *s, uint32_t predecessor) {
  event_ref before = s->index->operations[predecessor], after = s->index->operations[s->operation];
  bool graph = before->graph_node != 0 || after->graph_node != 0;
  bool known = graph || after->start_ns - before->end_ns <= RL_DEVICE_LATENCY_MAX_NS;
  extend(s, known ? RL_PATH_DEVICE_LATENCY : RL_PATH_UNKNOWN, before->end_ns);
  s->operation = predecessor;
}

/* Moves to the predecessor of the current operation, and extends the path back to the predecessor's end. */
static void step_back(path_search *s) {
  event_ref operation = s->index->operations[s->operation], launch = s->index->launched_by[s->operation];
  bool inferred;
  uint32_t predecessor = find_predecessor(s, &inferred);
  if (operation->kind == RL_ACTIVITY_CPU_SPAN) { /* a CPU span runs on the host */
    extend(s, RL_PATH_HOST_WORK, predecessor != NO_OPERATION ? s->index->operations[predecessor]->end_ns : s->index->start_ns);
    s->operation = predecessor;
  } else if (predecessor != NO_OPERATION && (launch == NULL || launch->end_ns <= s->index->operations[predecessor]->end_ns)) {
    s->path->inferred_count += inferred;
    follow_device(s, predecessor);
  } else if (launch != NULL) {
    follow_host(s, launch);
  } else {
    extend(s, RL_PATH_UNKNOWN, s->index->start_ns);
    s->operation = NO_OPERATION;
  }
}

static int compare_times(const void *left, const void *right) {
  const rl_path_operations *a = left, *b = right;
  if (a->time_ns != b->time_ns) return COMPARE(b->time_ns, a->time_ns);
  return COMPARE(a->name, b->name);
}

static void follow_path(path_search *s) {
  size_t count = s->index->operation_count;
  if (count == 0) return;
  s->covered_from_ns = s->index->end_ns;
  s->operation = s->by_end[count - 1].operation;
  while (s->operation != NO_OPERATION) {
    add_operation(s);
    if (s->covered_from_ns <= s->index->start_ns) break;
    step_back(s);
  }
  qsort(s->path->names, s->path->name_count, sizeof *s->path->names, compare_times);
}

int rl_critical_path_compute(const rl_trace_index *index, rl_critical_path *path, rl_error *err) {
  *path = (rl_critical_path){0};
  path_search s = {.index = index, .path = path};
  int rc = prepare(&s, err);
  if (rc == 0) follow_path(&s);
  free(s.by_stream);
  free(s.by_end);
  free(s.previous);
  free(s.waiting.items);
  free(s.stream_waits.items);
  free(s.event_records.items);
  free(s.launches);
  free(s.row_of_name);
  if (rc < 0) rl_critical_path_clear(path);
  return rc;
}

void rl_critical_path_clear(rl_critical_path *path) {
  free(path->names);
  free(path->operation_ns);
  *path = (rl_critical_path){0};
}

const char *rl_critical_path_reason(const rl_trace_index *index, const rl_time_classes *classes) {
  if (index->events->incomplete_reason != NULL) return index->events->incomplete_reason;
  return classes->unrecorded_launch_count > 0 ? "launch calls have no recorded operation" : NULL;
}

size_t rl_critical_path_metrics(const rl_critical_path *path, const rl_time_classes *classes, const char *reason,
                                rl_metric_value metrics[RL_PATH_METRIC_COUNT]) {
  int64_t window_ns = classes->end_ns - classes->start_ns;
  double factor = reason == NULL && window_ns > 0 ? 100.0 / (double)window_ns : NAN;
  double host_ns =
      (double)(path->part_ns[RL_PATH_LAUNCHES] + path->part_ns[RL_PATH_HOST_WORK] + path->part_ns[RL_PATH_SYNCHRONIZATION]);
  metrics[0] = (rl_metric_value){"timeline__critical_path_host_pct", factor * host_ns, reason};
  metrics[1] = (rl_metric_value){"timeline__critical_path_kernels_pct", factor * (double)path->part_ns[RL_PATH_KERNELS], reason};
  return RL_PATH_METRIC_COUNT;
}
