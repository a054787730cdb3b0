/* Attributes the difference of a time between two runs to kernels, phases, clocks and gaps, using the profiles of both runs, and
 * lists for each cause the properties that differ. The causes add up to the difference. All functions are pure.
 * docs/regressions.md has the rules. */
#ifndef RL_ANALYZE_REGRESSION_CAUSES_H
#define RL_ANALYZE_REGRESSION_CAUSES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "model/metrics.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rl_regression_cause_class {
  RL_REGRESSION_CODE,          /* machine code differs */
  RL_REGRESSION_CONFIGURATION, /* launches, parameters, data set, engine, libraries or driver differ */
  RL_REGRESSION_DEVICE,        /* clocks, throttling, another device of the same model, other processes on the device */
  RL_REGRESSION_HARNESS,       /* the worker's build differs, but not this kernel's code; or the time between kernels differs */
  RL_REGRESSION_NOISE,         /* no known property differs */
  RL_REGRESSION_CLASS_COUNT
} rl_regression_cause_class;
/* "code" "configuration" "device" "harness" "noise" */
const char *rl_regression_cause_class_name(rl_regression_cause_class class_);

/* All executions of a kernel in the measured iteration, or of a phase inside a kernel. */
typedef struct rl_regression_kernel {
  const char *launch, *phase, *name; /* as in rl_kernel; NULL or "": unknown */
  int64_t launches;
  double total_us;
  const char *code_sha256;                                                /* NULL or "": unknown */
  double registers_per_thread, static_shared_bytes, dynamic_shared_bytes; /* NAN: unknown */
  double theoretical_occupancy_ratio;
  int64_t grid[3], block[3];
  rl_metric_values metrics; /* metrics of the counters pass; count 0: not measured */
  bool is_merged;           /* set by rl_regression_causes_find: several rows are added up, and their launches may differ */
} rl_regression_kernel;

/* A run and its profile. A text that is NULL is unknown, and equal only to NULL. */
typedef struct rl_regression_run {
  const rl_regression_kernel *kernels;
  size_t kernel_count;
  double total_us;     /* the time whose difference is attributed; NAN: the sum of the kernels */
  bool is_kernel_time; /* total_us contains no time between kernels, so the kernels' shares add up to it */
  double sm_clock_mhz, memory_clock_mhz, power_w; /* medians during the iteration; NAN: unknown */
  const char *throttle_reasons, *device_uuid;
  const char *other_processes; /* other processes on the device while the time was measured; NULL or "": none, or unknown */
  const char *driver, *libraries, *engine, *params, *dataset_sha256;
  const char *worker_commit;
  const char *posted_sha256; /* hash of posted code, which params do not contain; NULL: the worker's code */
} rl_regression_run;

enum { RL_REGRESSION_MAX_EVIDENCE = 12, RL_REGRESSION_TEXT_SIZE = 512, RL_REGRESSION_VALUE_SIZE = 80 };

typedef struct rl_regression_evidence {
  char property[RL_REGRESSION_VALUE_SIZE];                                    /* "grid", "registers_per_thread", "sm_clock_mhz" */
  char baseline[RL_REGRESSION_VALUE_SIZE], current[RL_REGRESSION_VALUE_SIZE]; /* "unknown": not recorded */
} rl_regression_evidence;

typedef struct rl_regression_cause {
  rl_regression_cause_class class_;
  char subject[RL_REGRESSION_VALUE_SIZE * 2]; /* launch or kernel; "": the cause concerns several */
  double difference_us;                       /* current - baseline */
  double share_ratio;                         /* share of the runs' difference; NAN: the runs do not differ */
  rl_regression_evidence evidence[RL_REGRESSION_MAX_EVIDENCE];
  size_t evidence_count;
  char text[RL_REGRESSION_TEXT_SIZE]; /* a sentence */
} rl_regression_cause;

typedef struct rl_regression_causes {
  rl_regression_cause *items; /* the largest differences first */
  size_t count;
  double difference_us; /* difference of the runs' total_us; the sum of the items */
} rl_regression_causes;

/* The caller clears *causes. Fails with RL_INPUT if a kernel's time is not finite; fails with RL_ERRNO if memory is exhausted. */
int rl_regression_causes_find(const rl_regression_run *baseline, const rl_regression_run *current, rl_regression_causes *causes,
                              rl_error *err);
void rl_regression_causes_clear(rl_regression_causes *causes);

#ifdef __cplusplus
}
#endif
#endif
