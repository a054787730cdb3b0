/* Sorts the indices of events by 64-bit keys with a stable radix sort, 11 bits at a time, so that a request can build the index
 * of a trace with 1,000,000 events. */
#include "analyze/trace_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/records.h"

typedef const rl_trace_event *event_ref;
typedef struct keyed_event {
  uint64_t key;
  uint32_t event;    /* index into the listed events */
  uint32_t position; /* position of the event before the sort */
} keyed_event;

enum { DIGIT_BITS = 11, DIGIT_VALUES = 1 << DIGIT_BITS };

RL_DEFINE_CLEANUP(free_keyed_events, keyed_event *, free, NULL)

static int out_of_memory(rl_error *err) { return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the events of a trace"); }

bool rl_trace_is_copy(const rl_trace_event *event) {
  return event->kind == RL_ACTIVITY_MEMCPY || event->kind == RL_ACTIVITY_MEMSET;
}

rl_trace_copy rl_trace_copy_named(const char *name) {
  static const char prefix[] = "memcpy "; /* before a direction such as "HtoD": from host to device */
  const char *direction = name + sizeof prefix - 1;
  if (strncmp(name, prefix, sizeof prefix - 1) != 0 || strlen(direction) != 4) return RL_TRACE_OTHER_COPY;
  return direction[0] == 'H' || direction[3] == 'H' ? RL_TRACE_HOST_COPY : RL_TRACE_DEVICE_COPY;
}

rl_trace_copy rl_trace_copy_of(const rl_trace_index *index, const rl_trace_event *operation) {
  if (operation->kind == RL_ACTIVITY_MEMSET) return RL_TRACE_DEVICE_COPY;
  return operation->kind == RL_ACTIVITY_MEMCPY ? rl_trace_copy_named(index->events->names[operation->name]) : RL_TRACE_NO_COPY;
}

static bool is_operation(event_ref event) {
  return event->kind == RL_ACTIVITY_KERNEL || event->kind == RL_ACTIVITY_CPU_SPAN || rl_trace_is_copy(event);
}
static bool is_call(event_ref event) { return event->kind == RL_ACTIVITY_RUNTIME || event->kind == RL_ACTIVITY_DRIVER; }

bool rl_trace_call_is(const rl_trace_index *index, const rl_trace_event *call, unsigned char kind) {
  return (index->call_kinds[call->name] & kind & ~index->lacked_kinds[call - index->items]) != 0;
}

/* Returns the RL_CALL_… bits of an API call. name: CUPTI's name, such as cudaGraphLaunch_v10000 or cuMemcpyHtoD_v2. */
static unsigned char call_kinds_of(const char *name) {
  bool asynchronous = strstr(name, "Async") != NULL;
  bool copies = strncmp(name, "cudaMemcpy", 10) == 0 || strncmp(name, "cuMemcpy", 8) == 0;
  bool launches = strstr(name, "LaunchKernel") != NULL || strstr(name, "LaunchCooperativeKernel") != NULL ||
                  strstr(name, "GraphLaunch") != NULL;
  return (unsigned char)((launches ? RL_CALL_LAUNCHES : 0) | (strstr(name, "Synchronize") != NULL ? RL_CALL_SYNCHRONIZES : 0) |
                         (copies && !asynchronous ? RL_CALL_COPIES : 0) |
                         (strstr(name, "StreamWaitEvent") != NULL ? RL_CALL_WAITS_FOR_EVENT : 0) |
                         (strstr(name, "EventRecord") != NULL ? RL_CALL_RECORDS_EVENT : 0) |
                         (strstr(name, "StreamBeginCapture") != NULL ? RL_CALL_BEGINS_CAPTURE : 0) |
                         (strstr(name, "StreamEndCapture") != NULL ? RL_CALL_ENDS_CAPTURE : 0));
}

/* --- sorting ----------------------------------------------------------------------------------------------------------- */

/* Copies the items to `sorted`, ordered by the digit at `shift`. Returns false, and copies nothing, if all have the same
 * digit. */
static bool sort_by_digit(const keyed_event *items, keyed_event *sorted, size_t count, int shift) {
  size_t ends[DIGIT_VALUES + 1] = {0};
  for (size_t i = 0; i < count; i++) ends[((items[i].key >> shift) & (DIGIT_VALUES - 1)) + 1]++;
  if (ends[((items[0].key >> shift) & (DIGIT_VALUES - 1)) + 1] == count) return false;
  for (int digit = 0; digit < DIGIT_VALUES; digit++) ends[digit + 1] += ends[digit];
  for (size_t i = 0; i < count; i++) sorted[ends[(items[i].key >> shift) & (DIGIT_VALUES - 1)]++] = items[i];
  return true;
}

/* Sorts by key. Equal keys keep their order. */
static int sort_by_key(keyed_event *items, size_t count, rl_error *err) {
  RL_CLEANUP(free_keyed_events) keyed_event *scratch = malloc((count + 1) * sizeof *scratch);
  if (scratch == NULL) return out_of_memory(err);
  keyed_event *from = items, *to = scratch;
  for (int shift = 0; shift < 64 && count > 0; shift += DIGIT_BITS) {
    if (!sort_by_digit(from, to, count, shift)) continue;
    keyed_event *moved = from;
    from = to;
    to = moved;
  }
  if (from != items) memcpy(items, from, count * sizeof *items);
  return 0;
}

static uint64_t start_key(event_ref event) { return (uint64_t)event->start_ns ^ (UINT64_C(1) << 63); }
static uint64_t end_key(event_ref event) { return ~((uint64_t)event->end_ns ^ (UINT64_C(1) << 63)); }
static uint64_t correlation_key(event_ref event) { return event->correlation; }

static int sort_with(event_ref events, keyed_event *items, size_t count, uint64_t (*key)(event_ref), rl_error *err) {
  for (size_t i = 0; i < count; i++) items[i].key = key(&events[items[i].event]);
  return sort_by_key(items, count, err);
}

/* Lists the events that the filter accepts, in their order. */
static keyed_event *list_events(event_ref events, size_t event_count, bool (*filter)(event_ref), size_t *count, rl_error *err) {
  *count = 0;
  for (size_t i = 0; i < event_count; i++) *count += filter(&events[i]);
  keyed_event *list = malloc((*count + 1) * sizeof *list), *next = list;
  if (list == NULL) out_of_memory(err);
  for (size_t i = 0; list != NULL && i < event_count; i++)
    if (filter(&events[i])) *next++ = (keyed_event){.event = (uint32_t)i};
  return list;
}

static bool is_any(event_ref event) { return event != NULL; }

/* Copies the events in order of start, so that the later steps read memory in order. */
static int sort_events(const rl_trace_events *events, rl_trace_index *index, rl_error *err) {
  size_t count;
  RL_CLEANUP(free_keyed_events) keyed_event *list = list_events(events->items, events->count, is_any, &count, err);
  if (list == NULL || sort_with(events->items, list, count, start_key, err) < 0) return -1;
  index->items = malloc((count + 1) * sizeof *index->items);
  if (index->items == NULL) return out_of_memory(err);
  for (size_t i = 0; i < count; i++) index->items[i] = events->items[list[i].event];
  return 0;
}

static event_ref *events_of(event_ref events, const keyed_event *list, size_t count, rl_error *err) {
  event_ref *found = malloc((count + 1) * sizeof *found);
  if (found == NULL) out_of_memory(err);
  for (size_t i = 0; found != NULL && i < count; i++) found[i] = &events[list[i].event];
  return found;
}

/* --- the index --------------------------------------------------------------------------------------------------------- */

static int index_calls(rl_trace_index *index, rl_error *err) {
  RL_CLEANUP(free_keyed_events)
  keyed_event *list = list_events(index->items, index->events->count, is_call, &index->call_count, err);
  if (list == NULL || sort_with(index->items, list, index->call_count, correlation_key, err) < 0) return -1;
  index->has_operation = calloc(index->call_count + 1, sizeof *index->has_operation);
  if (index->has_operation == NULL) return out_of_memory(err);
  return (index->calls = events_of(index->items, list, index->call_count, err)) == NULL ? -1 : 0;
}

/* Marks that an operation has the call's correlation id. */
static void join_call(rl_trace_index *index, size_t call, event_ref operation) {
  index->has_operation[call] = true;
  if (rl_trace_copy_of(index, operation) == RL_TRACE_DEVICE_COPY)
    index->lacked_kinds[index->calls[call] - index->items] |= RL_CALL_COPIES;
}

/* Joins operations and calls. list: the operations by correlation, with their position in index->operations. */
static void join_calls(rl_trace_index *index, const keyed_event *list) {
  size_t call = 0;
  for (size_t i = 0; i < index->operation_count; i++) {
    event_ref operation = &index->items[list[i].event];
    uint32_t correlation = operation->correlation;
    while (call < index->call_count && index->calls[call]->correlation < correlation) call++;
    for (size_t k = call; k < index->call_count && !index->has_operation[k] && index->calls[k]->correlation == correlation; k++)
      join_call(index, k, operation);
    if (correlation != 0 && call < index->call_count && index->calls[call]->correlation == correlation)
      index->launched_by[list[i].position] = index->calls[call];
  }
}

static int index_operations(rl_trace_index *index, rl_error *err) {
  RL_CLEANUP(free_keyed_events)
  keyed_event *list = list_events(index->items, index->events->count, is_operation, &index->operation_count, err);
  size_t count = index->operation_count;
  if (list == NULL || (index->operations = events_of(index->items, list, count, err)) == NULL) return -1;
  index->launched_by = calloc(count + 1, sizeof *index->launched_by);
  if (index->launched_by == NULL) return out_of_memory(err);
  for (size_t i = 0; i < count; i++) list[i].position = (uint32_t)i;
  if (sort_with(index->items, list, count, correlation_key, err) < 0) return -1;
  join_calls(index, list);
  index->start_ns = index->end_ns = count > 0 ? index->operations[0]->start_ns : 0;
  for (size_t i = 0; i < count; i++)
    if (index->operations[i]->end_ns > index->end_ns) index->end_ns = index->operations[i]->end_ns;
  return 0;
}

/* --- stream capture ---------------------------------------------------------------------------------------------------- */

typedef struct capture { /* overlapping captures of a thread: from the first begin to the last end
                          */
  uint32_t thread;
  int64_t start_ns, end_ns;
} capture;

RL_DEFINE_CLEANUP(free_captures, capture *, free, NULL)
RL_DEFINE_CLEANUP(free_event_refs, event_ref *, free, NULL)

static int compare_calls(const void *left, const void *right) {
  event_ref a = *(const event_ref *)left, b = *(const event_ref *)right;
  if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
  return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static bool is_capture_call(const rl_trace_index *index, event_ref call) {
  return rl_trace_call_is(index, call, RL_CALL_BEGINS_CAPTURE | RL_CALL_ENDS_CAPTURE);
}

static size_t count_capture_calls(const rl_trace_index *index) {
  size_t count = 0;
  for (size_t i = 0; i < index->call_count; i++) count += is_capture_call(index, index->calls[i]);
  return count;
}

/* Lists the captures by thread, then by time. A capture that its thread does not end is ignored. `calls` and `captures` have room
 * for all capture calls. */
static size_t list_captures(const rl_trace_index *index, event_ref *calls, capture *captures) {
  size_t call_count = 0, count = 0, depth = 0;
  for (size_t i = 0; i < index->call_count; i++)
    if (is_capture_call(index, index->calls[i])) calls[call_count++] = index->calls[i];
  qsort((void *)calls, call_count, sizeof *calls, compare_calls);
  for (size_t i = 0; i < call_count; i++) {
    if (i > 0 && calls[i - 1]->thread != calls[i]->thread) depth = 0;
    if (rl_trace_call_is(index, calls[i], RL_CALL_BEGINS_CAPTURE)) {
      if (depth++ == 0) captures[count] = (capture){calls[i]->thread, calls[i]->start_ns, 0};
    } else if (depth > 0 && --depth == 0) {
      captures[count++].end_ns = calls[i]->end_ns;
    }
  }
  return count;
}

static bool is_in_a_capture(event_ref call, const capture *captures, size_t count) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    const capture *item = &captures[middle];
    if (item->thread > call->thread || (item->thread == call->thread && item->end_ns >= call->end_ns)) high = middle;
    else low = middle + 1;
  }
  return low < count && captures[low].thread == call->thread && captures[low].start_ns <= call->start_ns;
}

/* Marks the launch calls inside a capture that have no operation: they were added to a graph. A launch call with an operation
 * went to a stream that is not captured, and was executed. */
static int mark_captured_launches(rl_trace_index *index, rl_error *err) {
  size_t capture_calls = count_capture_calls(index);
  if (capture_calls == 0) return 0;
  RL_CLEANUP(free_event_refs) event_ref *calls = malloc(capture_calls * sizeof *calls);
  RL_CLEANUP(free_captures) capture *captures = malloc(capture_calls * sizeof *captures);
  if (calls == NULL || captures == NULL) return out_of_memory(err);
  size_t count = list_captures(index, calls, captures);
  for (size_t i = 0; i < index->call_count; i++)
    if (!index->has_operation[i] && rl_trace_call_is(index, index->calls[i], RL_CALL_LAUNCHES) &&
        is_in_a_capture(index->calls[i], captures, count))
      index->lacked_kinds[index->calls[i] - index->items] |= RL_CALL_LAUNCHES;
  return 0;
}

/* --- overheads --------------------------------------------------------------------------------------------------------- */

static bool is_overhead(event_ref event) { return event->kind == RL_ACTIVITY_OVERHEAD; }

/* Returns the first call with the correlation id; NULL: there is none. */
static event_ref find_call(const rl_trace_index *index, uint32_t correlation) {
  size_t low = 0, high = index->call_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (index->calls[middle]->correlation >= correlation) high = middle;
    else low = middle + 1;
  }
  bool found = correlation != 0 && low < index->call_count && index->calls[low]->correlation == correlation;
  return found ? index->calls[low] : NULL;
}

static int index_overheads(rl_trace_index *index, rl_error *err) {
  RL_CLEANUP(free_keyed_events)
  keyed_event *list = list_events(index->items, index->events->count, is_overhead, &index->overhead_count, err);
  if (list == NULL) return -1;
  index->overheads = malloc((index->overhead_count + 1) * sizeof *index->overheads);
  if (index->overheads == NULL) return out_of_memory(err);
  for (size_t i = 0; i < index->overhead_count; i++) {
    event_ref event = &index->items[list[i].event];
    rl_overhead_cause cause = rl_overhead_cause_of(index->events->names[event->name]);
    index->overheads[i] = (rl_trace_overhead){event, find_call(index, event->correlation), cause};
  }
  return 0;
}

static int check_events(const rl_trace_events *events, rl_error *err) {
  for (size_t i = 0; i < events->count; i++) {
    const rl_trace_event *event = &events->items[i];
    if (event->end_ns < event->start_ns) return rl_fail(err, RL_INPUT, 0, "event %zu of the trace ends before it starts", i);
    if (event->name >= events->name_count) return rl_fail(err, RL_INPUT, 0, "event %zu of the trace has no name", i);
  }
  return 0;
}

int rl_trace_index_build(const rl_trace_events *events, rl_trace_index *index, rl_error *err) {
  *index = (rl_trace_index){.events = events};
  if (check_events(events, err) < 0) return -1;
  index->call_kinds = malloc(events->name_count + 1);
  index->lacked_kinds = calloc(events->count + 1, sizeof *index->lacked_kinds);
  if (index->call_kinds == NULL || index->lacked_kinds == NULL) {
    rl_trace_index_clear(index);
    return out_of_memory(err);
  }
  for (size_t i = 0; i < events->name_count; i++) index->call_kinds[i] = call_kinds_of(events->names[i]);
  if (sort_events(events, index, err) == 0 && index_calls(index, err) == 0 && index_operations(index, err) == 0 &&
      mark_captured_launches(index, err) == 0 && index_overheads(index, err) == 0)
    return 0;
  rl_trace_index_clear(index);
  return -1;
}

void rl_trace_index_clear(rl_trace_index *index) {
  free(index->items);
  free(index->call_kinds);
  free((void *)index->operations);
  free((void *)index->launched_by);
  free((void *)index->calls);
  free(index->has_operation);
  free(index->lacked_kinds);
  free(index->overheads);
  *index = (rl_trace_index){0};
}

static bool is_range(event_ref event) { return event->kind == RL_ACTIVITY_NVTX_RANGE; }

int rl_trace_index_ranges(const rl_trace_index *index, const rl_trace_event ***ranges, size_t *count, rl_error *err) {
  RL_CLEANUP(free_keyed_events) keyed_event *list = list_events(index->items, index->events->count, is_range, count, err);
  if (list == NULL || sort_with(index->items, list, *count, end_key, err) < 0 ||
      sort_with(index->items, list, *count, start_key, err) < 0)
    return -1;
  return (*ranges = events_of(index->items, list, *count, err)) == NULL ? -1 : 0;
}
