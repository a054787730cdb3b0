/* Tests verdicts on recorded values: no false alarm, and injected slow-downs are found if they exceed the threshold. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../measure/recorded.h"

enum { BLOCKS = 8 };

static char path[64];

/* Writes a file with 80 blocks of two metrics: a time that varies by 0.3 % and lacks one value, and an accuracy. */
static int write_recorded_values(void **state) {
  (void)state;
  strcpy(path, "/tmp/test_recorded_XXXXXX");
  FILE *file = fdopen(mkstemp(path), "w");
  fputs("# a device, commit c0ffee\nsuite,metric,block,value\n", file);
  for (int block = 0; block < 80; block++) {
    if (block == 11) fputs("s,a/v/time_us_median,11,\n", file);
    else fprintf(file, "s,a/v/time_us_median,%d,%.9g\n", block, 20 + 0.06 * ((block * 7) % 10) / 10);
    fprintf(file, "s,a/v/test_accuracy_ratio,%d,0.98\n", block);
  }
  fclose(file);
  return 0;
}

static int remove_recorded_values(void **state) {
  (void)state;
  return unlink(path);
}

/* Returns the verdict of the suite. Sets *first_verdict to the verdict of its first metric. */
static rl_verdict judge_suite(const recorded_suite *suite, recorded_window window, rl_verdict *first_verdict) {
  rl_verdict_judgement judged[RECORDED_MAX_METRICS];
  rl_verdict_summary summary;
  assert_int_equal(recorded_judge(suite, &window, judged, &summary), 0);
  *first_verdict = judged[0].verdict;
  return summary.verdict;
}

static void injected_slow_downs_are_found(void **state) {
  static recorded_history history;
  rl_verdict first;
  (void)state;
  assert_int_equal(recorded_read(path, &history), 0);
  const recorded_suite *suite = &history.suites[0];
  assert_string_equal(history.device, "a device, commit c0ffee");
  assert_true(history.suite_count == 1 && suite->metric_count == 2 && suite->block_count == 80);
  assert_true(suite->metrics[0].is_time && !suite->metrics[1].is_time && isnan(suite->metrics[0].values[11]));
  recorded_window window = {.blocks = BLOCKS, .baseline_runs = 5, .threshold_ratio = 0.01};
  for (window.first = 0; window.first + recorded_window_size(&window) <= suite->block_count; window.first++) {
    window.slow_down_ratio = 0;
    assert_int_equal(judge_suite(suite, window, &first), RL_VERDICT_SAME);
    window.slow_down_ratio = 0.005; /* below the threshold */
    assert_int_not_equal(judge_suite(suite, window, &first), RL_VERDICT_SLOWER);
    window.slow_down_ratio = 0.02;
    assert_int_equal(judge_suite(suite, window, &first), RL_VERDICT_SLOWER);
    assert_int_equal(first, RL_VERDICT_SLOWER);
  }
  assert_int_equal(window.first, 80 - 7 * BLOCKS + 1);
}

static void a_wrong_file_is_refused(void **state) {
  static recorded_history history;
  (void)state;
  assert_int_equal(recorded_read("/tmp/there is no such file", &history), -1);
  FILE *file = fopen(path, "a");
  fputs("s,a/v/time_us_median,80\n", file);
  fclose(file);
  assert_int_equal(recorded_read(path, &history), -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(injected_slow_downs_are_found), cmocka_unit_test(a_wrong_file_is_refused)};
  return cmocka_run_group_tests(tests, write_recorded_values, remove_recorded_values);
}
