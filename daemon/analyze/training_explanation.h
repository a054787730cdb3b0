/* Explains in sentences where the epochs of two training runs spend their time and memory, why one is faster than the other, and
 * why it is not faster still. Each sentence has its numbers and the kernels or phases that show them. Pure functions over stored
 * measurements; docs/jobs.md has the definitions. */
#ifndef RL_ANALYZE_TRAINING_EXPLANATION_H
#define RL_ANALYZE_TRAINING_EXPLANATION_H

#include <stddef.h>
#include <stdint.h>

#include "analyze/kernel_verdict.h"
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Classes of the time of a traced epoch. The whole time of a kernel belongs to the class of the kernel's verdict: one of the
 * first four, or RL_EPOCH_UNKNOWN. */
typedef enum rl_epoch_class {
  RL_EPOCH_ARITHMETIC, /* kernels that a pipeline or the issue slots bound */
  RL_EPOCH_MEMORY,     /* kernels that DRAM, L2, L1, shared memory, atomics, or the pipelines of memory instructions bound */
  RL_EPOCH_LATENCY,    /* kernels that latency or their longest blocks bound */
  RL_EPOCH_TOO_SMALL,  /* kernels too short to tell what bounds them, or with too few blocks */
  RL_EPOCH_EXCHANGE,   /* phases of a kernel that exchange data between blocks, or wait at a barrier of the grid */
  RL_EPOCH_LAUNCH,     /* time without work on the device */
  RL_EPOCH_COPY,       /* copies and memsets */
  RL_EPOCH_UNKNOWN,    /* kernels without a verdict */
  RL_EPOCH_CLASS_COUNT
} rl_epoch_class;
extern const char *const rl_epoch_class_names[RL_EPOCH_CLASS_COUNT]; /* "arithmetic" ... "unknown" */

/* A part whose time shrinks by a smaller factor than this counts as one that limits the speed-up of the epoch. */
#define RL_LITTLE_GAIN_RATIO 1.5

/* All executions in the traced epoch of a kernel, or of a phase inside a kernel. */
typedef struct rl_training_part {
  char launch[128];      /* name of the launch: "conv2_forward" */
  char phase[64];        /* name of the phase; "": the whole kernel */
  double total_us;       /* time of all launches in the epoch */
  int64_t launches;      /* number of launches in the epoch */
  int64_t report_kernel; /* ordinal of the kernel in the run's report; -1: its counters were not collected */
  rl_kernel_verdict verdict;
  char note[256];                   /* reason why report_kernel is -1, or which execution's counters it has; "": none */
  double conversions, instructions; /* instructions of one launch: FP16/FP32 conversions, and all; NAN: unknown, or a phase */
} rl_training_part;

enum { RL_MEMORY_PURPOSES = 4 };
extern const char *const rl_memory_purposes[RL_MEMORY_PURPOSES]; /* "dataset" "weights" "activations" "workspace" */

/* Numbers are NAN if they were not measured; the reasons may be NULL. Texts are borrowed. */
typedef struct rl_training_run {
  int64_t id;
  const char *variant;   /* "fp32" */
  const char *precision; /* "fp32" "tf32" "fp16" */
  const rl_training_part *parts;
  size_t part_count;
  double epoch_ms;              /* median, of the timing pass */
  double traced_ms, busy_ratio; /* the traced epoch, and the share of it with work on the device */
  double operations;            /* operations that an epoch must at least execute */
  double operations_per_s;      /* the device's measured rate for them */
  double memory_bytes[RL_MEMORY_PURPOSES];
  double skipped_steps, steps; /* numbers of steps in the measured epochs */
  const char *trace_reason, *counters_reason, *rate_reason, *memory_reason, *scaling_reason;
} rl_training_run;

typedef struct rl_training_pair {
  const rl_training_run *baseline, *candidate;
  double speedup_ratio; /* ratio of the median epochs; NAN: speedup_reason says why */
  const char *speedup_reason;
} rl_training_pair;

enum { RL_EXPLANATION_TEXT_SIZE = 1280, RL_EXPLANATION_MAX_VALUES = 8, RL_EXPLANATION_MAX_LINKS = 6, RL_EXPLANATION_MAX = 10 };

typedef struct rl_explained_value {
  const char *name, *unit; /* static; unit: "ms" "B" "ratio" "step" */
  double value;            /* NAN: not measured */
  char reason[300];        /* reason why value is NAN; "": it was measured */
} rl_explained_value;

typedef struct rl_explained_part {
  int64_t run;
  const rl_training_part *part;
  double time_ms; /* time in the traced epoch */
} rl_explained_part;

typedef struct rl_explanation_sentence {
  const char *topic;                   /* "epoch" "speedup" "limit" "arithmetic" "memory" "weights" "conversions" "scaling" */
  int64_t run;                         /* the run that the sentence is about; 0: both */
  char text[RL_EXPLANATION_TEXT_SIZE]; /* "": `reason` says why nothing can be said */
  char reason[300];
  rl_explained_value values[RL_EXPLANATION_MAX_VALUES];
  size_t value_count;
  rl_explained_part links[RL_EXPLANATION_MAX_LINKS]; /* the parts that show what the sentence says */
  size_t link_count;
} rl_explanation_sentence;

typedef struct rl_explanation {
  rl_explanation_sentence sentences[RL_EXPLANATION_MAX];
  size_t count;
} rl_explanation;

/* The result points into the runs. Fails with RL_ERRNO if memory is exhausted. */
int rl_training_explain(const rl_training_pair *pair, rl_explanation *explanation, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
