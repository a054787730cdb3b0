/* GET /runs/{id}/timeline/findings. The reply explains the trace of a run: classes of time, NVTX ranges, phases, the launch
 * queue, the critical path, threads, copies, independent launches, and findings. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/handlers.h"
#include "api/reply.h"
#include "api/report.h"
#include "api/run_timeline.h"
#include "api/server_internal.h"
#include "api/timeline_evidence.h"
#include "base/json_members.h"

enum { MAX_RANGE_NAMES = 256, MAX_STREAMS = 64, MAX_PATH_NAMES = 64 };

/* --- JSON -------------------------------------------------------------------------------------------------------------- */

static void add_classes(cJSON *document, const rl_run_timeline *timeline) {
  const rl_time_classes *classes = &timeline->classes;
  cJSON *array = cJSON_AddArrayToObject(document, "classes");
  double window_ns = (double)(classes->end_ns - classes->start_ns);
  for (int i = 0; i < RL_TIME_CLASS_COUNT; i++) {
    cJSON *item = cJSON_CreateObject();
    bool is_idle = rl_time_class_is_idle((rl_time_class)i);
    cJSON_AddStringToObject(item, "class", rl_time_class_names[i]);
    cJSON_AddNumberToObject(item, "time_ns", (double)classes->class_ns[i]);
    rl_json_add_number(item, "ratio", window_ns > 0 ? (double)classes->class_ns[i] / window_ns : NAN);
    rl_json_add_number(item, "intervals", is_idle ? (double)classes->interval_counts[i] : NAN);
    cJSON_AddItemToObject(item, "longest",
                          is_idle ? rl_timeline_longest_intervals(timeline, (rl_time_class)i) : cJSON_CreateNull());
    cJSON_AddItemToArray(array, item);
  }
}

static int compare_times(const void *left, const void *right) {
  const rl_range_time *a = left, *b = right;
  return (a->time_ns < b->time_ns) - (a->time_ns > b->time_ns);
}

/* Returns the time that a range name must have to be listed. The reply then lists the MAX_RANGE_NAMES names with the longest
 * times. If memory is exhausted, returns INT64_MAX, which no name reaches. */
static int64_t min_listed_ns(const rl_range_times *times) {
  if (times->count <= MAX_RANGE_NAMES) return 0;
  rl_range_time *sorted = malloc(times->count * sizeof *sorted);
  if (sorted == NULL) return INT64_MAX;
  memcpy(sorted, times->items, times->count * sizeof *sorted);
  qsort(sorted, times->count, sizeof *sorted, compare_times);
  int64_t least_ns = sorted[MAX_RANGE_NAMES - 1].time_ns;
  free(sorted);
  return least_ns;
}

static cJSON *class_times_json(const int64_t class_ns[RL_TIME_CLASS_COUNT]) {
  cJSON *object = cJSON_CreateObject();
  for (int i = 0; i < RL_TIME_CLASS_COUNT; i++) cJSON_AddNumberToObject(object, rl_time_class_names[i], (double)class_ns[i]);
  return object;
}

static void add_totals(cJSON *object, const rl_run_timeline *timeline, const int64_t totals[RL_OPERATION_TOTAL_COUNT]) {
  for (int i = 0; i < RL_OPERATION_TOTAL_COUNT; i++) {
    const bool is_unknown = (i == RL_TOTAL_CRITICAL_PATH_NS && timeline->path_reason != NULL) ||
                            (i == RL_TOTAL_COPIES_BYTES && totals[RL_TOTAL_UNSIZED_COPIES] > 0);
    rl_json_add_number(object, rl_operation_total_names[i], is_unknown ? NAN : (double)totals[i]);
  }
}

static cJSON *range_json(const char *name, const rl_range_time *range, const rl_run_timeline *timeline) {
  cJSON *object = cJSON_CreateObject();
  double window_ns = (double)(timeline->classes.end_ns - timeline->classes.start_ns);
  rl_json_add_text(object, "name", name);
  cJSON_AddNumberToObject(object, "depth", range->depth);
  cJSON_AddNumberToObject(object, "ranges", (double)range->range_count);
  cJSON_AddNumberToObject(object, "operations", (double)range->operation_count);
  cJSON_AddNumberToObject(object, "time_ns", (double)range->time_ns);
  cJSON_AddNumberToObject(object, "own_ns", (double)range->own_ns);
  rl_json_add_number(object, "ratio", window_ns > 0 ? (double)range->time_ns / window_ns : NAN);
  rl_json_add_number(object, "projected_ns", name != NULL ? (double)range->projected_ns : NAN);
  rl_json_add_number(object, "host_ns", name != NULL ? (double)range->host_ns : NAN);
  add_totals(object, timeline, range->totals);
  cJSON_AddItemToObject(object, "classes", class_times_json(range->class_ns));
  return object;
}

static void add_ranges(cJSON *document, const rl_run_timeline *timeline) {
  const rl_range_times *times = &timeline->ranges;
  cJSON *array = cJSON_AddArrayToObject(document, "ranges");
  int64_t least_ns = min_listed_ns(times);
  size_t listed = 0;
  for (size_t i = 0; i < times->count && listed < MAX_RANGE_NAMES; i++) {
    const rl_range_time *range = &times->items[i];
    if (range->time_ns < least_ns) continue;
    cJSON_AddItemToArray(array, range_json(timeline->trace.events.names[range->name], range, timeline));
    listed++;
  }
  if (times->count > 0) cJSON_AddItemToArray(array, range_json(NULL, &times->outside, timeline));
  cJSON_AddBoolToObject(document, "ranges_truncated", listed < times->count);
}

static void add_phases(cJSON *document, const rl_run_timeline *timeline) {
  cJSON *array = cJSON_AddArrayToObject(document, "phases");
  const rl_phase_times *phases = &timeline->phases;
  double window_ns = (double)(timeline->classes.end_ns - timeline->classes.start_ns);
  for (size_t i = 0; i < phases->count; i++) {
    const rl_phase_time *phase = &phases->items[i];
    cJSON *object = cJSON_CreateObject();
    rl_json_add_text(object, "phase", phase->phase);
    cJSON_AddNumberToObject(object, "time_ns", (double)phase->time_ns);
    rl_json_add_number(object, "ratio", window_ns > 0 ? (double)phase->time_ns / window_ns : NAN);
    add_totals(object, timeline, phase->totals);
    cJSON_AddItemToObject(object, "classes", class_times_json(phase->class_ns));
    cJSON_AddItemToArray(array, object);
  }
}

static cJSON *queue_depth_json(const rl_queue_depth *depth, int64_t window_ns) {
  cJSON *object = cJSON_CreateObject();
  cJSON_AddNumberToObject(object, "operations", (double)depth->operation_count);
  cJSON_AddNumberToObject(object, "min", (double)depth->minimum);
  cJSON_AddNumberToObject(object, "median", (double)depth->median);
  cJSON_AddNumberToObject(object, "max", (double)depth->maximum);
  rl_json_add_number(object, "empty_ratio", window_ns > 0 ? (double)depth->empty_ns / (double)window_ns : NAN);
  return object;
}

static cJSON *stream_queues_json(const rl_launch_queue *queue, int64_t window_ns) {
  cJSON *array = cJSON_CreateArray();
  for (size_t i = 0; i < queue->stream_count && i < MAX_STREAMS; i++) {
    cJSON *object = queue_depth_json(&queue->streams[i], window_ns);
    cJSON_AddNumberToObject(object, "stream", queue->streams[i].stream);
    cJSON_AddItemToArray(array, object);
  }
  return array;
}

/* Returns the mean depth of the queue in each slice of the window; 0 for a slice without time. */
static cJSON *mean_depths_json(const rl_launch_queue *queue) {
  double means[RL_QUEUE_SLICES];
  for (int i = 0; i < RL_QUEUE_SLICES; i++) {
    int64_t slice_ns = queue->slice_start_ns[i + 1] - queue->slice_start_ns[i];
    means[i] = slice_ns > 0 ? (double)queue->depth_ns[i] / (double)slice_ns : 0;
  }
  return cJSON_CreateDoubleArray(means, RL_QUEUE_SLICES);
}

static void add_queue(cJSON *document, const rl_run_timeline *timeline) {
  static const char *const members[] = {"empty_idle_ns", "total", "streams", "mean_depths", NULL};
  cJSON *object = cJSON_AddObjectToObject(document, "queue");
  const rl_launch_queue *queue = &timeline->queue;
  int64_t window_ns = timeline->classes.end_ns - timeline->classes.start_ns;
  rl_json_add_text(object, "reason", timeline->queue_reason);
  cJSON_AddNumberToObject(object, "unmatched_operations", (double)queue->unmatched_operation_count);
  if (timeline->queue_reason != NULL) {
    rl_json_add_nulls(object, members);
    return;
  }
  cJSON_AddNumberToObject(object, "empty_idle_ns", (double)queue->empty_idle_ns);
  cJSON_AddItemToObject(object, "total", queue_depth_json(&queue->total, window_ns));
  cJSON_AddItemToObject(object, "streams", stream_queues_json(queue, window_ns));
  cJSON_AddItemToObject(object, "mean_depths", mean_depths_json(queue));
}

static cJSON *path_names_json(const rl_trace_events *events, const rl_critical_path *path, double window_ns) {
  cJSON *array = cJSON_CreateArray();
  for (size_t i = 0; i < path->name_count && i < MAX_PATH_NAMES; i++) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "name", events->names[path->names[i].name]);
    cJSON_AddNumberToObject(object, "count", (double)path->names[i].count);
    cJSON_AddNumberToObject(object, "time_ns", (double)path->names[i].time_ns);
    rl_json_add_number(object, "ratio", window_ns > 0 ? (double)path->names[i].time_ns / window_ns : NAN);
    cJSON_AddItemToArray(array, object);
  }
  return array;
}

static void add_path(cJSON *document, const rl_trace_events *events, const rl_run_timeline *timeline) {
  static const char *const members[] = {"operations", "inferred_operations", "parts", "names", NULL};
  cJSON *object = cJSON_AddObjectToObject(document, "critical_path"), *parts;
  const rl_critical_path *path = &timeline->path;
  rl_json_add_text(object, "reason", timeline->path_reason);
  if (timeline->path_reason != NULL) {
    rl_json_add_nulls(object, members);
    return;
  }
  cJSON_AddNumberToObject(object, "operations", (double)path->operation_count);
  cJSON_AddNumberToObject(object, "inferred_operations", (double)path->inferred_count);
  parts = cJSON_AddObjectToObject(object, "parts");
  for (int i = 0; i < RL_PATH_PART_COUNT; i++) cJSON_AddNumberToObject(parts, rl_path_part_names[i], (double)path->part_ns[i]);
  double window_ns = (double)(timeline->classes.end_ns - timeline->classes.start_ns);
  cJSON_AddItemToObject(object, "names", path_names_json(events, path, window_ns));
}

static void add_calls(cJSON *object, const char *member, const rl_call_time *time) {
  cJSON *calls = cJSON_AddObjectToObject(object, member);
  cJSON_AddNumberToObject(calls, "count", (double)time->count);
  cJSON_AddNumberToObject(calls, "time_ns", (double)time->time_ns);
}

static void add_threads(cJSON *document, const rl_thread_times *times) {
  cJSON *array = cJSON_AddArrayToObject(document, "threads");
  for (size_t i = 0; i < times->count; i++) {
    const rl_thread_time *thread = &times->items[i];
    cJSON *object = cJSON_CreateObject();
    rl_json_add_number(object, "thread", thread->thread != 0 ? (double)thread->thread : NAN);
    add_calls(object, "launches", &thread->launches);
    add_calls(object, "synchronizations", &thread->synchronizations);
    add_calls(object, "blocking_copies", &thread->blocking_copies);
    cJSON_AddNumberToObject(object, "idle_ns", (double)thread->idle_ns);
    cJSON_AddItemToArray(array, object);
  }
}

static void add_copies(cJSON *document, const rl_run_timeline *timeline) {
  cJSON *array = cJSON_AddArrayToObject(document, "copies");
  for (size_t i = 0; i < timeline->copy_count; i++) {
    const rl_copy_group *group = &timeline->copies[i];
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "name", group->name);
    rl_json_add_text(object, "source_memory", rl_memory_kind_names[group->source]);
    rl_json_add_text(object, "destination_memory", rl_memory_kind_names[group->destination]);
    cJSON_AddNumberToObject(object, "count", (double)group->count);
    const bool is_sized = group->unsized_count == 0, has_rate = is_sized && group->time_ns > 0;
    rl_json_add_number(object, "bytes", is_sized ? (double)group->bytes : NAN);
    cJSON_AddNumberToObject(object, "time_ns", (double)group->time_ns);
    rl_json_add_number(object, "bytes_per_s", has_rate ? 1e9 * (double)group->bytes / (double)group->time_ns : NAN);
    rl_json_add_text(object, "reason",
                     !is_sized   ? "the trace does not have the sizes of all copies"
                     : !has_rate ? "the copies took no time"
                                 : NULL);
    cJSON_AddItemToArray(array, object);
  }
}

static void add_trace(cJSON *document, const rl_run_timeline *timeline) {
  const rl_time_classes *classes = &timeline->classes;
  const rl_trace_events *events = &timeline->trace.events;
  cJSON *window = cJSON_AddObjectToObject(document, "window");
  cJSON_AddNumberToObject(window, "start_ns", (double)classes->start_ns);
  cJSON_AddNumberToObject(window, "end_ns", (double)classes->end_ns);
  cJSON_AddNumberToObject(document, "operations", (double)classes->operation_count);
  cJSON_AddNumberToObject(document, "kernels", (double)classes->kernel_count);
  cJSON_AddNumberToObject(document, "unrecorded_launches", (double)classes->unrecorded_launch_count);
  add_classes(document, timeline);
  add_ranges(document, timeline);
  add_phases(document, timeline);
  add_queue(document, timeline);
  add_path(document, events, timeline);
  add_threads(document, &timeline->threads);
  add_copies(document, timeline);
  cJSON_AddItemToObject(document, "independent_launches", rl_step_launches_json(&timeline->launches));
  cJSON_AddItemToObject(document, "findings", rl_timeline_findings_json(timeline));
}

static void add_missing_trace(cJSON *document) {
  static const char *const members[] = {"window",
                                        "operations",
                                        "kernels",
                                        "unrecorded_launches",
                                        "classes",
                                        "ranges",
                                        "ranges_truncated",
                                        "phases",
                                        "queue",
                                        "critical_path",
                                        "threads",
                                        "copies",
                                        "independent_launches",
                                        "findings",
                                        NULL};
  rl_json_add_nulls(document, members);
}

int rl_handle_get_timeline_findings(rl_http_request *request, rl_error *err) {
  RL_CLEANUP(rl_run_timeline_clear) rl_run_timeline timeline = {0};
  RL_CLEANUP(rl_json_cleanup) cJSON *document = cJSON_CreateObject();
  if (rl_run_timeline_read(request, request->id, &timeline, err) < 0) return -1;
  cJSON_AddNumberToObject(document, "run", (double)request->id);
  rl_json_add_text(document, "reason", timeline.trace.state.reason);
  rl_json_add_text(document, "incomplete_reason", timeline.trace.events.incomplete_reason);
  if (timeline.trace.state.reason[0] != '\0') add_missing_trace(document);
  else add_trace(document, &timeline);
  return rl_reply_json(request, 200, rl_take_ownership(&document), err);
}
