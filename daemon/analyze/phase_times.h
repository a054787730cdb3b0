/* Time classes of each phase of an iteration ("forward", "backward", "optimizer"). A phase gets the time of the operations of
 * its launches, and the idle time before them.
 *
 * The activity rows do not record to which launch of the iteration a kernel belongs, but the summaries of the kernels do
 * (rl_kernel, and rl_phase for a kernel that executes several phases). So the time of all operations with a name is divided in
 * proportion to the totals of its summaries. If all launches of a kernel belong to one phase, the result is exact; else each
 * class of the kernel's time, and each total, is divided in the same proportion. All functions are pure. */
#ifndef RL_ANALYZE_PHASE_TIMES_H
#define RL_ANALYZE_PHASE_TIMES_H

#include "analyze/operation_totals.h"
#include "analyze/time_classes.h"
#include "model/records.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_phase_share { /* part of the time of the operations with a name */
  uint32_t name;                /* index into rl_trace_events.names */
  char phase[RL_NAME_SIZE];     /* "": no phase */
  double weight;                /* positive; the share is the weight divided by the sum of the name's weights */
} rl_phase_share;

/* Receives the times of the operations of each name. */
typedef struct rl_name_times {
  const rl_trace_index *index;
  int64_t (*class_ns)[RL_TIME_CLASS_COUNT];    /* class_ns[name][class] */
  int64_t (*totals)[RL_OPERATION_TOTAL_COUNT]; /* totals[name][total] */
} rl_name_times;
/* Computes the totals; the observer adds the times. path_ns: rl_critical_path.operation_ns; NULL: unknown. The caller clears
 * *times, even after a failure. Fails with RL_ERRNO if memory is exhausted. */
int rl_name_times_begin(const rl_trace_index *index, const int64_t *path_ns, rl_name_times *times, rl_error *err);
rl_time_observer rl_name_times_observer(rl_name_times *times);
void rl_name_times_clear(rl_name_times *times);

typedef struct rl_phase_time {
  char phase[RL_NAME_SIZE]; /* "": operations without a phase, such as copies */
  int64_t time_ns;          /* sum of class_ns */
  int64_t class_ns[RL_TIME_CLASS_COUNT];
  int64_t totals[RL_OPERATION_TOTAL_COUNT];
} rl_phase_time;

enum { RL_MAX_PHASES = 32 };
typedef struct rl_phase_times {
  rl_phase_time items[RL_MAX_PHASES]; /* in the order of the shares. The last item is "", which also has the time of phases beyond
                                         RL_MAX_PHASES */
  size_t count;                       /* 0: no share has a phase */
} rl_phase_times;

/* shares: sorted by name. The classes of all phases add up to the classes of the window, and the totals of
 * all phases to those of the trace. */
void rl_phase_times_compute(const rl_name_times *times, const rl_phase_share *shares, size_t count, rl_phase_times *phases);

#ifdef __cplusplus
}
#endif
#endif
