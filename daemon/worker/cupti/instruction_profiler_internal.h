/* State of the instruction profiler, and functions that its .c files share. */
#ifndef RL_CUPTI_INSTRUCTION_PROFILER_INTERNAL_H
#define RL_CUPTI_INSTRUCTION_PROFILER_INTERNAL_H

#include "model/catalogue.h"
#include "worker/code/instruction_profile.h"
#include "worker/cupti/disassembly_cache.h"
#include "worker/cupti/instruction_profiler.h"
#include "worker/cupti/pc_sampling.h"
#include "worker/cupti/pm_sampling.h"
#include "worker/topology.h"

typedef struct rl_kernel_instruction_data { /* one kernel of the request */
  rl_instruction_profile profile;
  unsigned char *cubin; /* copy of the cubin with the kernel; NULL: the worker has none */
  size_t cubin_size;
  rl_cubin_function function;
  rl_cached_disassembly *disassembly;
  uint64_t crc; /* CRC of the cubin that was executed, as CUPTI reported it; 0: no values were collected */
  char no_timeline_reason[RL_REASON_SIZE]; /* "": the kernel has timelines */
} rl_kernel_instruction_data;

/* The ways in which raw metrics are collected. */
typedef enum rl_collector {
  RL_COLLECTOR_INTERCONNECT_TOPOLOGY, /* NUMA nodes, NVLinks and C2C links (topology.h) */
  RL_COLLECTOR_SASS_METRICS,
  RL_COLLECTOR_PC_SAMPLING,
  RL_COLLECTOR_PM_SAMPLING,
  RL_COLLECTOR_COUNT
} rl_collector;

struct rl_instruction_profiler {
  int device_index, sm_count;
  double clock_hz;
  char chip[64];
  bool sass_metrics_open;
  rl_disassembly_cache disassemblies;
  rl_topology interconnect_topology;
  rl_counter_plan *pm_sampling_plan; /* created at the first use */
  rl_pc_sampling *pc_sampling;       /* kept for the next request */
  /* State of the current request: */
  const rl_instruction_profiler_request *request;
  bool selected[RL_COLLECTOR_COUNT];
  char reasons[RL_COLLECTOR_COUNT][RL_REASON_SIZE]; /* reason why a collector failed; "": it did not fail */
  rl_kernel_instruction_data *kernels;
  rl_records *records;
  size_t launch_index;           /* index of the launch that is being replayed */
  uint32_t sampling_period_log2; /* binary logarithm of the period of PC sampling in cycles */
  unsigned sampling_round;       /* number of the current replay under PC sampling, from 0 */
  bool pc_sampling_attempted;    /* PC samples were taken for this request, or taking them failed */
  double pm_interval_ns;         /* interval between two samples of a timeline */
  rl_pm_sampling *pm_sampling;
};

static inline bool rl_kernel_is_selected(const rl_launched_kernel *kernel) { return kernel->ordinal >= 0; }

typedef int rl_instruction_profiler_function(rl_instruction_profiler *profiler, rl_error *err);

/* Functions of instruction_profiler_replay.c. They fail with RL_CUPTI if the device or the driver does not support the
 * collection. */
/* Restores the inputs and replays the step. Calls `begin` before and `end` after each launch that has a selected kernel;
 * profiler->launch_index is the index of the launch. */
int rl_instruction_profiler_replay(rl_instruction_profiler *profiler, rl_instruction_profiler_function *begin,
                                   rl_instruction_profiler_function *end, rl_error *err);
int rl_instruction_profiler_collect_sass_metrics(rl_instruction_profiler *profiler, rl_error *err);
int rl_instruction_profiler_collect_pc_samples(rl_instruction_profiler *profiler, rl_error *err);
/* Returns in how many replays of the step the launch is sampled. A short kernel needs several replays to yield enough samples. */
unsigned rl_instruction_profiler_sampling_rounds(const rl_instruction_profiler *profiler, size_t launch_index);

/* instruction_profiler_pm_samples.c */
int rl_instruction_profiler_collect_pm_samples(rl_instruction_profiler *profiler, rl_error *err);

/* instruction_profiler_metrics.c */
rl_collector rl_collector_of_metric(const char *metric);
/* Returns whether the profile options select the metric. */
bool rl_instruction_profiler_selects(const rl_profile_options *profile_options, const rl_raw_metric *metric);
/* Appends the selected metrics of the request's kernel `index` to the records. */
int rl_instruction_profiler_append_metrics(rl_instruction_profiler *profiler, size_t index, rl_error *err);

#endif
