/* Judges a run of a suite: compares the blocks of each metric with the blocks of a baseline. All functions are pure: the same
 * inputs give the same verdicts, so that stored runs can be judged again. docs/regressions.md has the formulas. */
#ifndef RL_ANALYZE_VERDICT_H
#define RL_ANALYZE_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the method: increases with each change that can give another verdict for the same inputs. */
enum { RL_VERDICT_METHOD = 3 };
enum { RL_VERDICT_REASON_SIZE = 480 };
enum { RL_VERDICT_HISTORY_RUNS = 5 }; /* minimum number of earlier runs that show how much runs vary */
/* False discovery rate of a suite, and 1 - confidence of intervals. */
#define RL_VERDICT_Q 0.01

typedef enum rl_verdict {
  RL_VERDICT_FASTER,
  RL_VERDICT_SAME,
  RL_VERDICT_SLOWER,
  RL_VERDICT_INCONCLUSIVE,
  RL_VERDICT_INCOMPARABLE,
  RL_VERDICT_COUNT
} rl_verdict;
/* "faster" "same" "slower" "inconclusive" "incomparable". For a metric whose direction is higher, faster means higher. */
const char *rl_verdict_name(rl_verdict verdict);

typedef enum rl_verdict_direction { RL_LOWER_IS_BETTER, RL_HIGHER_IS_BETTER } rl_verdict_direction;

typedef struct rl_verdict_blocks {
  const double *values; /* one for each block; NAN: the block was dropped */
  const double *cycles; /* device cycles of the same blocks; NAN: not reported; NULL: no block reported them */
  size_t count;
} rl_verdict_blocks;

typedef struct rl_verdict_metric {
  const char *key; /* "train/fp16/epoch_ms_median" */
  rl_verdict_direction direction;
  double threshold_ratio;                  /* the suite's threshold: a smaller effect is no regression */
  const rl_verdict_blocks *baseline_runs;  /* the blocks of each baseline run, oldest first; a named baseline has one run */
  size_t baseline_run_count;               /* 0: no baseline, so incomparable */
  rl_verdict_blocks current, confirmation; /* confirmation.count is 0 until fresh blocks were measured */
  rl_verdict_blocks confirmation_baseline; /* confirming blocks of a measured baseline; count 0: the baseline's blocks are used */
  /* Medians of earlier runs, oldest first: the comparable runs since the last faster run, at most the last 30, without slower and
   * quarantined runs. The runs of the baseline are included, the current run is not. */
  const double *history;
  size_t history_count;
  const char *dropped_reason; /* why the first dropped block of the run was dropped; NULL: no block was */
  /* How the conditions differ from the baseline's conditions, as a sentence (rl_verdict_compare_conditions); NULL: they do
   * not. */
  const char *incomparable_reason;
} rl_verdict_metric;

typedef struct rl_verdict_suite {
  const rl_verdict_metric *metrics;
  size_t metric_count;
  const char *quarantine_reason; /* reason why the whole run can't be trusted, as a sentence; NULL: it can */
} rl_verdict_suite;

typedef struct rl_verdict_judgement { /* judgement of one metric; NAN: unknown */
  rl_verdict verdict;
  bool needs_confirmation; /* inconclusive until the call is repeated with as many confirmation blocks as `current` has */
  char reason[RL_VERDICT_REASON_SIZE]; /* a sentence */
  double baseline_median, current_median;
  double effect_ratio; /* current / baseline - 1, of the medians */
  /* Confidence interval of effect_ratio, by Hodges and Lehmann; INFINITY: no upper bound. */
  double interval_low_ratio, interval_high_ratio;
  double p_value, q_value; /* q_value: p_value adjusted for the suite's metrics */
  /* The factor - 1 beyond which a change, up or down, does not occur from run to run without a cause. With fewer than
   * RL_VERDICT_HISTORY_RUNS earlier runs, it is estimated from the blocks. */
  double history_limit_ratio;
  size_t history_runs;                 /* number of runs that the limit was computed from */
  double recent_median, step_ratio;    /* the median of the last five earlier runs, and current / recent_median - 1 */
  double cycles_effect_ratio;          /* the effect on device cycles */
  double confirmation_baseline_median; /* median of the measured baseline's confirming blocks; NAN: there are none */
  double confirmation_median, confirmation_effect_ratio, confirmation_p_value, confirmation_q_value;
  double confirmation_low_ratio, confirmation_high_ratio;      /* the interval of the confirming blocks */
  int confirmed;                                               /* 1 or 0; -1: no confirmation was needed or measured */
  size_t blocks_baseline, blocks_current, blocks_confirmation; /* numbers of blocks that were not dropped */
  size_t blocks_dropped;                                       /* number of dropped blocks of current and confirmation */
  size_t blocks_needed; /* number of blocks that each side needs (rl_verdict_count_needed_blocks) */
  bool baseline_bimodal, current_bimodal;
  double baseline_modes[2], current_modes[2]; /* medians of the lower and upper mode; NAN: not bimodal */
} rl_verdict_judgement;

typedef struct rl_verdict_summary {
  rl_verdict verdict; /* the first verdict of the list slower, incomparable, inconclusive, faster, same that a metric has */
  char reason[RL_VERDICT_REASON_SIZE];
  size_t counts[RL_VERDICT_COUNT]; /* counts[verdict]: number of metrics with this verdict */
  size_t unconfirmed;              /* metrics with needs_confirmation */
} rl_verdict_summary;

/* Judges all metrics together, because their p-values are adjusted together. Writes metric_count judgements. A metric with
 * needs_confirmation is judged finally when the call is repeated with confirmation blocks. If they can't be measured, its verdict
 * stays inconclusive. Fails with RL_INPUT if a threshold is not positive; fails with RL_ERRNO if memory is exhausted. */
int rl_verdict_judge_suite(const rl_verdict_suite *suite, rl_verdict_judgement *judgements, rl_verdict_summary *summary,
                           rl_error *err);

/* Returns the smallest n with 2 / C(2n, n) <= RL_VERDICT_Q / metrics. With fewer blocks, no difference can be significant after
 * the adjustment. */
size_t rl_verdict_count_needed_blocks(size_t metrics);

/* Finds a block that differs from the median by more than the threshold and lies beyond Tukey's outer fences. A named baseline
 * with such a block hides regressions: its rank test can't be significant. Returns count if there is none. Fails with RL_ERRNO
 * if memory is exhausted. */
int rl_verdict_find_outlying_block(const double *values, size_t count, double threshold_ratio, size_t *block, rl_error *err);

/* The conditions that must be equal for a comparison. A NULL member is unknown, and equal to NULL only. */
typedef struct rl_verdict_conditions {
  const char *device_name, *driver, *clock_setting, *definition_sha256; /* conditions and definition of the metric's job */
} rl_verdict_conditions;
/* Returns whether the conditions are equal; else writes a sentence that names the first difference. */
bool rl_verdict_compare_conditions(const rl_verdict_conditions *baseline, const rl_verdict_conditions *current,
                                   char reason[RL_VERDICT_REASON_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
