/* Calls of one thread are in the order of their starts, so the end of the last counted call tells whether a call is nested. The
 * first RL_MAX_THREADS threads are added up during one walk over the calls. The calls of all further threads are first sorted by
 * thread, because their calls overlap although none is nested in another. */
#include "analyze/thread_times.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "model/records.h"

typedef struct call_list {
  const rl_trace_event **items;
  size_t count, capacity;
} call_list;

static void free_calls(call_list *calls) { free((void *)calls->items); }

/* Returns the row of a thread. *last: index of the row that the previous call returned. That row is tried first, because adjacent
 * calls mostly have the same thread. */
static rl_thread_time *find_thread(rl_thread_times *times, uint32_t thread, size_t *last) {
  if (*last < times->count && times->items[*last].thread == thread) return &times->items[*last];
  for (*last = 0; *last < times->count; (*last)++)
    if (times->items[*last].thread == thread) return &times->items[*last];
  bool is_over_limit = times->count >= RL_MAX_THREADS;
  if (is_over_limit) *last = RL_MAX_THREADS;
  times->items[*last].thread = is_over_limit ? 0 : thread;
  times->count = *last + 1;
  return &times->items[*last];
}

static rl_call_time *time_of_call(const rl_trace_index *index, const rl_trace_event *call, rl_thread_time *thread) {
  if (rl_trace_call_is(index, call, RL_CALL_LAUNCHES)) return &thread->launches;
  if (rl_trace_call_is(index, call, RL_CALL_SYNCHRONIZES)) return &thread->synchronizations;
  return rl_trace_call_is(index, call, RL_CALL_COPIES) ? &thread->blocking_copies : NULL;
}

static void add_call(const rl_trace_index *index, const rl_trace_event *call, rl_thread_time *thread) {
  rl_call_time *time = time_of_call(index, call, thread);
  if (time == NULL || call->start_ns < thread->last_end_ns) return;
  time->count++;
  time->time_ns += call->end_ns - call->start_ns;
  thread->last_end_ns = call->end_ns;
}

static int add_further_call(const rl_trace_event *call, call_list *calls, rl_error *err) {
  if (rl_array_reserve(&calls->items, calls->count, &calls->capacity, sizeof *calls->items, err) < 0) return -1;
  calls->items[calls->count++] = call;
  return 0;
}

/* Adds the API calls of the first RL_MAX_THREADS threads, and lists those of further threads. */
static int add_calls(const rl_trace_index *index, rl_thread_times *times, call_list *further_calls, rl_error *err) {
  size_t last = 0;
  for (size_t i = 0; i < index->events->count; i++) {
    const rl_trace_event *event = &index->items[i];
    if (event->kind != RL_ACTIVITY_RUNTIME && event->kind != RL_ACTIVITY_DRIVER) continue;
    rl_thread_time *thread = find_thread(times, event->thread, &last);
    if (last < RL_MAX_THREADS) add_call(index, event, thread);
    else if (add_further_call(event, further_calls, err) < 0) return -1;
  }
  return 0;
}

/* Orders calls by thread, then as in the index. */
static int compare_calls(const void *a, const void *b) {
  const rl_trace_event *x = *(const rl_trace_event *const *)a, *y = *(const rl_trace_event *const *)b;
  if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
  return (x > y) - (x < y);
}

/* Adds the calls of all further threads to one row. */
static void add_further_calls(const rl_trace_index *index, const call_list *calls, rl_thread_time *row) {
  if (calls->count > 0) qsort((void *)calls->items, calls->count, sizeof *calls->items, compare_calls);
  for (size_t i = 0; i < calls->count; i++) {
    if (i > 0 && calls->items[i]->thread != calls->items[i - 1]->thread) row->last_end_ns = INT64_MIN;
    add_call(index, calls->items[i], row);
  }
}

int rl_thread_times_compute(const rl_trace_index *index, const rl_time_classes *classes, rl_thread_times *times, rl_error *err) {
  RL_CLEANUP(free_calls) call_list further_calls = {0};
  rl_thread_times result = {0};
  size_t last = 0;
  for (size_t i = 0; i <= RL_MAX_THREADS; i++) result.items[i].last_end_ns = INT64_MIN;
  if (add_calls(index, &result, &further_calls, err) < 0) return -1;
  add_further_calls(index, &further_calls, &result.items[RL_MAX_THREADS]);
  for (size_t i = 0; i < classes->idle_count; i++) {
    const rl_idle_interval *idle = &classes->idle[i];
    if (idle->has_launch_call) find_thread(&result, idle->launch_thread, &last)->idle_ns += idle->end_ns - idle->start_ns;
  }
  *times = result;
  return 0;
}
