#include "analyze/operation_totals.h"

#include "analyze/thresholds.h"
#include "model/records.h"

const char *const rl_operation_total_names[RL_OPERATION_TOTAL_COUNT] = {
    [RL_TOTAL_SHORT_KERNELS] = "small_kernels",
    [RL_TOTAL_SHORT_KERNELS_NS] = "small_kernels_ns",
    [RL_TOTAL_COPIES] = "copies",
    [RL_TOTAL_COPIES_BYTES] = "copies_bytes",
    [RL_TOTAL_UNSIZED_COPIES] = "unsized_copies",
    [RL_TOTAL_COPIES_NS] = "copies_ns",
    [RL_TOTAL_BLOCKING_COPIES] = "blocking_copies",
    [RL_TOTAL_BLOCKING_COPIES_NS] = "blocking_copies_ns",
    [RL_TOTAL_CRITICAL_PATH_NS] = "critical_path_ns",
};

static void add_copy(const rl_trace_index *index, size_t operation, int64_t totals[RL_OPERATION_TOTAL_COUNT]) {
  const rl_trace_event *copy = index->operations[operation], *call = index->launched_by[operation];
  const int64_t duration_ns = copy->end_ns - copy->start_ns;
  totals[RL_TOTAL_COPIES]++;
  totals[RL_TOTAL_COPIES_NS] += duration_ns;
  const int64_t bytes = copy->size < index->events->size_count ? index->events->sizes[copy->size] : -1;
  totals[bytes < 0 ? RL_TOTAL_UNSIZED_COPIES : RL_TOTAL_COPIES_BYTES] += bytes < 0 ? 1 : bytes;
  if (call == NULL || !rl_trace_call_is(index, call, RL_CALL_COPIES)) return;
  totals[RL_TOTAL_BLOCKING_COPIES]++;
  totals[RL_TOTAL_BLOCKING_COPIES_NS] += duration_ns;
}

void rl_operation_totals_add(const rl_trace_index *index, const int64_t *path_ns, size_t operation,
                             int64_t totals[RL_OPERATION_TOTAL_COUNT]) {
  const rl_trace_event *event = index->operations[operation];
  const int64_t duration_ns = event->end_ns - event->start_ns;
  if (event->kind == RL_ACTIVITY_KERNEL && duration_ns < RL_SHORT_KERNEL_NS) {
    totals[RL_TOTAL_SHORT_KERNELS]++;
    totals[RL_TOTAL_SHORT_KERNELS_NS] += duration_ns;
  }
  if (event->kind == RL_ACTIVITY_MEMCPY) add_copy(index, operation, totals);
  if (path_ns != NULL) totals[RL_TOTAL_CRITICAL_PATH_NS] += path_ns[operation];
}
