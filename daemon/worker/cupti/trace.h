/* Records the activity of the device and the driver between start and stop, from CUPTI's activity records. There is one trace per
 * process, because CUPTI's buffer callbacks have no context argument. Buffers come from a bounded pool. CUPTI's own thread
 * returns them and converts their records to rows. */
#ifndef RL_CUPTI_TRACE_H
#define RL_CUPTI_TRACE_H

#include <cupti_activity.h>

#include "model/records.h"
#include "worker/cupti/name_table.h"

typedef struct rl_trace rl_trace;

/* Maps the correlation id of an API call to the launch of the step that made the call. Recorded only with
 * CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION. */
typedef struct rl_external_correlation {
  uint32_t correlation, launch_index;
} rl_external_correlation;

/* Attributes of a kernel launch that rl_activity_row lacks; recorded only with rl_trace_launch_kinds. */
typedef struct rl_launch_attributes {
  uint32_t correlation;
  uint32_t shared_config_bytes; /* shared-memory carveout during the launch */
  bool has_carveout_request;    /* the function has a preferred carveout (CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) */
  uint8_t carveout_request_pct; /* the preferred carveout in percent of the SM's shared memory */
  uint32_t cache_config;        /* CUfunc_cache that the function requested */
  uint32_t cluster[3];          /* cluster dimensions in blocks; 0 without clusters */
  uint32_t cluster_policy;      /* a value of CUclusterSchedulingPolicy */
  uint32_t max_cluster_blocks;  /* largest possible cluster; 0: unknown */
  uint32_t max_active_clusters; /* maximum number of clusters on the whole device; 0 without clusters */
} rl_launch_attributes;

/* Contents of a stopped trace; valid until the next start. */
typedef struct rl_trace_result {
  const rl_activity_row *rows; /* sorted by start time; rows[i].name is an index into names */
  size_t row_count;
  const rl_name_table *names;
  const rl_external_correlation *correlations;
  size_t correlation_count;
  const rl_launch_attributes *launch_attributes; /* in no particular order */
  size_t attributes_count;
  uint64_t kernel_count;  /* kernel records, including those without times */
  uint64_t record_count;  /* number of all rows */
  uint64_t dropped_count; /* records dropped by CUPTI, or by the trace because a limit was reached */
  /* Kernels, copies and memsets whose start and end are 0, because CUPTI could not collect them. */
  uint64_t zero_time_record_count;
} rl_trace_result;

/* Lists of kinds of activity records to collect, each ended by CUPTI_ACTIVITY_KIND_INVALID. */
extern const CUpti_ActivityKind rl_trace_all_kinds[];
extern const CUpti_ActivityKind rl_trace_launch_kinds[]; /* kernels, and the API calls and launches that issued them */

/* Call before the process creates a CUDA context or calls NVTX. */
int rl_trace_open(rl_trace **trace, rl_error *err);
int rl_trace_start(rl_trace *trace, const CUpti_ActivityKind *kinds, rl_error *err);
/* Ends recording. The device must be idle. */
int rl_trace_stop(rl_trace *trace, rl_trace_result *result, rl_error *err);
void rl_trace_close(rl_trace *trace);

/* Between push and pop, API calls of the calling thread belong to the step's launch with this index. */
int rl_trace_push_launch(uint32_t launch_index, rl_error *err);
int rl_trace_pop_launch(rl_error *err);

#endif
