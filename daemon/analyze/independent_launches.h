/* Finds successive launches of a step that are independent and fill neither the device's blocks nor the DRAM read bandwidth, so
 * that concurrent execution could save time. A trace does not show this: CUPTI records no arguments of kernels. The workload
 * declares which data its launches read and write (rl_workload.launch_data). All functions are pure.
 *
 * The launches of a step are enqueued to one stream. A launch fills the device if its blocks fill RL_FILLED_DEVICE_RATIO of it as
 * a mean over its time, or if its data crosses the memory at RL_FILLED_MEMORY_RATIO of the rate that a ceilings job measured for
 * reads. A group is a list of successive launches of which none fills the device and none depends on another. The time in which a
 * group can be computed at once is estimated as the longest of
 *
 *   the time of its longest launch,
 *   the sum of its launches' times, each multiplied by the share of the device that the launch's blocks fill, and
 *   the time in which its data crosses the memory at the measured rate.
 *
 * Data counts as if it came from memory. If a cache holds some of it, the estimated time is too long, and the saving too small.
 */
#ifndef RL_ANALYZE_INDEPENDENT_LAUNCHES_H
#define RL_ANALYZE_INDEPENDENT_LAUNCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/metrics.h"
#include "model/records.h"
#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Beyond this rate, the rule deliberately says nothing. Of the layer with one token on an H200, gate and up read at 80 to 82 % of
 * the DRAM read bandwidth: two streams save 3 % of their time, and one product for both 13 %. q, k and v read at 58 to 59 %:
 * three streams save 23 %, and one product for all three 33 % (docs/measurements/h200-layer.md). */
#define RL_FILLED_MEMORY_RATIO 0.7
#define RL_FILLED_DEVICE_RATIO 0.9
/* A group that could save less than this share of its time is not listed. */
#define RL_MIN_GROUP_SAVING_RATIO 0.1

enum { RL_MAX_STEP_LAUNCHES = 64 };

typedef struct rl_traced_kernel { /* the executions of a kernel by one launch of the step */
  char launch[RL_NAME_SIZE];      /* "": unknown */
  char name[RL_KERNEL_NAME_SIZE];
  double executions, total_us, blocks, block_threads, occupancy_ratio;
} rl_traced_kernel;

/* NAN: unknown. */
typedef struct rl_device_capacity {
  double multiprocessors, multiprocessor_threads, read_bytes_per_s;
} rl_device_capacity;

/* Returns the maximum number of threads on a multiprocessor by the table of technical specifications in the CUDA programming
 * guide; NAN: the compute capability is not in this table. compute_capability: "9.0"; NULL: unknown. */
double rl_multiprocessor_threads(const char *compute_capability);

typedef struct rl_step_launch {
  const char *name, *kernel; /* kernel: the name of the kernel that takes most of the launch's time */
  rl_launch_data data;
  double total_us;
  double blocks, resident_blocks; /* blocks of that kernel, and the number of them that the device holds at once */
  double device_ratio;            /* share of the device that its blocks fill, as a mean over its time */
  double memory_ratio;            /* rate of its data divided by the measured rate of reads */
  bool fills_device;
} rl_step_launch;

typedef struct rl_launch_group {
  size_t first, count;  /* launches of the step */
  double total_us;      /* time of all executions of its launches */
  double device_us;     /* the same, each multiplied by the launch's device_ratio */
  double memory_us;     /* the same, each multiplied by the launch's memory_ratio */
  double concurrent_us; /* estimated time when they run concurrently */
} rl_launch_group;

typedef struct rl_independent_launches {
  rl_step_launch launches[RL_MAX_STEP_LAUNCHES]; /* in the order in which the step enqueues them */
  rl_launch_group groups[RL_MAX_STEP_LAUNCHES];
  size_t launch_count, group_count;
  double steps;                /* number of executions of the step */
  char reason[RL_REASON_SIZE]; /* why it is unknown whether there are groups; then there are none. "": it is known */
} rl_independent_launches;

/* kernels: all kernels of the trace, in the order of their first start. params: the parameters of the workload. The result points
 * to the names of the kernels. */
void rl_independent_launches_find(const rl_traced_kernel *kernels, size_t count, const rl_workload *workload, const void *params,
                                  const rl_device_capacity *capacity, rl_independent_launches *found);

/* Returns the group that saves the most time; NULL: there is no group. */
const rl_launch_group *rl_independent_launches_largest(const rl_independent_launches *found);

/* The metrics that the rules of the timeline read: of the group that saves the most time. */
enum { RL_INDEPENDENT_METRIC_COUNT = 5 };
/* Writes the metrics, sorted by name, and returns their number. Names are static; reasons belong to `found`. */
size_t rl_independent_metrics(const rl_independent_launches *found, int64_t window_ns,
                              rl_metric_value metrics[RL_INDEPENDENT_METRIC_COUNT]);

#ifdef __cplusplus
}
#endif
#endif
