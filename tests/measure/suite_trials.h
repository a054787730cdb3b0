/* Draws random runs of regression suites and judges them with daemon/analyze/verdict.h, to measure how often a false alarm is
 * raised and how often a slow-down is missed. */
#ifndef RL_TESTS_SUITE_TRIALS_H
#define RL_TESTS_SUITE_TRIALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/verdict.h"

typedef enum trial_family {
  TRIAL_NORMAL,
  TRIAL_STUDENT_3,
  TRIAL_TWO_MODES,
  TRIAL_AUTOCORRELATED,
  TRIAL_OUTLIERS,
  TRIAL_RECORDED /* stretches of consecutive recorded values: a circular block bootstrap (Politis and Romano 1992) */
} trial_family;
enum { TRIAL_RECORDED_STRETCH = 8 /* number of values, so that consecutive blocks stay correlated */ };

/* The distribution of a metric's values. A value is a constant times exp(run + block), where `run` is a random number that the
 * blocks of a run and of its confirmation share, and `block` is drawn for each block. Ratios are relative to the value. */
typedef struct trial_noise {
  trial_family family;    /* distribution of `block` */
  double block_ratio;     /* standard deviation of `block`; for TRIAL_STUDENT_3 its scale */
  double run_ratio;       /* standard deviation of the part of `run` that is independent of earlier runs */
  double walk_ratio;      /* standard deviation of the step by which a random walk changes `run` from each run to the next */
  double mode_ratio;      /* by how much the upper mode, or an outlier, exceeds the other values */
  double mode_share;      /* probability that a block is in the upper mode (TRIAL_TWO_MODES) or an outlier (TRIAL_OUTLIERS) */
  bool mode_for_a_run;    /* in TRIAL_TWO_MODES, all blocks of a run have the same mode */
  double correlation;     /* correlation of consecutive blocks in TRIAL_AUTOCORRELATED */
  const double *recorded; /* values for TRIAL_RECORDED, in the order of measurement; the other members are then ignored */
  size_t recorded_count;
} trial_noise;

typedef struct trial_plan {
  trial_noise noise;
  size_t metrics, blocks, history_runs; /* number of metrics of the suite, of blocks of a run, and of runs before the judged one
                                           (at least baseline_runs) */
  size_t baseline_runs;                 /* 1: the first of the earlier runs is the baseline; n > 1: the last n earlier runs are */
  double threshold_ratio;
  double slow_down_ratio; /* by how much the first metric of the judged run is slower; 0: no metric is slower */
} trial_plan;

enum { TRIAL_MAX_METRICS = 16, TRIAL_MAX_BLOCKS = 16, TRIAL_MAX_RUNS = 64 };

typedef struct trial_outcome {
  rl_verdict_summary summary;
  rl_verdict first_metric_verdict;
} trial_outcome;

/* Draws the runs of a plan and judges the last one; when a metric needs confirmation, judges it again with confirming blocks. The
 * same seed gives the same outcome. Returns -1 on failure. */
int run_trial(const trial_plan *plan, uint64_t seed, trial_outcome *outcome);

#endif
