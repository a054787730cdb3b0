/* Verdicts of suites: each rule on both sides of its limit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/verdict.h"

enum { BLOCKS = 7 };
static const double shape[BLOCKS] = {1.000, 1.002, 0.998, 1.001, 0.999, 1.003, 0.997}; /* median 1 */

static void scale(double factor, double values[BLOCKS]) {
  for (int i = 0; i < BLOCKS; i++) values[i] = factor * shape[i];
}

static void assert_verdict(const rl_verdict_judgement *judged, rl_verdict verdict, const char *text) {
  if (judged->verdict != verdict || strstr(judged->reason, text) == NULL)
    fail_msg("%s: \"%s\" is not %s: \"%s\"", rl_verdict_name(judged->verdict), judged->reason, rl_verdict_name(verdict), text);
}

static rl_verdict_judgement judge(rl_verdict_metric metric) {
  rl_verdict_judgement judged;
  rl_verdict_summary summary;
  rl_verdict_suite suite = {.metrics = &metric, .metric_count = 1};
  assert_int_equal(rl_verdict_judge_suite(&suite, &judged, &summary, NULL), 0);
  assert_int_equal(summary.verdict, judged.verdict);
  return judged;
}

static void an_effect_beyond_the_threshold_needs_confirmation(void **state) {
  (void)state;
  double baseline[BLOCKS], current[BLOCKS], fresh[BLOCKS];
  scale(20, baseline), scale(21.6, current), scale(21.5, fresh);
  rl_verdict_blocks run = {baseline, NULL, BLOCKS};
  rl_verdict_metric metric = {.key = "train/fp16/epoch_ms_median",
                              .threshold_ratio = 0.05,
                              .baseline_runs = &run,
                              .baseline_run_count = 1,
                              .current = {current, NULL, BLOCKS}};
  rl_verdict_judgement first = judge(metric);
  assert_verdict(&first, RL_VERDICT_INCONCLUSIVE, "fresh blocks have to confirm it");
  assert_true(first.needs_confirmation && first.confirmed == -1);
  metric.confirmation = (rl_verdict_blocks){fresh, NULL, BLOCKS};
  rl_verdict_judgement second = judge(metric);
  assert_verdict(&second, RL_VERDICT_SLOWER, "8 % above the baseline's 20");
  assert_true(!second.needs_confirmation && second.confirmed == 1);
  metric.direction = RL_HIGHER_IS_BETTER;
  second = judge(metric);
  assert_verdict(&second, RL_VERDICT_FASTER, "7 fresh blocks confirm it");
  metric.confirmation.values = baseline;
  second = judge(metric);
  assert_verdict(&second, RL_VERDICT_INCONCLUSIVE, "fresh blocks don't confirm it");
  assert_int_equal(second.confirmed, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(an_effect_beyond_the_threshold_needs_confirmation)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
