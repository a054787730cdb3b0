#include "api/run_timeline.h"

#include <stdio.h>

#include "api/server_internal.h"

void rl_run_timeline_clear(rl_run_timeline *timeline) {
  rl_critical_path_clear(&timeline->path);
  rl_launch_queue_clear(&timeline->queue);
  rl_range_times_clear(&timeline->ranges);
  rl_time_classes_clear(&timeline->classes);
  rl_run_trace_clear(&timeline->trace);
  *timeline = (rl_run_timeline){0};
}

static int read_copies(rl_store *store, int64_t run_id, rl_run_timeline *timeline, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  rl_binding run = RL_BIND_INTEGER(":run", run_id);
  const char *name;
  int found = 0;
  if (rl_store_query(store, RL_QUERY_TIMELINE_COPIES, &run, 1, &cursor, err) < 0) return -1;
  while (timeline->copy_count < RL_MAX_COPY_GROUPS && (found = rl_cursor_next(cursor, &name, err)) > 0) {
    rl_copy_group *group = &timeline->copies[timeline->copy_count++];
    *group = (rl_copy_group){.source = (rl_memory_kind)rl_cursor_integer(cursor, 1),
                             .destination = (rl_memory_kind)rl_cursor_integer(cursor, 2),
                             .count = rl_cursor_integer(cursor, 3),
                             .bytes = rl_cursor_integer(cursor, 4),
                             .time_ns = rl_cursor_integer(cursor, 5),
                             .large_bytes = rl_cursor_integer(cursor, 6),
                             .large_ns = rl_cursor_integer(cursor, 7)};
    snprintf(group->name, sizeof group->name, "%s", name);
  }
  return found < 0 ? -1 : 0;
}

int rl_run_timeline_read(rl_http_request *request, int64_t run_id, rl_run_timeline *timeline, rl_error *err) {
  rl_store *store = request->server->store;
  *timeline = (rl_run_timeline){0};
  const rl_trace_index *index = &timeline->trace.index;
  if (rl_run_trace_read(store, &request->budget, run_id, &timeline->trace, err) < 0) return -1;
  if (timeline->trace.state.reason[0] != '\0') return 0;
  if (rl_range_times_compute(index, &timeline->classes, &timeline->ranges, err) < 0) return -1;
  if (rl_launch_queue_compute(index, &timeline->classes, &timeline->queue, err) < 0) return -1;
  if (rl_critical_path_compute(index, &timeline->path, err) < 0) return -1;
  rl_thread_times_compute(index, &timeline->classes, &timeline->threads);
  timeline->queue_reason = rl_launch_queue_reason(index, &timeline->queue);
  timeline->path_reason = rl_critical_path_reason(index, &timeline->classes);
  return read_copies(store, run_id, timeline, err);
}

enum { METRIC_COUNT = RL_TIME_METRIC_COUNT + RL_QUEUE_METRIC_COUNT + RL_PATH_METRIC_COUNT + RL_COPY_METRIC_COUNT };

rl_findings rl_run_timeline_findings(const rl_run_timeline *timeline) {
  rl_metric_value metrics[METRIC_COUNT];
  const rl_time_classes *classes = &timeline->classes;
  if (timeline->trace.state.reason[0] != '\0') return (rl_findings){0};
  size_t count = rl_time_classes_metrics(classes, metrics);
  count += rl_launch_queue_metrics(&timeline->queue, classes, timeline->queue_reason, metrics + count);
  count += rl_critical_path_metrics(&timeline->path, classes, timeline->path_reason, metrics + count);
  count += rl_copy_metrics(timeline->copies, timeline->copy_count, classes->end_ns - classes->start_ns, metrics + count);
  rl_metric_values_sort(metrics, count);
  return rl_report_apply_rules(&(rl_metric_values){metrics, count});
}
