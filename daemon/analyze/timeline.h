/* Computes from activity rows how long the device was busy, to which launch each kernel belongs, and a summary of each kernel.
 * All functions are pure. */
#ifndef RL_ANALYZE_TIMELINE_H
#define RL_ANALYZE_TIMELINE_H

#include "base/cleanup.h"
#include "model/records.h"

typedef struct rl_busy_time {
  size_t row_count;          /* number of kernels, memcpys, memsets and CPU spans */
  int64_t first_ns, last_ns; /* start of the first and end of the last row; 0: no rows */
  int64_t busy_ns;           /* union of their intervals, so overlapping work counts once */
} rl_busy_time;

/* Fails with RL_ERRNO if memory is exhausted. */
int rl_timeline_measure_busy_time(const rl_activity_row *rows, size_t count, rl_busy_time *busy, rl_error *err);

/* A launch of a workload's iteration. Arrays of launches are in order of execution; adjacent launches with the same
 * sequence_index form a sequence, which runs `repeats` times. */
typedef struct rl_expected_launch {
  const char *name, *phase;
  uint32_t sequence_index;
  uint64_t repeats;
} rl_expected_launch;

/* Maps the kernels of a trace to launches. In a CUDA graph no API call identifies a launch, so the map is built from a second
 * trace without graphs, in which every sequence ran once and each launch inside an NVTX range of its name: a kernel and its API
 * call have the same correlation id, and the call lies in the launch's range. This gives the order of launches for each kernel
 * name. In the trace with graphs, the n-th kernel of a name belongs to the n-th launch of that order, with every sequence
 * repeated. A name whose number of kernels differs from the expected one is not mapped. */
typedef struct rl_launch_map rl_launch_map;
int rl_launch_map_build(const rl_records *trace_without_graphs, const rl_expected_launch *expected, size_t count,
                        rl_launch_map **launch_map, rl_error *err);
void rl_launch_map_free(rl_launch_map *launch_map);

typedef struct rl_kernel_summary_options {
  const rl_launch_map *launch_map;    /* NULL: launches of kernels are unknown */
  const rl_expected_launch *expected; /* the launches; CPU spans are mapped by their name */
  size_t expected_count;
  double epoch_us;                                                /* denominator of share_ratio; NAN: unknown */
  double (*occupancy)(void *context, const rl_activity_row *row); /* returns the occupancy of a kernel's row; NULL: unknown */
  void *context;
  /* Reason why the occupancy of a kernel is NAN, and why a CPU span lacks the values that only GPU kernels have. NULL: a default
   * text. */
  const char *missing_values_reason;
} rl_kernel_summary_options;

/* Appends to results->kernels one summary for each launch, kernel name and configuration (grid, block, registers, shared memory)
 * of the trace's KERNEL and CPU_SPAN rows, in order of first start. Rows whose launch is unknown have one summary for each name.
 * Launches of a name in a later sequence, such as an epoch's smaller last step, have no separate summaries. */
int rl_timeline_summarize_kernels(const rl_records *trace, const rl_kernel_summary_options *options, rl_records *results,
                                  rl_error *err);

RL_DEFINE_CLEANUP(rl_launch_map_cleanup, rl_launch_map *, rl_launch_map_free, NULL)
#endif
