/* Random runs of suites, for the rates of false alarms and of missed regressions. */
#ifndef RL_TESTS_SUITE_TRIALS_H
#define RL_TESTS_SUITE_TRIALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/verdict.h"

typedef enum trial_family { TRIAL_NORMAL, TRIAL_STUDENT_3, TRIAL_TWO_MODES, TRIAL_AUTOCORRELATED, TRIAL_OUTLIERS } trial_family;

/* A value is exp(run + block) times a constant. `run` is shared by the blocks of a run and its confirmation. */
typedef struct trial_noise {
  trial_family family; /* of blocks */
  double block_ratio;  /* standard deviation between blocks; Student: scale */
  double run_ratio;    /* standard deviation between runs, independent */
  double walk_ratio;   /* standard deviation of the step of a random walk from run to run */
  double mode_ratio;   /* distance of the upper mode, or of an outlier */
  double mode_share;   /* probability of the upper mode in TRIAL_TWO_MODES, or of an outlier, for each block */
  bool mode_for_a_run; /* all blocks of a run have the same mode */
  double correlation;  /* of consecutive blocks in TRIAL_AUTOCORRELATED */
} trial_noise;

typedef struct trial_plan {
  trial_noise noise;
  size_t metrics, blocks, history_runs; /* earlier runs, at least baseline_runs */
  size_t baseline_runs;                 /* 1: fixed, the first of the earlier runs; more: rolling, the last ones */
  double threshold_ratio;
  double slow_down_ratio; /* of the first metric in the current run; 0: none */
} trial_plan;

enum { TRIAL_MAX_METRICS = 16, TRIAL_MAX_BLOCKS = 16, TRIAL_MAX_RUNS = 64 };

typedef struct trial_outcome {
  rl_verdict_summary summary;
  rl_verdict first; /* of the first metric */
} trial_outcome;

/* Judges one random suite run, with confirming blocks where they are needed. The same seed gives the same outcome. Returns -1 on
 * failure. */
int run_trial(const trial_plan *plan, uint64_t seed, trial_outcome *outcome);

#endif
