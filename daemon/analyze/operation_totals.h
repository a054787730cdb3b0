/* Totals over operations: the short kernels, the copies, and the time on the critical path. range_times.h and phase_times.h add
 * them up for each NVTX range and for each phase. All functions are pure. */
#ifndef RL_ANALYZE_OPERATION_TOTALS_H
#define RL_ANALYZE_OPERATION_TOTALS_H

#include "analyze/trace_index.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rl_operation_total {
  RL_TOTAL_SHORT_KERNELS,      /* number of kernels that take less than RL_SHORT_KERNEL_NS (thresholds.h) */
  RL_TOTAL_SHORT_KERNELS_NS,   /* sum of their durations */
  RL_TOTAL_COPIES,             /* number of copies; memsets do not count */
  RL_TOTAL_COPIES_BYTES,       /* sum of their sizes, without those of unsized copies */
  RL_TOTAL_UNSIZED_COPIES,     /* number of the copies whose size is unknown */
  RL_TOTAL_COPIES_NS,          /* sum of their durations */
  RL_TOTAL_BLOCKING_COPIES,    /* number of the copies whose API call blocks until they are done */
  RL_TOTAL_BLOCKING_COPIES_NS, /* sum of their durations */
  RL_TOTAL_CRITICAL_PATH_NS,   /* time of the operations on the critical path */
  RL_OPERATION_TOTAL_COUNT
} rl_operation_total;
extern const char *const rl_operation_total_names[RL_OPERATION_TOTAL_COUNT]; /* "small_kernels" … "critical_path_ns" */

/* Adds an operation to the totals. operation: index into index->operations. path_ns: rl_critical_path.operation_ns; NULL: the
 * path is unknown, and its total stays 0. */
void rl_operation_totals_add(const rl_trace_index *index, const int64_t *path_ns, size_t operation,
                             int64_t totals[RL_OPERATION_TOTAL_COUNT]);

#ifdef __cplusplus
}
#endif
#endif
