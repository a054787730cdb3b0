#include "analyze/thread_times.h"

#include "model/records.h"

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

void rl_thread_times_compute(const rl_trace_index *index, const rl_time_classes *classes, rl_thread_times *times) {
  size_t last = 0;
  *times = (rl_thread_times){0};
  for (size_t i = 0; i <= RL_MAX_THREADS; i++) times->items[i].last_end_ns = INT64_MIN;
  for (size_t i = 0; i < index->events->count; i++) {
    const rl_trace_event *event = &index->items[i];
    if (event->kind == RL_ACTIVITY_RUNTIME || event->kind == RL_ACTIVITY_DRIVER)
      add_call(index, event, find_thread(times, event->thread, &last));
  }
  for (size_t i = 0; i < classes->idle_count; i++) {
    const rl_idle_interval *idle = &classes->idle[i];
    if (idle->has_launch_call) find_thread(times, idle->launch_thread, &last)->idle_ns += idle->end_ns - idle->start_ns;
  }
}
