/* Tests the verdicts on metrics and suites: each rule on both sides of its limit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/statistics.h"
#include "analyze/verdict.h"

enum { BLOCKS = 7 };
static const double relative_values[BLOCKS] = {1.000, 1.002, 0.998, 1.001, 0.999, 1.003, 0.997}; /* median 1 */

/* Fills the values of a run's blocks, whose median is `factor`. */
static void fill_blocks(double factor, double values[BLOCKS]) {
  for (int i = 0; i < BLOCKS; i++) values[i] = factor * relative_values[i];
}

static void assert_verdict(const rl_verdict_judgement *judged, rl_verdict verdict, const char *text) {
  if (judged->verdict != verdict || strstr(judged->reason, text) == NULL)
    fail_msg("%s: \"%s\" is not %s: \"%s\"", rl_verdict_name(judged->verdict), judged->reason, rl_verdict_name(verdict), text);
}

static rl_verdict_judgement judge_metric(rl_verdict_metric metric) {
  rl_verdict_judgement judged;
  rl_verdict_summary summary;
  rl_verdict_suite suite = {.metrics = &metric, .metric_count = 1};
  assert_int_equal(rl_verdict_judge_suite(&suite, &judged, &summary, NULL), 0);
  assert_int_equal(summary.verdict, judged.verdict);
  return judged;
}

static void an_effect_beyond_the_threshold_needs_confirmation(void **state) {
  (void)state;
  double baseline[BLOCKS], current[BLOCKS], confirming[BLOCKS];
  fill_blocks(20, baseline), fill_blocks(21.6, current), fill_blocks(21.5, confirming);
  rl_verdict_blocks run = {baseline, NULL, BLOCKS};
  rl_verdict_metric metric = {.key = "train/fp16/epoch_ms_median",
                              .threshold_ratio = 0.05,
                              .baseline_runs = &run,
                              .baseline_run_count = 1,
                              .current = {current, NULL, BLOCKS}};
  rl_verdict_judgement first = judge_metric(metric);
  assert_verdict(&first, RL_VERDICT_INCONCLUSIVE, "fresh blocks have to confirm it");
  assert_true(first.needs_confirmation && first.confirmed == -1);
  metric.confirmation = (rl_verdict_blocks){confirming, NULL, BLOCKS};
  rl_verdict_judgement second = judge_metric(metric);
  assert_verdict(&second, RL_VERDICT_SLOWER, "8 % above the baseline's 20.00 ms");
  assert_true(!second.needs_confirmation && second.confirmed == 1);
  metric.direction = RL_HIGHER_IS_BETTER;
  second = judge_metric(metric);
  assert_verdict(&second, RL_VERDICT_FASTER, "7 fresh blocks confirm it");
  metric.confirmation.values = baseline;
  second = judge_metric(metric);
  assert_verdict(&second, RL_VERDICT_INCONCLUSIVE, "fresh blocks don't confirm it");
  assert_int_equal(second.confirmed, 0);
}

/* If a run measures its baseline, its confirming blocks are compared with the baseline's confirming blocks. Here the device has
 * become slower for the run and for the baseline. */
static void confirming_blocks_are_compared_with_their_own_baseline(void **state) {
  (void)state;
  double baseline[BLOCKS], current[BLOCKS], confirming[BLOCKS], other[BLOCKS];
  fill_blocks(20, baseline), fill_blocks(21.6, current), fill_blocks(24, confirming), fill_blocks(22.2, other);
  rl_verdict_blocks run = {baseline, NULL, BLOCKS};
  rl_verdict_metric metric = {.key = "a",
                              .threshold_ratio = 0.05,
                              .baseline_runs = &run,
                              .baseline_run_count = 1,
                              .current = {current, NULL, BLOCKS},
                              .confirmation = {confirming, NULL, BLOCKS},
                              .confirmation_baseline = {other, NULL, BLOCKS}};
  rl_verdict_judgement judged = judge_metric(metric);
  assert_verdict(&judged, RL_VERDICT_SLOWER, "confirm it with a median 8.1 % above");
  assert_true(judged.confirmation_baseline_median == other[0] &&
              fabs(judged.confirmation_effect_ratio - (24 / 22.2 - 1)) < 1e-12);
  fill_blocks(24, other);
  judged = judge_metric(metric);
  assert_verdict(&judged, RL_VERDICT_INCONCLUSIVE, "fresh blocks don't confirm it: their median is equal to");
  metric.confirmation_baseline.count = 4;
  judged = judge_metric(metric);
  assert_verdict(&judged, RL_VERDICT_INCONCLUSIVE, "only 4 of 5 confirming blocks");
}

/* --- each rule on both sides of its limit ------------------------------------------------------------------------------- */

typedef struct metric_case {
  double baseline, current, confirming; /* medians; 0: no blocks */
  double history[12];                   /* medians of earlier runs, up to the first 0 */
  double baseline_cycles, current_cycles;
  double threshold;
  rl_verdict_direction direction;
  rl_verdict verdict;
  const char *reason;
} metric_case;

static const metric_case cases[] = {
    {20, 20.9, 0, .threshold = 0.05, .verdict = RL_VERDICT_SAME, .reason = "4.5 % above"},
    {20, 20.95, 0, .threshold = 0.05, .verdict = RL_VERDICT_INCONCLUSIVE, .reason = "reaches beyond the threshold of 5 %"},
    {20, 21.05, 21.05, .threshold = 0.05, .verdict = RL_VERDICT_INCONCLUSIVE, .reason = "maybe by less than the threshold"},
    {20, 21.3, 21.3, .threshold = 0.05, .verdict = RL_VERDICT_SLOWER, .reason = "6.5 % above the baseline's 20"},
    {20, 21.3, 20.9, .threshold = 0.05, .verdict = RL_VERDICT_INCONCLUSIVE,
     .reason = "fresh blocks don't confirm it: their median is 4.5 %"},
    {20, 18.5, 18.6, .threshold = 0.05, .verdict = RL_VERDICT_FASTER, .reason = "7.5 % below"},
    {20, 18.5, 21.6, .threshold = 0.05, .verdict = RL_VERDICT_INCONCLUSIVE, .reason = "fresh blocks don't confirm it"},
    {20, 18.5, 18.6, .threshold = 0.05, .direction = RL_HIGHER_IS_BETTER, .verdict = RL_VERDICT_SLOWER, .reason = "7.5 % below"},
    /* earlier runs differ from each other by 3 %, then by 0.1 % */
    {20, 21.6, 21.6, .history = {20, 20.6, 20, 20.6, 20, 20.6, 20, 20.6, 20}, .threshold = 0.05,
     .verdict = RL_VERDICT_INCONCLUSIVE, .reason = "differ no more than runs of this metric do"},
    {20, 21.6, 21.6, .history = {20, 20.02, 20, 20.02, 20, 20.02, 20, 20.02, 20}, .threshold = 0.05, .verdict = RL_VERDICT_SLOWER,
     .reason = "8 % above"},
    /* earlier runs differ by the factor 2: the limit is the same factor for higher and for lower values */
    {20, 70, 70, .history = {20, 40, 20, 40, 20, 40, 20, 40, 20}, .threshold = 0.05, .verdict = RL_VERDICT_INCONCLUSIVE,
     .reason = "the limit is 1034 %"},
    {20, 240, 240, .history = {20, 40, 20, 40, 20, 40, 20, 40, 20}, .threshold = 0.05, .verdict = RL_VERDICT_SLOWER,
     .reason = "1100 % above"},
    {20, 1.8, 1.8, .history = {20, 40, 20, 40, 20, 40, 20, 40, 20}, .threshold = 0.05, .verdict = RL_VERDICT_INCONCLUSIVE,
     .reason = "the limit is 91 %"},
    {20, 1.7, 1.7, .history = {20, 40, 20, 40, 20, 40, 20, 40, 20}, .threshold = 0.05, .verdict = RL_VERDICT_FASTER,
     .reason = "92 % below"},
    /* eleven runs rise gradually from the baseline to the current value; then only the last step is large */
    {20, 21.6, 21.6, .history = {20, 20.1, 20.3, 20.4, 20.6, 20.7, 20.9, 21, 21.2, 21.3, 21.5}, .threshold = 0.05,
     .verdict = RL_VERDICT_INCONCLUSIVE, .reason = "the metric drifted away"},
    {20, 22.8, 22.8, .history = {20, 20, 20.05, 20.05, 20.1, 20.1, 20.15, 20.15, 20.2, 20.2, 20.25}, .threshold = 0.05,
     .verdict = RL_VERDICT_SLOWER, .reason = "14 % above"},
    /* cycles rise by less than half of the effect, by more, and fall; then a rate falls and cycles rise */
    {20, 21.6, 21.6, .baseline_cycles = 40e6, .current_cycles = 41.5e6, .threshold = 0.05, .verdict = RL_VERDICT_INCONCLUSIVE,
     .reason = "the clock differs, not the work"},
    {20, 21.6, 21.6, .baseline_cycles = 40e6, .current_cycles = 41.7e6, .threshold = 0.05, .verdict = RL_VERDICT_SLOWER,
     .reason = ""},
    {20, 21.6, 21.6, .baseline_cycles = 40e6, .current_cycles = 39e6, .threshold = 0.05, .verdict = RL_VERDICT_INCONCLUSIVE,
     .reason = "2.5 % below the baseline's: the clock"},
    {20, 18.4, 18.4, .baseline_cycles = 40e6, .current_cycles = 43e6, .threshold = 0.05, .direction = RL_HIGHER_IS_BETTER,
     .verdict = RL_VERDICT_SLOWER, .reason = "8 % below"}};

static void each_rule_decides_at_its_limit(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const metric_case *c = &cases[i];
    double baseline[BLOCKS], current[BLOCKS], confirming[BLOCKS], before[BLOCKS], now[BLOCKS];
    fill_blocks(c->baseline, baseline), fill_blocks(c->current, current), fill_blocks(c->confirming, confirming);
    fill_blocks(c->baseline_cycles, before), fill_blocks(c->current_cycles, now);
    bool cycles = c->baseline_cycles > 0;
    rl_verdict_blocks run = {baseline, cycles ? before : NULL, BLOCKS};
    size_t history = 0;
    while (c->history[history] > 0) history++;
    rl_verdict_judgement judged =
        judge_metric((rl_verdict_metric){.key = "a",
                                         .direction = c->direction,
                                         .threshold_ratio = c->threshold,
                                         .baseline_runs = &run,
                                         .baseline_run_count = 1,
                                         .current = {current, cycles ? now : NULL, BLOCKS},
                                         .confirmation = {confirming, cycles ? now : NULL, c->confirming > 0 ? BLOCKS : 0},
                                         .history = c->history,
                                         .history_count = history});
    if (judged.verdict != c->verdict) print_message("case %zu\n", i);
    assert_verdict(&judged, c->verdict, c->reason);
    assert_true(strlen(judged.reason) < RL_VERDICT_REASON_SIZE - 1 && judged.reason[strlen(judged.reason) - 1] == '.');
  }
}

static void the_values_of_a_reason_differ_if_the_medians_differ(void **state) {
  (void)state;
  static const struct {
    const char *key;
    double baseline, current;
    const char *reason;
  } medians[] = {
      {"relu/vector/time_cold_us_median", 20000, 20900, "20.90 ms, is 4.5 % above the baseline's 20.00 ms"},
      {"relu/vector/time_cold_us_median", 20000, 20000, "20.00 ms, is equal to the baseline's 20.00 ms"},
      {"relu/vector/time_cold_us_median", 20000, 20001, "20.001 ms, is 0.005 % above the baseline's 20.000 ms"},
      {"peak_memory_bytes", 12.3 * 1073741824, 12.34 * 1073741824, "12.34 GiB, is 0.33 % above the baseline's 12.30 GiB"},
      {"skipped_ratio", 1e-5, 1.01e-5, "0.001010 %, is 1 % above the baseline's 0.001000 %"},
      {"energy_j", 500, 501, "501.0 J, is 0.2 % above the baseline's 500.0 J"}};
  for (size_t i = 0; i < sizeof medians / sizeof *medians; i++) {
    double baseline[BLOCKS], current[BLOCKS];
    fill_blocks(medians[i].baseline, baseline), fill_blocks(medians[i].current, current);
    rl_verdict_blocks run = {baseline, NULL, BLOCKS};
    rl_verdict_judgement judged = judge_metric((rl_verdict_metric){.key = medians[i].key,
                                                                   .threshold_ratio = 0.05,
                                                                   .baseline_runs = &run,
                                                                   .baseline_run_count = 1,
                                                                   .current = {current, NULL, BLOCKS}});
    assert_verdict(&judged, RL_VERDICT_SAME, medians[i].reason);
  }
}

/* --- what can't be compared --------------------------------------------------------------------------------------------- */

static rl_verdict_metric simple_metric(const rl_verdict_blocks *run, const double *current) {
  return (rl_verdict_metric){
      .key = "a", .threshold_ratio = 0.05, .baseline_runs = run, .baseline_run_count = 1, .current = {current, NULL, BLOCKS}};
}

static void a_missing_or_other_baseline_is_incomparable(void **state) {
  (void)state;
  double values[BLOCKS];
  fill_blocks(20, values);
  rl_verdict_blocks run = {values, NULL, BLOCKS};
  rl_verdict_metric metric = simple_metric(&run, values);
  metric.incomparable_reason = "The driver differs: 570 in the baseline, 580 now.";
  rl_verdict_judgement judged = judge_metric(metric);
  assert_verdict(&judged, RL_VERDICT_INCOMPARABLE, "The driver differs");
  assert_true(judged.effect_ratio == 0);
  metric = simple_metric(NULL, values);
  metric.baseline_run_count = 0;
  judged = judge_metric(metric);
  assert_verdict(&judged, RL_VERDICT_INCOMPARABLE, "no baseline");
  assert_true(isnan(judged.effect_ratio) && isnan(judged.p_value) && isnan(judged.history_limit_ratio));
}

static void the_first_different_condition_is_named(void **state) {
  (void)state;
  char reason[RL_VERDICT_REASON_SIZE] = "";
  rl_verdict_conditions before = {"NVIDIA H200", "570", NULL, "ab"}, now = before;
  assert_true(rl_verdict_compare_conditions(&before, &now, reason));
  now.clock_setting = "locked at 1500 MHz", now.definition_sha256 = "cd";
  assert_false(rl_verdict_compare_conditions(&before, &now, reason));
  assert_string_equal(reason, "The clock setting differs: unknown in the baseline, locked at 1500 MHz now.");
}

static void dropped_blocks_are_counted_and_can_be_too_many(void **state) {
  (void)state;
  double baseline[BLOCKS], current[BLOCKS];
  fill_blocks(20, baseline), fill_blocks(20, current);
  rl_verdict_blocks run = {baseline, NULL, BLOCKS};
  current[3] = NAN;
  rl_verdict_judgement judged = judge_metric(
      simple_metric(&run, current)); /* one metric needs 5 blocks: the smallest p-value is then 2 / C(10, 5) = 0.008 */
  assert_verdict(&judged, RL_VERDICT_SAME, "6 blocks");
  assert_int_equal(judged.blocks_dropped, 1), assert_int_equal(judged.blocks_needed, 5);
  current[1] = current[2] = NAN;
  judged = judge_metric(simple_metric(&run, current));
  assert_verdict(&judged, RL_VERDICT_INCONCLUSIVE, "5 of each are needed");
}

static void more_metrics_need_more_blocks(void **state) {
  (void)state;
  static const size_t expected[][2] = {{1, 5}, {2, 6}, {4, 6}, {5, 7}, {17, 7}, {18, 8}, {64, 8}};
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
    assert_int_equal(rl_verdict_count_needed_blocks(expected[i][0]), expected[i][1]);
}

static void constants_are_compared_by_their_value(void **state) {
  (void)state;
  static const double zeros[BLOCKS], two[BLOCKS] = {2, 2, 2, 2, 2, 2, 2}, three[BLOCKS] = {3, 3, 3, 3, 3, 3, 3};
  rl_verdict_blocks run = {two, NULL, BLOCKS}, none = {zeros, NULL, BLOCKS};
  rl_verdict_judgement judged = judge_metric(simple_metric(&run, two));
  assert_verdict(&judged, RL_VERDICT_SAME, "interval is 0 to 0 %");
  judged = judge_metric(simple_metric(&none, zeros));
  assert_verdict(&judged, RL_VERDICT_SAME, "0");
  judged = judge_metric(simple_metric(&none, two));
  assert_verdict(&judged, RL_VERDICT_INCONCLUSIVE, "a ratio needs positive values");
  rl_verdict_metric metric = simple_metric(&run, three);
  metric.confirmation = metric.current;
  judged = judge_metric(metric);
  assert_verdict(&judged, RL_VERDICT_SLOWER, "50 % above");
}

/* --- modes -------------------------------------------------------------------------------------------------------------- */

/* A quarter of the baseline's blocks ran at a lower clock. A run whose blocks all have the times of that clock may have them by
 * chance. A run with still longer times is slower. */
static void a_run_in_one_of_two_modes_is_inconclusive(void **state) {
  (void)state;
  double pooled[3 * BLOCKS], current[BLOCKS], confirming[BLOCKS];
  for (int i = 0; i < 3 * BLOCKS; i++) pooled[i] = (i % 4 == 0 ? 22 : 20) * relative_values[i % BLOCKS];
  fill_blocks(22, current), fill_blocks(22, confirming);
  rl_verdict_blocks run = {pooled, NULL, 3 * BLOCKS};
  rl_verdict_metric metric = simple_metric(&run, current);
  metric.confirmation = (rl_verdict_blocks){confirming, NULL, BLOCKS};
  rl_verdict_judgement judged = judge_metric(metric);
  assert_int_equal(judged.verdict, RL_VERDICT_INCONCLUSIVE);
  assert_non_null(strstr(judged.reason, "two modes"));
  assert_true(judged.baseline_bimodal && !judged.current_bimodal);
  assert_true(fabs(judged.baseline_modes[0] - 20) < 0.1 && fabs(judged.baseline_modes[1] - 22) < 0.1);
  fill_blocks(30, current), fill_blocks(30, confirming);
  judged = judge_metric(metric);
  assert_verdict(&judged, RL_VERDICT_SLOWER, "50 % above");
}

static void an_outlying_block_is_found(void **state) {
  (void)state;
  double values[BLOCKS];
  size_t block;
  fill_blocks(20, values);
  assert_int_equal(rl_verdict_find_outlying_block(values, BLOCKS, 0.05, &block, NULL), 0);
  assert_int_equal(block, BLOCKS);
  values[2] = 20.8; /* an outlier, but within the threshold */
  assert_int_equal(rl_verdict_find_outlying_block(values, BLOCKS, 0.05, &block, NULL), 0);
  assert_int_equal(block, BLOCKS);
  values[2] = 21.2;
  assert_int_equal(rl_verdict_find_outlying_block(values, BLOCKS, 0.05, &block, NULL), 0);
  assert_int_equal(block, 2);
}

/* --- suites ------------------------------------------------------------------------------------------------------------- */

static void a_suite_has_the_worst_verdict(void **state) {
  (void)state;
  double baseline[BLOCKS], slower[BLOCKS], faster[BLOCKS];
  fill_blocks(20, baseline), fill_blocks(22, slower), fill_blocks(18, faster);
  rl_verdict_blocks run = {baseline, NULL, BLOCKS};
  rl_verdict_metric metrics[5];
  const double *current[] = {baseline, faster, slower, baseline, slower};
  for (int i = 0; i < 5; i++) {
    metrics[i] = simple_metric(&run, current[i]);
    metrics[i].confirmation = metrics[i].current;
  }
  metrics[2].confirmation.count = 0;
  metrics[3].incomparable_reason = "The device differs.";
  static const struct {
    size_t first, count;
    rl_verdict verdict;
    const char *reason;
  } expected[] = {{0, 1, RL_VERDICT_SAME, "The metric is the same within its threshold."},
                  {0, 2, RL_VERDICT_FASTER, "1 of 2 metrics: faster"},
                  {0, 3, RL_VERDICT_INCONCLUSIVE, "1 of 3 metrics: inconclusive. a: The median"},
                  {0, 4, RL_VERDICT_INCOMPARABLE, "The device differs."},
                  {0, 5, RL_VERDICT_SLOWER, "1 of 5 metrics: slower"},
                  {0, 0, RL_VERDICT_INCONCLUSIVE, "no metrics"}};
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
    rl_verdict_judgement judged[5];
    rl_verdict_summary summary;
    rl_verdict_suite suite = {.metrics = metrics, .metric_count = expected[i].count};
    assert_int_equal(rl_verdict_judge_suite(&suite, judged, &summary, NULL), 0);
    if (summary.verdict != expected[i].verdict || strstr(summary.reason, expected[i].reason) == NULL)
      fail_msg("suite %zu: %s: %s", i, rl_verdict_name(summary.verdict), summary.reason);
    assert_int_equal(summary.unconfirmed, expected[i].count > 2);
  }
  rl_verdict_judgement judged[5];
  rl_verdict_summary summary;
  rl_verdict_suite suite = {.metrics = metrics, .metric_count = 3, .quarantine_reason = "The canary was 3 % slower at the end."};
  assert_int_equal(rl_verdict_judge_suite(&suite, judged, &summary, NULL), 0);
  assert_int_equal(summary.counts[RL_VERDICT_INCONCLUSIVE], 3);
  assert_string_equal(summary.reason, suite.quarantine_reason);
}

/* A p-value that is significant for one metric is not among 18 metrics. */
static void p_values_are_adjusted_for_the_suite(void **state) {
  (void)state;
  enum { METRICS = 18, MANY = 8 };
  static const double below[MANY] = {20, 20.01, 20.02, 20.03, 20.04, 20.05, 20.06, 22.035},
                      same[MANY] = {20, 20, 20, 20, 20, 20, 20, 20},
                      above[MANY] = {22, 22.01, 22.02, 22.03, 22.04, 22.05, 22.06, 22.07};
  rl_verdict_blocks run = {below, NULL, MANY}, constant = {same, NULL, MANY};
  rl_verdict_metric metrics[METRICS];
  for (int i = 0; i < METRICS; i++) {
    metrics[i] = simple_metric(i == 0 ? &run : &constant, i == 0 ? above : same);
    metrics[i].current.count = MANY;
  }
  rl_verdict_judgement judged[METRICS];
  rl_verdict_summary summary;
  rl_verdict_suite suite = {.metrics = metrics, .metric_count = METRICS};
  assert_int_equal(rl_verdict_judge_suite(&suite, judged, &summary, NULL), 0);
  assert_true(judged[0].p_value < RL_VERDICT_Q && judged[0].q_value > RL_VERDICT_Q);
  assert_true(fabs(judged[0].q_value / judged[0].p_value - METRICS) < 1e-9);
  assert_verdict(&judged[0], RL_VERDICT_INCONCLUSIVE, "their ranks don't show it");
}

static void a_threshold_must_be_positive(void **state) {
  (void)state;
  double values[BLOCKS];
  fill_blocks(20, values);
  rl_verdict_blocks run = {values, NULL, BLOCKS};
  rl_verdict_metric metric = simple_metric(&run, values);
  rl_verdict_judgement judged = {.verdict = RL_VERDICT_SLOWER};
  rl_verdict_summary summary = {.verdict = RL_VERDICT_SLOWER};
  rl_verdict_suite suite = {.metrics = &metric, .metric_count = 1};
  rl_error err = {0};
  metric.threshold_ratio = 0;
  assert_int_equal(rl_verdict_judge_suite(&suite, &judged, &summary, &err), -1);
  assert_int_equal(err.domain, RL_INPUT);
  assert_true(judged.verdict == RL_VERDICT_SLOWER && summary.verdict == RL_VERDICT_SLOWER);
}

/* Returns the limit of a first comparison of eight blocks with themselves. */
static double limit_of_first_comparison(const double values[8]) {
  rl_verdict_blocks run = {values, NULL, 8};
  const rl_verdict_metric metric = {
      .key = "a", .threshold_ratio = 0.05, .baseline_runs = &run, .baseline_run_count = 1, .current = run};
  return judge_metric(metric).history_limit_ratio;
}

/* The scale estimator Qn of eight values is 2.2219 * 8 / 11.8 times the tenth smallest of their differences. */
static void the_limit_of_a_first_comparison_follows_from_the_blocks(void **state) {
  (void)state;
  double values[8];
  for (int i = 0; i < 8; i++) values[i] = 20 * exp(0.001 * i); /* seven differences of 0.001, six of 0.002 */
  double per_difference = 2.2219 * 8 / 11.8 * sqrt(2 * (1 + M_PI_2 / 8)) * rl_student_critical_value(RL_VERDICT_Q / 2, 14);
  assert_true(fabs(limit_of_first_comparison(values) - expm1(0.002 * per_difference)) < 1e-9);
  values[6] *= 1.3, values[7] *= 10; /* five differences of 0.001, four of 0.002, three of 0.003 */
  assert_true(fabs(limit_of_first_comparison(values) - expm1(0.003 * per_difference)) < 1e-9);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(an_effect_beyond_the_threshold_needs_confirmation),
                                     cmocka_unit_test(confirming_blocks_are_compared_with_their_own_baseline),
                                     cmocka_unit_test(each_rule_decides_at_its_limit),
                                     cmocka_unit_test(the_values_of_a_reason_differ_if_the_medians_differ),
                                     cmocka_unit_test(a_missing_or_other_baseline_is_incomparable),
                                     cmocka_unit_test(the_first_different_condition_is_named),
                                     cmocka_unit_test(dropped_blocks_are_counted_and_can_be_too_many),
                                     cmocka_unit_test(more_metrics_need_more_blocks),
                                     cmocka_unit_test(constants_are_compared_by_their_value),
                                     cmocka_unit_test(a_run_in_one_of_two_modes_is_inconclusive),
                                     cmocka_unit_test(an_outlying_block_is_found),
                                     cmocka_unit_test(the_limit_of_a_first_comparison_follows_from_the_blocks),
                                     cmocka_unit_test(a_suite_has_the_worst_verdict),
                                     cmocka_unit_test(p_values_are_adjusted_for_the_suite),
                                     cmocka_unit_test(a_threshold_must_be_positive)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
