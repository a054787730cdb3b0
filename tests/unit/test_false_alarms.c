/* Bounds the rate of false alarms and of missed regressions on random suites. docs/measurements/regression-verdicts.md has more
 * such rates, measured by tests/measure/false_alarms.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../measure/recorded.h"
#include "../measure/suite_trials.h"
#include "random_numbers.h"

enum { TRIALS = 600, RECORDED_TRIALS = 100 /* fewer, because they have more blocks and take longer */ };

static const trial_noise steady_times = {.family = TRIAL_NORMAL, .block_ratio = 0.001, .run_ratio = 0.001};
static const trial_noise some_processes_slower = {
    .family = TRIAL_OUTLIERS, .block_ratio = 0.001, .run_ratio = 0.001, .mode_ratio = 0.22, .mode_share = 1 / 119.0};
static const trial_noise two_modes = {
    .family = TRIAL_TWO_MODES, .block_ratio = 0.003, .run_ratio = 0.001, .mode_ratio = 0.1, .mode_share = 0.3};
static const trial_noise one_mode_for_a_run = {
    .family = TRIAL_TWO_MODES, .block_ratio = 0.003, .mode_ratio = 0.1, .mode_share = 0.3, .mode_for_a_run = true};
static const trial_noise heavy_tails = {.family = TRIAL_STUDENT_3, .block_ratio = 0.01, .run_ratio = 0.005};
static const trial_noise drift = {.family = TRIAL_NORMAL, .block_ratio = 0.002, .walk_ratio = 0.0025};
static const trial_noise correlated = {
    .family = TRIAL_AUTOCORRELATED, .block_ratio = 0.01, .run_ratio = 0.005, .correlation = 0.8};

/* Returns the share of random suites with the verdict `slower`: for the first metric, which is slower by slow_down_ratio, or, if
 * slow_down_ratio is 0, for any metric. */
static double share_of_alarms(const trial_noise *noise, size_t baseline_runs, size_t history_runs, double threshold_ratio,
                              double slow_down_ratio) {
  trial_plan plan = {.noise = *noise,
                     .metrics = 8,
                     .blocks = noise->family == TRIAL_RECORDED ? 16 : 7, /* as in the shipped suites; the default */
                     .history_runs = history_runs,
                     .baseline_runs = baseline_runs,
                     .threshold_ratio = threshold_ratio,
                     .slow_down_ratio = slow_down_ratio};
  int alarms = 0, trials = noise->family == TRIAL_RECORDED ? RECORDED_TRIALS : TRIALS;
  for (int i = 0; i < trials; i++) {
    trial_outcome outcome;
    assert_int_equal(run_trial(&plan, random_bits(), &outcome), 0);
    alarms +=
        slow_down_ratio > 0 ? outcome.first_metric_verdict == RL_VERDICT_SLOWER : outcome.summary.verdict == RL_VERDICT_SLOWER;
  }
  return (double)alarms / trials;
}

/* Fails if the share exceeds 0.5 % by more than five standard deviations. */
static void assert_rare(const char *name, double share) { assert_below(name, share, 0.005 + 5 * sqrt(0.005 / TRIALS)); }

static void equal_suites_raise_hardly_any_alarm(void **state) {
  (void)state;
  choose_test_seed();
  assert_rare("epochs, first comparison", share_of_alarms(&steady_times, 1, 1, 0.01, 0));
  assert_rare("a process in 119, first comparison", share_of_alarms(&some_processes_slower, 1, 1, 0.05, 0));
  assert_rare("two modes, first comparison", share_of_alarms(&two_modes, 1, 1, 0.05, 0));
  assert_rare("two modes, rolling", share_of_alarms(&two_modes, 5, 20, 0.05, 0));
  assert_rare("modes of runs, fixed", share_of_alarms(&one_mode_for_a_run, 1, 20, 0.05, 0));
  assert_rare("heavy tails, rolling", share_of_alarms(&heavy_tails, 5, 20, 0.01, 0));
  assert_rare("drift, fixed", share_of_alarms(&drift, 1, 20, 0.01, 0));
  assert_rare("autocorrelated, rolling", share_of_alarms(&correlated, 5, 20, 0.01, 0));
}

static void slow_downs_are_found(void **state) {
  (void)state;
  choose_test_seed();
  assert_below("8 % missed, fixed", 1 - share_of_alarms(&steady_times, 1, 1, 0.05, 0.08), 0.01);
  assert_below("8 % missed, rolling", 1 - share_of_alarms(&some_processes_slower, 5, 5, 0.05, 0.08), 0.03);
  assert_below("2 % missed, fixed", 1 - share_of_alarms(&steady_times, 1, 1, 0.01, 0.02), 0.1);
  assert_below("2 % missed, rolling", 1 - share_of_alarms(&some_processes_slower, 5, 20, 0.01, 0.02), 0.1);
}

/* Epochs that an H200 has recorded (tests/data/recorded). */
static void slow_downs_of_recorded_epochs_are_found(void **state) {
  (void)state;
  static recorded_history history;
  choose_test_seed();
  assert_int_equal(recorded_read(RL_SOURCE "/tests/data/recorded/h200.csv", &history), 0);
  const recorded_suite *suite = recorded_find_suite(&history, "mnist");
  assert_non_null(suite);
  size_t times = 0;
  for (size_t i = 0; i < suite->metric_count; i++) {
    const recorded_metric *metric = &suite->metrics[i];
    const trial_noise noise = {.family = TRIAL_RECORDED, .recorded = metric->values, .recorded_count = suite->block_count};
    if (!metric->is_time) continue;
    times++;
    assert_below(metric->key, share_of_alarms(&noise, 1, 1, 0.01, 0), 0.05);
    assert_below(metric->key, 1 - share_of_alarms(&noise, 1, 1, 0.01, 0.02), 0.1);
    assert_below(metric->key, 1 - share_of_alarms(&noise, 5, 5, 0.05, 0.08), 0.05);
  }
  assert_int_equal(times, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(equal_suites_raise_hardly_any_alarm),
                                     cmocka_unit_test(slow_downs_are_found),
                                     cmocka_unit_test(slow_downs_of_recorded_epochs_are_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
