/* false_alarms [TRIALS [SEED]]: draws random suite runs and prints, as Markdown tables for
 * docs/measurements/regression-verdicts.md, how often an unchanged suite raises a false alarm and how often a slow-down is
 * found. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "suite_trials.h"

typedef struct noise_row {
  const char *name;
  trial_noise noise;
} noise_row;

/* The kinds of noise. Their sizes are those of docs/measurements: the epochs of 118 processes on an H200 lie within 0.44 %
 * (standard deviation 0.1 %), one process of 119 was 22 % slower, and the rates of three jobs differ by 0.5 % (memory) to 3 %
 * (tensor cores). */
static const noise_row noises[] = {
    {"H200 epochs: normal 0.1 %, runs 0.1 %", {.family = TRIAL_NORMAL, .block_ratio = 0.001, .run_ratio = 0.001}},
    {"H200 epochs, 1 of 119 processes +22 %",
     {.family = TRIAL_OUTLIERS, .block_ratio = 0.001, .run_ratio = 0.001, .mode_ratio = 0.22, .mode_share = 1 / 119.0}},
    {"H200 rates: normal 0.25 %, runs 0.25 %", {.family = TRIAL_NORMAL, .block_ratio = 0.0025, .run_ratio = 0.0025}},
    {"normal 1 %, runs 1 %", {.family = TRIAL_NORMAL, .block_ratio = 0.01, .run_ratio = 0.01}},
    {"normal 3 %", {.family = TRIAL_NORMAL, .block_ratio = 0.03}},
    {"heavy tails: Student (3) 1 %, runs 0.5 %", {.family = TRIAL_STUDENT_3, .block_ratio = 0.01, .run_ratio = 0.005}},
    {"heavy tails: Student (3) 5 %", {.family = TRIAL_STUDENT_3, .block_ratio = 0.05}},
    {"two modes 10 % apart, 30 % of blocks",
     {.family = TRIAL_TWO_MODES, .block_ratio = 0.003, .run_ratio = 0.001, .mode_ratio = 0.1, .mode_share = 0.3}},
    {"two modes 10 % apart, 30 % of runs",
     {.family = TRIAL_TWO_MODES, .block_ratio = 0.003, .mode_ratio = 0.1, .mode_share = 0.3, .mode_for_a_run = true}},
    {"drift: random walk 0.25 % a run", {.family = TRIAL_NORMAL, .block_ratio = 0.002, .walk_ratio = 0.0025}},
    {"drift: random walk 1 % a run", {.family = TRIAL_NORMAL, .block_ratio = 0.003, .walk_ratio = 0.01}},
    {"autocorrelated 0.8, 1 %, runs 0.5 %",
     {.family = TRIAL_AUTOCORRELATED, .block_ratio = 0.01, .run_ratio = 0.005, .correlation = 0.8}},
    {"autocorrelated 0.95, 3 %", {.family = TRIAL_AUTOCORRELATED, .block_ratio = 0.03, .correlation = 0.95}}};
enum { NOISES = sizeof noises / sizeof *noises };

typedef struct baseline_row {
  const char *name;
  size_t baseline_runs, history_runs;
} baseline_row;
static const baseline_row baselines[] = {
    {"fixed, no history", 1, 1}, {"fixed, 20 runs", 1, 20}, {"rolling, 5 runs", 5, 5}, {"rolling, 20 runs", 5, 20}};
enum { BASELINES = sizeof baselines / sizeof *baselines };

static const size_t metric_counts[] = {2, 8, 16};
enum { METRIC_COUNTS = sizeof metric_counts / sizeof *metric_counts };

typedef struct rates {
  long trials, alarms, missed, inconclusive;
} rates;

static int run_trials(const trial_plan *plan, long trials, uint64_t seed, rates *counted) {
  for (long i = 0; i < trials; i++) {
    trial_outcome outcome;
    if (run_trial(plan, seed + (uint64_t)i, &outcome) < 0) return -1;
    counted->trials++;
    counted->alarms += outcome.summary.verdict == RL_VERDICT_SLOWER;
    counted->missed += outcome.first != RL_VERDICT_SLOWER;
    counted->inconclusive += outcome.summary.verdict == RL_VERDICT_INCONCLUSIVE;
  }
  return 0;
}

/* Returns the upper end of Wilson's one-sided 95 % interval of the rate found / trials. */
static double upper_limit(long found, long trials) {
  double n = (double)trials, p = (double)found / n, z = 1.644854;
  return (p + z * z / (2 * n) + z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))) / (1 + z * z / n);
}

static trial_plan make_plan(const noise_row *noise, const baseline_row *baseline, size_t metrics, double threshold,
                            double slow_down) {
  return (trial_plan){.noise = noise->noise,
                      .metrics = metrics,
                      .blocks = 7,
                      .history_runs = baseline->history_runs,
                      .baseline_runs = baseline->baseline_runs,
                      .threshold_ratio = threshold,
                      .slow_down_ratio = slow_down};
}

static void print_header(const char *first) {
  printf("| %s |", first);
  for (int b = 0; b < BASELINES; b++) printf(" %s |", baselines[b].name);
  printf("\n|");
  for (int b = 0; b < BASELINES + 1; b++) printf(" --- |");
  puts("");
}

/* Prints the table of unchanged suites: in each cell, the number of suite runs with an alarm, and the share of inconclusive
 * ones. */
static int print_false_alarms(long trials, uint64_t seed, double threshold) {
  char title[64];
  snprintf(title, sizeof title, "A/A under %.0f %%: noise of blocks and runs", 100 * threshold);
  print_header(title);
  rates columns[BASELINES] = {0};
  for (int n = 0; n < NOISES; n++) {
    printf("| %s |", noises[n].name);
    for (int b = 0; b < BASELINES; b++) {
      rates cell = {0};
      for (int m = 0; m < METRIC_COUNTS; m++) {
        trial_plan plan = make_plan(&noises[n], &baselines[b], metric_counts[m], threshold, 0);
        if (run_trials(&plan, trials / (BASELINES * METRIC_COUNTS) + 1, seed += 1000003, &cell) < 0) return -1;
      }
      columns[b].trials += cell.trials, columns[b].alarms += cell.alarms;
      printf(" %ld of %ld (%.0f %%) |", cell.alarms, cell.trials, 100.0 * (double)cell.inconclusive / (double)cell.trials);
      fflush(stdout);
    }
    puts("");
  }
  printf("| all |");
  for (int b = 0; b < BASELINES; b++)
    printf(" %.2f %%, at most %.2f %% |", 100.0 * (double)columns[b].alarms / (double)columns[b].trials,
           100 * upper_limit(columns[b].alarms, columns[b].trials));
  puts("\n");
  return 0;
}

static int print_detection(long trials, uint64_t seed) {
  static const struct { double slow_down, threshold; } cases[] = {{0.08, 0.05}, {0.02, 0.01}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char title[64];
    snprintf(title, sizeof title, "%.0f %% slower under %.0f %%", 100 * cases[c].slow_down, 100 * cases[c].threshold);
    print_header(title);
    for (int n = 0; n < NOISES; n++) {
      printf("| %s |", noises[n].name);
      for (int b = 0; b < BASELINES; b++) {
        rates counted = {0};
        trial_plan plan = make_plan(&noises[n], &baselines[b], 8, cases[c].threshold, cases[c].slow_down);
        if (run_trials(&plan, trials, seed += 1000003, &counted) < 0) return -1;
        printf(" %.2f %% |", 100 * (1 - (double)counted.missed / (double)counted.trials));
        fflush(stdout);
      }
      puts("");
    }
    puts("");
  }
  return 0;
}

int main(int count, char **arguments) {
  long trials = count > 1 ? atol(arguments[1]) : 10000;
  uint64_t seed = count > 2 ? strtoull(arguments[2], NULL, 10) : 1;
  if (trials < 1) return 2;
  if (print_false_alarms(trials, seed, 0.05) < 0 || print_false_alarms(trials, seed + 1, 0.01) < 0) return 1;
  return print_detection(trials / 10 + 1, seed + 2) < 0;
}
