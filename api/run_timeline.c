/* Runs the analyses of analyze/ on a trace, together with the copies and the shares of phases that the store computes, and turns
 * the results into metrics for the rules. */
#include "api/run_timeline.h"

#include <stdio.h>

#include "api/server_internal.h"
#include "base/array.h"

void rl_run_timeline_clear(rl_run_timeline *timeline) {
  rl_step_launches_clear(&timeline->launches);
  rl_critical_path_clear(&timeline->path);
  rl_launch_queue_clear(&timeline->queue);
  rl_range_times_clear(&timeline->ranges);
  rl_time_classes_clear(&timeline->classes);
  rl_run_trace_clear(&timeline->trace);
  *timeline = (rl_run_timeline){0};
}

static int read_copies(rl_store *store, int64_t run_id, rl_run_timeline *timeline, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const rl_binding bindings[] = {RL_BIND_INTEGER(":run", run_id), RL_BIND_INTEGER(":large", RL_LARGE_COPY_BYTES)};
  const char *name;
  int found = 0;
  if (rl_store_query(store, RL_QUERY_TIMELINE_COPIES, bindings, 2, &cursor, err) < 0) return -1;
  while (timeline->copy_count < RL_MAX_COPY_GROUPS && (found = rl_cursor_next(cursor, &name, err)) > 0) {
    rl_copy_group *group = &timeline->copies[timeline->copy_count++];
    *group = (rl_copy_group){.source = (rl_memory_kind)rl_cursor_integer(cursor, 1),
                             .destination = (rl_memory_kind)rl_cursor_integer(cursor, 2),
                             .count = rl_cursor_integer(cursor, 3),
                             .bytes = rl_cursor_integer(cursor, 4),
                             .time_ns = rl_cursor_integer(cursor, 5),
                             .large_bytes = rl_cursor_integer(cursor, 6),
                             .large_ns = rl_cursor_integer(cursor, 7),
                             .unsized_count = rl_cursor_integer(cursor, 8)};
    snprintf(group->name, sizeof group->name, "%s", name);
  }
  return found < 0 ? -1 : 0;
}

typedef struct phase_shares {
  rl_phase_share *items;
  size_t count, capacity;
} phase_shares;

static void free_shares(phase_shares *shares) { free(shares->items); }

static int read_shares(rl_store *store, int64_t run_id, phase_shares *shares, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  rl_binding run = RL_BIND_INTEGER(":run", run_id);
  const char *phase;
  int found;
  if (rl_store_query(store, RL_QUERY_TIMELINE_PHASES, &run, 1, &cursor, err) < 0) return -1;
  while ((found = rl_cursor_next(cursor, &phase, err)) > 0) {
    if (rl_array_reserve(&shares->items, shares->count, &shares->capacity, sizeof *shares->items, err) < 0) return -1;
    rl_phase_share *share = &shares->items[shares->count++];
    *share = (rl_phase_share){.name = (uint32_t)rl_cursor_integer(cursor, 1), .weight = rl_cursor_real(cursor, 2)};
    snprintf(share->phase, sizeof share->phase, "%s", phase);
  }
  return found;
}

static int compute_range_and_phase_times(rl_store *store, int64_t run_id, rl_run_timeline *timeline, rl_error *err) {
  RL_CLEANUP(free_shares) phase_shares shares = {0};
  RL_CLEANUP(rl_name_times_clear) rl_name_times names = {0};
  const rl_trace_index *index = &timeline->trace.index;
  const int64_t *path_ns = timeline->path.operation_ns;
  if (read_shares(store, run_id, &shares, err) < 0) return -1;
  if (shares.count == 0) return rl_range_times_compute(index, NULL, path_ns, &timeline->classes, &timeline->ranges, err);
  if (rl_name_times_begin(index, path_ns, &names, err) < 0) return -1;
  const rl_time_observer observer = rl_name_times_observer(&names);
  if (rl_range_times_compute(index, &observer, path_ns, &timeline->classes, &timeline->ranges, err) < 0) return -1;
  rl_phase_times_compute(&names, shares.items, shares.count, &timeline->phases);
  return 0;
}

int rl_run_timeline_read(rl_http_request *request, int64_t run_id, rl_run_timeline *timeline, rl_error *err) {
  rl_store *store = request->server->store;
  *timeline = (rl_run_timeline){0};
  const rl_trace_index *index = &timeline->trace.index;
  if (rl_run_trace_read(store, &request->budget, run_id, &timeline->trace, err) < 0) return -1;
  if (timeline->trace.state.reason[0] != '\0') return 0;
  if (rl_critical_path_compute(index, &timeline->path, err) < 0) return -1;
  if (compute_range_and_phase_times(store, run_id, timeline, err) < 0) return -1;
  if (rl_launch_queue_compute(index, &timeline->classes, &timeline->queue, err) < 0) return -1;
  if (rl_thread_times_compute(index, &timeline->classes, &timeline->threads, err) < 0) return -1;
  timeline->queue_reason = rl_launch_queue_reason(index, &timeline->queue);
  timeline->path_reason = rl_critical_path_reason(index, &timeline->classes);
  if (rl_step_launches_read(store, run_id, timeline->trace.events.incomplete_reason, &timeline->launches, err) < 0) return -1;
  return read_copies(store, run_id, timeline, err);
}

enum {
  METRIC_COUNT =
      RL_TIME_METRIC_COUNT + RL_QUEUE_METRIC_COUNT + RL_PATH_METRIC_COUNT + RL_COPY_METRIC_COUNT + RL_INDEPENDENT_METRIC_COUNT
};

/* Before each launch of posted code, rooflined copies the buffers back. The code itself copies nothing, so its user cannot follow
 * advice about copies. Returns the reason why the metrics of copies have no values; NULL: they have. */
static const char *no_copies_reason(const rl_run_timeline *timeline) {
  const rl_workload *workload = timeline->launches.workload;
  const bool restores_buffers = workload != NULL && workload->restores_buffers;
  return restores_buffers ? "the copies restore the buffers of posted code before each launch" : NULL;
}

rl_findings rl_run_timeline_findings(const rl_run_timeline *timeline) {
  rl_metric_value metrics[METRIC_COUNT];
  const rl_time_classes *classes = &timeline->classes;
  if (timeline->trace.state.reason[0] != '\0') return (rl_findings){0};
  size_t count = rl_time_classes_metrics(classes, no_copies_reason(timeline), metrics);
  count += rl_launch_queue_metrics(&timeline->queue, classes, timeline->queue_reason, metrics + count);
  count += rl_critical_path_metrics(&timeline->path, classes, timeline->path_reason, metrics + count);
  count += rl_copy_metrics(timeline->copies, timeline->copy_count, classes->end_ns - classes->start_ns, metrics + count);
  count += rl_independent_metrics(&timeline->launches.found, classes->end_ns - classes->start_ns, metrics + count);
  rl_metric_values_sort(metrics, count);
  return rl_report_apply_rules(&(rl_metric_values){metrics, count}, false);
}
