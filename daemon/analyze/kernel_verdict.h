/* The first sentence of a kernel's report: the resource that bounds the kernel, the metric that shows it, and the first thing
 * to try. All functions are pure. Uses the thresholds of the rules (thresholds.h). The verdict refines the roofline's
 * classification, and differs from it only for atomic operations on few addresses. */
#ifndef RL_ANALYZE_KERNEL_VERDICT_H
#define RL_ANALYZE_KERNEL_VERDICT_H

#include "analyze/roofline.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rl_kernel_bound {
  RL_KERNEL_BOUND_UNKNOWN,
  RL_KERNEL_BOUND_DRAM,
  RL_KERNEL_BOUND_L2,
  RL_KERNEL_BOUND_L1,        /* L1 and shared memory, which are one memory */
  RL_KERNEL_BOUND_PIPELINE,  /* a pipeline or the issue slots (rl_kernel_verdict.pipeline) */
  RL_KERNEL_BOUND_ATOMICS,   /* atomic units of L2, or atomic operations in shared memory */
  RL_KERNEL_BOUND_LATENCY,   /* no unit is busy although the multiprocessors have work */
  RL_KERNEL_BOUND_LAUNCH,    /* some multiprocessors never get a block */
  RL_KERNEL_BOUND_TAIL,      /* most multiprocessors finish long before the last multiprocessor does */
  RL_KERNEL_BOUND_TOO_SMALL, /* the kernel is too short to tell what bounds it */
} rl_kernel_bound;
extern const char *const rl_kernel_bound_names[]; /* "unknown" "dram" "l2" "l1" "pipeline" "atomics" "latency" ..., NULL */

typedef struct rl_kernel_verdict {
  rl_kernel_bound bound;
  const char *pipeline; /* "fma" "tensor" "issue" ...; NULL: the bound is not a pipeline */
  const char *metric;   /* the metric that shows the bound; NULL if the bound is unknown */
  double value;         /* value of metric, in unit */
  const char *unit;     /* "%" "ns" "block" "cycle" */
  char message[384];    /* what bounds the kernel, with the value; or why the bound is unknown */
  const char *advice;   /* the first thing to try; NULL if the bound is unknown */
} rl_kernel_verdict;

rl_kernel_verdict rl_kernel_verdict_make(const rl_metric_values *values);
/* Returns the metrics that the verdict reads, by index; NULL after the last. Tests check that they are collected. */
const char *rl_kernel_verdict_metric(size_t index);

#ifdef __cplusplus
}
#endif
#endif
