/* Merges the ends of launch calls with the starts of operations in order of time, and sums the time at each queue depth. */
#include "analyze/launch_queue.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct queued { /* an operation that waits from launched_ns to started_ns, clipped to the window */
  int64_t launched_ns, started_ns;
  size_t stream; /* index into rl_launch_queue.streams */
} queued;

typedef struct depth_times {
  int64_t *ns_at_depth; /* [operation_count + 1] */
  int64_t depth, since_ns;
  rl_queue_depth *result;
} depth_times;

typedef struct queue_state {
  const rl_trace_index *index;
  const rl_time_classes *classes;
  rl_launch_queue *queue;
  queued *by_start, *by_launch; /* operations that wait */
  size_t count;
  int64_t *ns_at_depth; /* time at each depth: of all streams, then of each stream */
  depth_times *streams; /* depth times of each stream */
  depth_times total;
  size_t next_idle, next_slice;
} queue_state;

static int out_of_memory(rl_error *err) { return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the launch queue"); }

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* --- streams ----------------------------------------------------------------------------------------------------------- */

static int compare_streams(const void *left, const void *right) {
  const rl_queue_depth *a = left, *b = right;
  return (a->stream > b->stream) - (a->stream < b->stream);
}

static rl_queue_depth *find_stream(const rl_launch_queue *queue, uint32_t stream) {
  const rl_queue_depth key = {.stream = stream};
  return bsearch(&key, queue->streams, queue->stream_count, sizeof key, compare_streams);
}

/* Lists the streams of the operations, sorted by number. Before sorting, adjacent operations of one stream make a single entry,
 * so that the list is short. */
static int list_streams(const rl_trace_index *index, rl_launch_queue *queue, rl_error *err) {
  queue->streams = malloc((index->operation_count + 1) * sizeof *queue->streams);
  if (queue->streams == NULL) return out_of_memory(err);
  size_t count = 0;
  for (size_t i = 0; i < index->operation_count; i++)
    if (count == 0 || queue->streams[count - 1].stream != index->operations[i]->stream)
      queue->streams[count++] = (rl_queue_depth){.stream = index->operations[i]->stream};
  qsort(queue->streams, count, sizeof *queue->streams, compare_streams);
  for (size_t i = 0; i < count; i++)
    if (i == 0 || queue->streams[i].stream != queue->streams[queue->stream_count - 1].stream)
      queue->streams[queue->stream_count++] = queue->streams[i];
  return 0;
}

/* --- waiting operations ------------------------------------------------------------------------------------------------ */

static int compare_launches(const void *left, const void *right) {
  const queued *a = left, *b = right;
  return (a->launched_ns > b->launched_ns) - (a->launched_ns < b->launched_ns);
}

static void add_operation(queue_state *s, size_t i) {
  const rl_trace_event *operation = s->index->operations[i], *call = s->index->launched_by[i];
  rl_queue_depth *stream = find_stream(s->queue, operation->stream);
  if (call == NULL) {
    s->queue->unmatched_operation_count++;
    return;
  }
  stream->operation_count++;
  s->queue->total.operation_count++;
  int64_t launched_ns = larger(call->end_ns, s->index->start_ns);
  if (launched_ns < operation->start_ns)
    s->by_start[s->count++] = (queued){launched_ns, operation->start_ns, (size_t)(stream - s->queue->streams)};
}

static int list_waiting(queue_state *s, rl_error *err) {
  size_t most = s->index->operation_count + 1;
  s->by_start = malloc(most * sizeof *s->by_start);
  s->by_launch = malloc(most * sizeof *s->by_launch);
  s->ns_at_depth = calloc(2 * most + s->queue->stream_count, sizeof *s->ns_at_depth);
  s->streams = calloc(s->queue->stream_count + 1, sizeof *s->streams);
  if (s->by_start == NULL || s->by_launch == NULL || s->ns_at_depth == NULL || s->streams == NULL) return out_of_memory(err);
  for (size_t i = 0; i < s->index->operation_count; i++) add_operation(s, i);
  memcpy(s->by_launch, s->by_start, s->count * sizeof *s->by_start);
  qsort(s->by_launch, s->count, sizeof *s->by_launch, compare_launches);
  return 0;
}

/* Gives each queue (the total and each stream) an array with an item for each depth from 0 to the queue's number of
 * operations. */
static void start_depths(queue_state *s) {
  int64_t *next = s->ns_at_depth, start_ns = s->index->start_ns;
  s->total = (depth_times){next, 0, start_ns, &s->queue->total};
  next += s->queue->total.operation_count + 1;
  for (size_t i = 0; i < s->queue->stream_count; i++) {
    s->streams[i] = (depth_times){next, 0, start_ns, &s->queue->streams[i]};
    next += s->queue->streams[i].operation_count + 1;
  }
}

/* --- time at each depth ------------------------------------------------------------------------------------------------ */

/* Returns how long the device is idle for a known cause between from_ns and to_ns, in which no operation waits. Idle time of
 * unknown cause is excluded, because unrecorded work may be waiting. Each call must begin at or after the end of the previous
 * one. */
static int64_t idle_within(queue_state *s, int64_t from_ns, int64_t to_ns) {
  int64_t sum_ns = 0;
  const rl_idle_interval *idle = s->classes->idle;
  while (s->next_idle < s->classes->idle_count && idle[s->next_idle].end_ns <= from_ns) s->next_idle++;
  for (size_t i = s->next_idle; i < s->classes->idle_count && idle[i].start_ns < to_ns; i++)
    if (idle[i].time_class != RL_TIME_IDLE_UNKNOWN) sum_ns += smaller(idle[i].end_ns, to_ns) - larger(idle[i].start_ns, from_ns);
  return sum_ns;
}

static void add_to_slices(queue_state *s, int64_t from_ns, int64_t to_ns, int64_t depth) {
  const int64_t *starts_ns = s->queue->slice_start_ns;
  while (from_ns < to_ns) {
    while (starts_ns[s->next_slice + 1] <= from_ns) s->next_slice++;
    int64_t end_ns = smaller(starts_ns[s->next_slice + 1], to_ns);
    s->queue->depth_ns[s->next_slice] += depth * (end_ns - from_ns);
    from_ns = end_ns;
  }
}

/* Adds the time since the last change of the depth, then changes the depth. */
static void change_depth(depth_times *times, int64_t time_ns, int64_t change) {
  times->ns_at_depth[times->depth] += time_ns - times->since_ns;
  times->since_ns = time_ns;
  times->depth += change;
}

static void change_total(queue_state *s, int64_t time_ns, int64_t change) {
  if (s->total.depth == 0) s->queue->empty_idle_ns += idle_within(s, s->total.since_ns, time_ns);
  add_to_slices(s, s->total.since_ns, time_ns, s->total.depth);
  change_depth(&s->total, time_ns, change);
}

/* Processes the ends of launch calls and the starts of operations in order of time; at equal times, the start first. */
static void merge(queue_state *s) {
  size_t launched = 0, started = 0;
  while (started < s->count) {
    bool launches = launched < s->count && s->by_launch[launched].launched_ns < s->by_start[started].started_ns;
    const queued *next = launches ? &s->by_launch[launched++] : &s->by_start[started++];
    int64_t time_ns = launches ? next->launched_ns : next->started_ns, change = launches ? 1 : -1;
    change_total(s, time_ns, change);
    change_depth(&s->streams[next->stream], time_ns, change);
  }
}

static void summarize(depth_times *times, int64_t window_ns) {
  rl_queue_depth *result = times->result;
  int64_t most = (int64_t)result->operation_count, below_ns = 0;
  bool found = false;
  result->empty_ns = times->ns_at_depth[0];
  for (int64_t depth = most; depth >= 0; depth--)
    if (times->ns_at_depth[depth] > 0) result->minimum = depth;
  for (int64_t depth = 0; depth <= most; depth++) {
    if (times->ns_at_depth[depth] > 0) result->maximum = depth;
    below_ns += times->ns_at_depth[depth];
    if (!found && 2 * below_ns >= window_ns) result->median = depth, found = true;
  }
}

static void compute(queue_state *s) {
  int64_t window_ns = s->index->end_ns - s->index->start_ns;
  for (int i = 0; i <= RL_QUEUE_SLICES; i++)
    s->queue->slice_start_ns[i] =
        s->index->start_ns + window_ns / RL_QUEUE_SLICES * i + window_ns % RL_QUEUE_SLICES * i / RL_QUEUE_SLICES;
  start_depths(s);
  merge(s);
  change_total(s, s->index->end_ns, 0);
  summarize(&s->total, window_ns);
  for (size_t i = 0; i < s->queue->stream_count; i++) {
    change_depth(&s->streams[i], s->index->end_ns, 0);
    summarize(&s->streams[i], window_ns);
  }
}

int rl_launch_queue_compute(const rl_trace_index *index, const rl_time_classes *classes, rl_launch_queue *queue, rl_error *err) {
  *queue = (rl_launch_queue){0};
  queue_state s = {.index = index, .classes = classes, .queue = queue};
  int rc = list_streams(index, queue, err) < 0 || list_waiting(&s, err) < 0 ? -1 : 0;
  if (rc == 0) compute(&s);
  free(s.by_start);
  free(s.by_launch);
  free(s.ns_at_depth);
  free(s.streams);
  if (rc < 0) rl_launch_queue_clear(queue);
  return rc;
}

void rl_launch_queue_clear(rl_launch_queue *queue) {
  free(queue->streams);
  *queue = (rl_launch_queue){0};
}

const char *rl_launch_queue_reason(const rl_trace_index *index, const rl_launch_queue *queue) {
  if (index->events->incomplete_reason != NULL) return index->events->incomplete_reason;
  return queue->total.operation_count == 0 ? "no operation has a recorded launch call" : NULL;
}

size_t rl_launch_queue_metrics(const rl_launch_queue *queue, const rl_time_classes *classes, const char *reason,
                               rl_metric_value metrics[RL_QUEUE_METRIC_COUNT]) {
  int64_t window_ns = classes->end_ns - classes->start_ns;
  bool known = reason == NULL && window_ns > 0;
  metrics[0] = (rl_metric_value){"timeline__queue_depth_median", known ? (double)queue->total.median : NAN, reason};
  metrics[1] = (rl_metric_value){"timeline__queue_empty_idle_pct",
                                 known ? 100.0 * (double)queue->empty_idle_ns / (double)window_ns : NAN, reason};
  return RL_QUEUE_METRIC_COUNT;
}
