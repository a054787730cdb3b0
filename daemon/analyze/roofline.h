/* The roofline of one kernel: what it moved and computed in a second, beside what the workload's model says it had to, under the
 * ceilings that the device should have and those that were measured on it. Pure. Rates are bytes or operations per second,
 * intensities and ridges operations per byte; a multiply-add is two operations. NAN is "not known". */
#ifndef RL_ANALYZE_ROOFLINE_H
#define RL_ANALYZE_ROOFLINE_H

#include <stdbool.h>

#include "model/metrics.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rl_roof_level { RL_LEVEL_DRAM, RL_LEVEL_L2, RL_LEVEL_L1, RL_LEVELS } rl_roof_level;
typedef enum rl_roof_unit {
  RL_UNIT_FP64,
  RL_UNIT_FP32,
  RL_UNIT_FP16,
  RL_UNIT_TENSOR_FP64,
  RL_UNIT_TENSOR_TF32,
  RL_UNIT_TENSOR_FP16,
  RL_UNIT_TENSOR_BF16,
  RL_UNITS
} rl_roof_unit;

typedef struct rl_roof {
  const char *name;         /* "dram" "l2" "l1"; "fp64" "fp32" "fp16" "tensor_fp64" "tensor_tf32" "tensor_fp16" "tensor_bf16" */
  double achieved_per_s;    /* counted */
  double theoretical_per_s; /* what the chip sustains in a cycle, at the clock of this kernel */
  double measured_per_s;    /* of the device's newest run of the ceilings */
} rl_roof;

typedef struct rl_roof_point { /* a unit's operations over a level's bytes */
  double intensity;
  double ridge_theoretical, ridge_measured;                       /* left of it the level limits, right of it the unit */
  double attainable_theoretical_per_s, attainable_measured_per_s; /* operations under both roofs at this intensity */
} rl_roof_point;

typedef struct rl_roof_model { /* the least that the work needs, over the time that it took */
  double bytes, operations, intensity, bytes_per_s, operations_per_s;
} rl_roof_model;

typedef enum rl_bound { RL_BOUND_UNKNOWN, RL_BOUND_MEMORY, RL_BOUND_COMPUTE, RL_BOUND_LATENCY } rl_bound;
extern const char *const rl_bound_names[]; /* "unknown" "memory" "compute" "latency", NULL */

/* At or above high_pct of its peak one side alone binds; where both are below low_pct neither does, and the kernel waits for
 * latencies; else it matters on which side of the ridge the intensity lies. */
typedef struct rl_classification {
  rl_bound bound;
  double memory_pct, compute_pct; /* of the peaks; without counters of the measured ceilings, by the model */
  double high_pct, low_pct;       /* the thresholds */
  int unit;                       /* rl_roof_unit with the largest share of its peak; -1: none is at work */
  double intensity, ridge;        /* of that unit over DRAM; without counters the model's */
  char why[160];
} rl_classification;

typedef struct rl_roofline {
  double duration_s;
  bool counted; /* the duration and the rates are the counters'; else there is only the timing pass */
  rl_roof levels[RL_LEVELS], units[RL_UNITS];
  rl_roof_point points[RL_LEVELS][RL_UNITS];
  rl_roof_model model;
  rl_classification classification;
} rl_roofline;

rl_roofline rl_roofline_of(const rl_metric_values *values);
/* Every expression that it reads, one by one; NULL behind the last: for tests of what is collected. */
const char *rl_roofline_expression(size_t index);

#ifdef __cplusplus
}
#endif
#endif
