/* recorded_trials FILE...: prints, as a Markdown table, how verdicts judge recorded values in sliding windows: as they are, and
 * with a slow-down injected into one metric after the other. For docs/measurements/regression-verdicts.md. */
#include <stdio.h>
#include <string.h>

#include "recorded.h"

typedef struct counts {
  long windows, slower, faster, inconclusive;
} counts;

/* Judges every window of the suite. Counts the verdicts on metric slowed_metric; on the suite if it is metric_count. */
static int judge_windows(const recorded_suite *suite, recorded_window window, counts *counted) {
  for (; window.first + recorded_window_size(&window) <= suite->block_count; window.first++) {
    rl_verdict_judgement judged[RECORDED_MAX_METRICS];
    rl_verdict_summary summary;
    if (recorded_judge(suite, &window, judged, &summary) < 0) return -1;
    bool is_planted = window.slowed_metric < suite->metric_count;
    rl_verdict verdict = is_planted ? judged[window.slowed_metric].verdict : summary.verdict;
    counted->windows++;
    counted->slower += verdict == RL_VERDICT_SLOWER;
    counted->faster += verdict == RL_VERDICT_FASTER;
    counted->inconclusive += verdict == RL_VERDICT_INCONCLUSIVE;
  }
  return 0;
}

static int print_found(const recorded_suite *suite, recorded_window window, double slow_down) {
  counts found = {0};
  window.slow_down_ratio = slow_down;
  for (size_t i = 0; i < suite->metric_count; i++) {
    window.slowed_metric = i;
    if (suite->metrics[i].is_time && judge_windows(suite, window, &found) < 0) return -1;
  }
  if (found.windows == 0) return printf(" – |") < 0 ? -1 : 0;
  printf(" %.1f %% of %ld |", 100.0 * (double)found.slower / (double)found.windows, found.windows);
  return 0;
}

static int print_row(const recorded_history *history, const recorded_suite *suite, size_t blocks, size_t runs, double threshold) {
  static const double slow_downs[] = {0.02, 0.05, 0.08, 0.10};
  recorded_window window = {
      .blocks = blocks, .baseline_runs = runs, .threshold_ratio = threshold, .slowed_metric = suite->metric_count};
  counts unchanged = {0};
  if (judge_windows(suite, window, &unchanged) < 0) return -1;
  if (unchanged.windows == 0) return 0;
  printf("| %s, %.*s: %zu blocks | %zu | %s | %.0f %% | %ld of %ld | %ld | %.0f %% |", suite->name,
         (int)strcspn(history->device, ",;"), history->device, suite->block_count, blocks,
         runs == 1 ? "fixed" : "rolling, 5 runs", 100 * threshold, unchanged.slower, unchanged.windows, unchanged.faster,
         100.0 * (double)unchanged.inconclusive / (double)unchanged.windows);
  for (size_t i = 0; i < sizeof slow_downs / sizeof *slow_downs; i++)
    if (print_found(suite, window, slow_downs[i]) < 0) return -1;
  puts("");
  return 0;
}

int main(int count, char **arguments) {
  static recorded_history history;
  puts(
      "| suite, device | blocks a run | baseline | threshold | false alarms | faster | inconclusive | 2 % found | 5 % | 8 % | 10 "
      "% |");
  puts("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
  for (int i = 1; i < count; i++) {
    if (recorded_read(arguments[i], &history) < 0) {
      fprintf(stderr, "%s is no file of recorded values\n", arguments[i]);
      return 1;
    }
    for (size_t s = 0; s < history.suite_count; s++)
      for (int kind = 0; kind < 8; kind++)
        if (print_row(&history, &history.suites[s], kind < 4 ? 8 : 12, kind % 2 == 0 ? 1 : 5, kind % 4 < 2 ? 0.05 : 0.01) < 0)
          return 1;
  }
  return 0;
}
