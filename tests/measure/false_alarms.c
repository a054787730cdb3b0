/* false_alarms RECORDED [TRIALS [SEED [SUITE]]]: draws random suite runs and prints, as Markdown tables for
 * docs/measurements/regression-verdicts.md, how often an unchanged suite raises a false alarm and how often a slow-down is found.
 * RECORDED: a file of tests/data/recorded. The times of its suite mnist are further kinds of noise. With SUITE, the times of
 * SUITE in this file are the only kinds. A process computes each row of a table. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recorded.h"
#include "suite_trials.h"

typedef struct noise_row {
  char name[RECORDED_KEY_SIZE + 32];
  trial_noise noise;
} noise_row;

/* The kinds of noise. The sizes are taken from docs/measurements: the epochs of 118 processes on an H200 lie within 0.44 %
 * (standard deviation 0.1 %), one process of 119 was 22 % slower, and the rates of three jobs differ by 0.5 % (memory) to 3 %
 * (tensor cores). */
enum { MAX_NOISES = 32 };
static noise_row noises[MAX_NOISES] = {
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
static int noise_count;

typedef struct baseline_row {
  const char *name;
  size_t baseline_runs, history_runs;
} baseline_row;
static const baseline_row baselines[] = {
    {"fixed, no history", 1, 1}, {"fixed, 20 runs", 1, 20}, {"rolling, 5 runs", 5, 5}, {"rolling, 20 runs", 5, 20}};
enum { BASELINE_COUNT = sizeof baselines / sizeof *baselines };

static const size_t metric_counts[] = {2, 8, 16};
enum { METRIC_COUNT_CHOICES = sizeof metric_counts / sizeof *metric_counts };

/* One table: suites of `blocks` blocks, unchanged or with a first metric that is slower. */
typedef struct trial_table {
  size_t blocks;
  double threshold, slow_down; /* slow_down 0: unchanged */
  long trials;                 /* number of trials of a row (unchanged suites) or of a cell (slower suites) */
  uint64_t seed;
} trial_table;

typedef struct outcome_counts {
  long trials, alarms, missed, inconclusive;
} outcome_counts;

static int run_trials(const trial_plan *plan, long trials, uint64_t seed, outcome_counts *counted) {
  for (long i = 0; i < trials; i++) {
    trial_outcome outcome;
    if (run_trial(plan, seed + (uint64_t)i, &outcome) < 0) return -1;
    counted->trials++;
    counted->alarms += outcome.summary.verdict == RL_VERDICT_SLOWER;
    counted->missed += outcome.first_metric_verdict != RL_VERDICT_SLOWER;
    counted->inconclusive += outcome.summary.verdict == RL_VERDICT_INCONCLUSIVE;
  }
  return 0;
}

/* Returns the upper end of Wilson's one-sided 95 % interval of the rate found / trials. */
static double upper_limit(long found, long trials) {
  double n = (double)trials, p = (double)found / n, z = 1.644854;
  return (p + z * z / (2 * n) + z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))) / (1 + z * z / n);
}

/* Runs the trials of a row. Unchanged suites have 2, 8 or 16 metrics, in a third of the trials each. Suites with a slow metric
 * have 8. */
static int run_row(const trial_table *table, int noise, outcome_counts row[BASELINE_COUNT]) {
  bool unchanged = table->slow_down == 0;
  for (int b = 0; b < BASELINE_COUNT; b++)
    for (int m = 0; m < METRIC_COUNT_CHOICES; m++) {
      trial_plan plan = {.noise = noises[noise].noise,
                         .metrics = metric_counts[m],
                         .blocks = table->blocks,
                         .history_runs = baselines[b].history_runs,
                         .baseline_runs = baselines[b].baseline_runs,
                         .threshold_ratio = table->threshold,
                         .slow_down_ratio = table->slow_down};
      long trials = plan.metrics == 8 ? table->trials : 0;
      if (unchanged) trials = table->trials / (BASELINE_COUNT * METRIC_COUNT_CHOICES) + 1;
      uint64_t seed = table->seed + 1000003 * (uint64_t)((noise * BASELINE_COUNT + b) * METRIC_COUNT_CHOICES + m + 1);
      if (run_trials(&plan, trials, seed, &row[b]) < 0) return -1;
    }
  return 0;
}

/* Starts a process that writes a row's counts into a pipe. Returns the read end of the pipe; -1 on failure. */
static int start_row(const trial_table *table, int noise) {
  outcome_counts row[BASELINE_COUNT] = {0};
  int ends[2];
  if (pipe(ends) < 0) return -1;
  pid_t child = fork();
  if (child == 0) {
    bool done = run_row(table, noise, row) == 0 && write(ends[1], row, sizeof row) == sizeof row;
    _exit(done ? 0 : 1);
  }
  close(ends[1]);
  return child > 0 ? ends[0] : -1;
}

static void print_header(const trial_table *table) {
  if (table->slow_down == 0)
    printf("| A/A under %.0f %%, %zu blocks: noise of blocks and runs |", 100 * table->threshold, table->blocks);
  else printf("| %.0f %% slower under %.0f %%, %zu blocks |", 100 * table->slow_down, 100 * table->threshold, table->blocks);
  for (int b = 0; b < BASELINE_COUNT; b++) printf(" %s |", baselines[b].name);
  printf("\n|");
  for (int b = 0; b < BASELINE_COUNT + 1; b++) printf(" --- |");
  puts("");
}

static void print_cell(const trial_table *table, const outcome_counts *cell) {
  double n = (double)cell->trials;
  if (table->slow_down > 0) printf(" %.2f %% |", 100 * (1 - (double)cell->missed / n));
  else printf(" %ld of %ld (%.0f %%) |", cell->alarms, cell->trials, 100 * (double)cell->inconclusive / n);
}

static void print_sums(const outcome_counts columns[BASELINE_COUNT]) {
  printf("| all |");
  for (int b = 0; b < BASELINE_COUNT; b++)
    printf(" %.2f %%, at most %.2f %% |", 100.0 * (double)columns[b].alarms / (double)columns[b].trials,
           100 * upper_limit(columns[b].alarms, columns[b].trials));
  puts("");
}

/* Prints a table. For unchanged suites, a cell has the number of suite runs with an alarm and the share of inconclusive suite
 * runs. For slower suites, it has the share of suite runs in which the slower metric was found. */
static int print_table(const trial_table *table) {
  int pipes[MAX_NOISES], rc = 0;
  outcome_counts row[BASELINE_COUNT], columns[BASELINE_COUNT] = {0};
  print_header(table);
  fflush(stdout);
  for (int n = 0; n < noise_count; n++) pipes[n] = start_row(table, n);
  for (int n = 0; n < noise_count; n++) {
    if (pipes[n] < 0 || read(pipes[n], row, sizeof row) != sizeof row) rc = -1;
    close(pipes[n]);
    if (rc < 0) continue;
    printf("| %s |", noises[n].name);
    for (int b = 0; b < BASELINE_COUNT; b++) {
      print_cell(table, &row[b]);
      columns[b].trials += row[b].trials, columns[b].alarms += row[b].alarms;
    }
    puts("");
    fflush(stdout);
  }
  while (wait(NULL) > 0) continue;
  if (rc == 0 && table->slow_down == 0) print_sums(columns);
  return rc < 0 ? rc : puts("");
}

/* Adds a kind of noise for each metric of the recorded suite that is a time. */
static int add_recorded_noises(const char *path, const char *suite_name) {
  static recorded_history history;
  if (recorded_read(path, &history) < 0) return -1;
  recorded_suite *suite = recorded_find_suite(&history, suite_name);
  if (suite == NULL) return -1;
  for (size_t i = 0; i < suite->metric_count && noise_count < MAX_NOISES; i++) {
    recorded_metric *metric = &suite->metrics[i];
    if (!metric->is_time) continue;
    noise_row *row = &noises[noise_count++];
    snprintf(row->name, sizeof row->name, "recorded: %s", metric->key);
    row->noise = (trial_noise){.family = TRIAL_RECORDED, .recorded = metric->values};
    for (size_t block = 0; block < suite->block_count; block++)
      if (isfinite(metric->values[block])) metric->values[row->noise.recorded_count++] = metric->values[block];
  }
  return 0;
}

int main(int count, char **arguments) {
  static const size_t block_counts[] = {7, 16}; /* of a suite by default, and of the shipped suites */
  static const struct { double threshold, slow_down; } cases[] = {{0.05, 0}, {0.01, 0}, {0.05, 0.08}, {0.01, 0.02}};
  long trials = count > 2 ? atol(arguments[2]) : 10000;
  uint64_t seed = count > 3 ? strtoull(arguments[3], NULL, 10) : 1;
  const char *suite_name = count > 4 ? arguments[4] : "mnist";
  while (count <= 4 && noises[noise_count].name[0] != '\0') noise_count++;
  if (count < 2 || trials < 1 || add_recorded_noises(arguments[1], suite_name) < 0) return 2;
  for (size_t b = 0; b < sizeof block_counts / sizeof *block_counts; b++)
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
      const trial_table table = {.blocks = block_counts[b],
                                 .threshold = cases[c].threshold,
                                 .slow_down = cases[c].slow_down,
                                 .trials = cases[c].slow_down == 0 ? trials : trials / 10 + 1,
                                 .seed = seed + c};
      if (print_table(&table) < 0) return 1;
    }
  return 0;
}
