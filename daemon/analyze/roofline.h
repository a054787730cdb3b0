/* Computes the roofline of one kernel from its metrics: achieved rates, the minimum bytes and operations of the workload, and the
 * theoretical and measured ceilings of the device. All functions are pure. Rates are in bytes or operations per second,
 * intensities and ridges in operations per byte. A multiply-add is two operations. NAN: unknown. */
#ifndef RL_ANALYZE_ROOFLINE_H
#define RL_ANALYZE_ROOFLINE_H

#include <stdbool.h>

#include "model/metrics.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rl_roof_level { RL_LEVEL_DRAM, RL_LEVEL_L2, RL_LEVEL_L1, RL_LEVEL_COUNT } rl_roof_level;
typedef enum rl_roof_unit {
  RL_UNIT_FP64,
  RL_UNIT_FP32,
  RL_UNIT_FP16,
  RL_UNIT_TENSOR_FP64,
  RL_UNIT_TENSOR_TF32,
  RL_UNIT_TENSOR_FP16,
  RL_UNIT_TENSOR_BF16,
  RL_UNIT_COUNT
} rl_roof_unit;

typedef struct rl_roof {
  const char *name;         /* "dram" "l2" "l1"; "fp64" "fp32" "fp16" "tensor_fp64" "tensor_tf32" "tensor_fp16" "tensor_bf16" */
  double achieved_per_s;    /* rate from hardware counters */
  bool is_upper_bound;      /* FP16 of a kernel whose SASS is unknown: moves encoded as HFMA2 and HADD2 are counted too */
  double theoretical_per_s; /* the peak per cycle, times the clock during this kernel */
  double measured_per_s;    /* rate from the newest ceilings run of the device */
} rl_roof;

typedef struct rl_roof_point { /* the point and the ridge of one unit and one memory level */
  double intensity;
  /* Arithmetic intensity below which the memory level limits the kernel, and above which the unit does; from theoretical and from
   * measured roofs. */
  double ridge_theoretical, ridge_measured;
  double attainable_theoretical_per_s, attainable_measured_per_s; /* the lower of the two roofs at this intensity */
} rl_roof_point;

typedef struct rl_roof_model { /* the minimum bytes and operations of the workload, and their rates over the measured time */
  double bytes, operations, intensity, bytes_per_s, operations_per_s;
} rl_roof_model;

typedef enum rl_bound { RL_BOUND_UNKNOWN, RL_BOUND_MEMORY, RL_BOUND_COMPUTE, RL_BOUND_LATENCY } rl_bound;
extern const char *const rl_bound_names[]; /* "unknown" "memory" "compute" "latency", NULL */

/* If memory and compute are both below busy_pct of their peaks, the kernel is bound by latency. If they differ by balanced_pct or
 * more, it is bound by the busier of the two. Otherwise, if unit_pct is at least compute_pct - balanced_pct, the intensity
 * decides: memory below the ridge of `unit`, compute at or above it. If it is less or NAN, the larger percentage decides, because
 * an operation that no rl_roof_unit counts (integer, FP8, INT8) makes compute busy. */
typedef struct rl_classification {
  rl_bound bound;
  double memory_pct, compute_pct; /* percentages of the peaks; without counters: of the measured ceilings */
  const char *compute_reason;     /* reason why compute_pct is NAN; NULL: none is known. Borrowed from the metrics */
  double busy_pct, balanced_pct;  /* the thresholds */
  int unit;                       /* the rl_roof_unit that is closest to its peak; -1: all are idle, or unknown */
  double unit_pct;                /* percentage of its peak that `unit` reaches; without counters: compute_pct */
  double intensity,
      ridge;     /* operations per byte of DRAM: of the kernel, and at the ridge point of `unit`; of the model without counters */
  char why[160]; /* the reason for the bound, as text */
} rl_classification;

typedef struct rl_roofline {
  double duration_s;
  bool counted; /* the duration comes from the counters pass; otherwise from the timing pass */
  rl_roof levels[RL_LEVEL_COUNT], units[RL_UNIT_COUNT];
  rl_roof_point points[RL_LEVEL_COUNT][RL_UNIT_COUNT];
  rl_roof_model model;
  rl_classification classification;
} rl_roofline;

rl_roofline rl_roofline_compute(const rl_metric_values *values);
/* Returns an expression (expression.h) that the roofline evaluates, by index; NULL after the last. Tests check
 * that its metrics are collected. */
const char *rl_roofline_expression(size_t index);

#ifdef __cplusplus
}
#endif
#endif
