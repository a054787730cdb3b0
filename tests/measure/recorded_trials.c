/* recorded_trials FILE...: slides a window over the recorded blocks, compares the runs in each window, and prints how often each
 * verdict occurs as a Markdown table for docs/measurements/regression-verdicts.md. The first columns are about the recorded
 * values, where each `slower` is a false alarm. The last columns are about windows in which one metric was slowed down. */
#include <stdio.h>
#include <string.h>

#include "recorded.h"

typedef struct counts {
  long windows, slower, faster, inconclusive;
} verdict_counts;

/* Judges every window of the suite and adds its verdict to *counted: the verdict on the metric window.slowed_metric, or the
 * suite's verdict if no metric is slowed down (slowed_metric is metric_count). */
static int judge_windows(const recorded_suite *suite, recorded_window window, verdict_counts *counted) {
  for (; window.first + recorded_window_size(&window) <= suite->block_count; window.first++) {
    rl_verdict_judgement judged[RECORDED_MAX_METRICS];
    rl_verdict_summary summary;
    if (recorded_judge(suite, &window, judged, &summary) < 0) return -1;
    bool has_slowed_metric = window.slowed_metric < suite->metric_count;
    rl_verdict verdict = has_slowed_metric ? judged[window.slowed_metric].verdict : summary.verdict;
    counted->windows++;
    counted->slower += verdict == RL_VERDICT_SLOWER;
    counted->faster += verdict == RL_VERDICT_FASTER;
    counted->inconclusive += verdict == RL_VERDICT_INCONCLUSIVE;
  }
  return 0;
}

/* Slows down each metric that is a time by slow_down_ratio, one after another, and prints the share of windows in which the
 * slow-down is found. */
static int print_share_found(const recorded_suite *suite, recorded_window window, double slow_down_ratio) {
  verdict_counts found = {0};
  window.slow_down_ratio = slow_down_ratio;
  for (size_t i = 0; i < suite->metric_count; i++) {
    window.slowed_metric = i;
    if (suite->metrics[i].is_time && judge_windows(suite, window, &found) < 0) return -1;
  }
  if (found.windows == 0) return printf(" – |") < 0 ? -1 : 0;
  printf(" %.1f %% of %ld |", 100.0 * (double)found.slower / (double)found.windows, found.windows);
  return 0;
}

static int print_row(const recorded_history *history, const recorded_suite *suite, size_t blocks_per_run, size_t baseline_runs,
                     double threshold_ratio) {
  static const double slow_down_ratios[] = {0.02, 0.05, 0.08, 0.10};
  recorded_window window = {.blocks = blocks_per_run,
                            .baseline_runs = baseline_runs,
                            .threshold_ratio = threshold_ratio,
                            .slowed_metric = suite->metric_count};
  verdict_counts unchanged = {0};
  if (judge_windows(suite, window, &unchanged) < 0) return -1;
  if (unchanged.windows == 0) return 0;
  printf("| %s, %.*s: %zu blocks | %zu | %s | %.0f %% | %ld of %ld | %ld | %.0f %% |", suite->name,
         (int)strcspn(history->device, ",;"), history->device, suite->block_count, blocks_per_run,
         baseline_runs == 1 ? "fixed" : "rolling, 5 runs", 100 * threshold_ratio, unchanged.slower, unchanged.windows,
         unchanged.faster, 100.0 * (double)unchanged.inconclusive / (double)unchanged.windows);
  for (size_t i = 0; i < sizeof slow_down_ratios / sizeof *slow_down_ratios; i++)
    if (print_share_found(suite, window, slow_down_ratios[i]) < 0) return -1;
  puts("");
  return 0;
}

static int print_rows(const recorded_history *history, const recorded_suite *suite) {
  static const size_t block_counts[] = {8, 12, 16}, baseline_run_counts[] = {1, 5};
  static const double threshold_ratios[] = {0.05, 0.01};
  for (int b = 0; b < 3; b++)
    for (int t = 0; t < 2; t++)
      for (int r = 0; r < 2; r++)
        if (print_row(history, suite, block_counts[b], baseline_run_counts[r], threshold_ratios[t]) < 0) return -1;
  return 0;
}

int main(int count, char **arguments) {
  static recorded_history history;
  puts(
      "| suite, device | blocks a run | baseline | threshold | false alarms | faster | inconclusive | slow-down of 2 % found | "
      "of 5 % | of 8 % | of 10 % |");
  puts("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
  for (int i = 1; i < count; i++) {
    if (recorded_read(arguments[i], &history) < 0) {
      fprintf(stderr, "%s is no file of recorded values\n", arguments[i]);
      return 1;
    }
    for (size_t s = 0; s < history.suite_count; s++)
      if (print_rows(&history, &history.suites[s]) < 0) return 1;
  }
  return 0;
}
