/* What the device and the driver did between start and stop, from CUPTI's activity records. One per process, since CUPTI's
 * callbacks carry no context. Records arrive on CUPTI's own thread, in buffers from a bounded pool, and become rows there. */
#ifndef RL_CUPTI_TRACE_H
#define RL_CUPTI_TRACE_H

#include <cupti_activity.h>

#include "model/records.h"
#include "worker/cupti/names.h"

typedef struct rl_trace rl_trace;

/* Which launch of a step an API call belongs to, for kinds that hold CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION. */
typedef struct rl_mark {
  uint32_t correlation, launch;
} rl_mark;

/* What a kernel's record says of its launch beside the row, for the same kinds. */
typedef struct rl_launch_detail {
  uint32_t correlation;
  uint32_t shared_config_bytes;              /* what of L1 the driver made shared memory */
  uint32_t cache_config;                     /* that the function asked for: CUfunc_cache */
  uint32_t cluster[3];                       /* in blocks; 0 where the launch has none */
  uint32_t cluster_policy;                   /* CUclusterSchedulingPolicy */
  uint32_t largest_cluster, active_clusters; /* that are possible, of a launch with clusters; active: at once on the device */
} rl_launch_detail;

/* What a trace holds once it is stopped; valid until the next start. */
typedef struct rl_traced {
  const rl_activity_row *rows; /* in order of start; name: index into names */
  size_t row_count;
  const rl_names *names;
  const rl_mark *marks;
  size_t mark_count;
  const rl_launch_detail *details; /* in no order */
  size_t detail_count;
  uint64_t kernels;    /* kernel records, those without times among them */
  uint64_t records;    /* rows */
  uint64_t dropped;    /* by CUPTI, or by us when the rows' limit was reached */
  uint64_t zero_times; /* kernels, copies and sets whose times CUPTI could not collect: their rows say 0 and 0 */
} rl_traced;

extern const CUpti_ActivityKind rl_trace_everything[]; /* ends with CUPTI_ACTIVITY_KIND_INVALID, as every list of kinds */
extern const CUpti_ActivityKind rl_trace_launches[];   /* kernels, and which launch of a step they come from */

/* Call before the process makes a CUDA context or an NVTX call. */
int rl_trace_open(rl_trace **trace, rl_error *err);
int rl_trace_start(rl_trace *trace, const CUpti_ActivityKind *kinds, rl_error *err);
/* The device must be idle. */
int rl_trace_stop(rl_trace *trace, rl_traced *traced, rl_error *err);
void rl_trace_close(rl_trace *trace);

/* What the calling thread enqueues from here until rl_trace_unmark belongs to launch. */
int rl_trace_mark(uint32_t launch, rl_error *err);
int rl_trace_unmark(rl_error *err);

#endif
