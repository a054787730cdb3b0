/* For each metric: makes samples of the blocks, computes effect, interval and p-value, adjusts the p-values of the suite
 * together, and applies the tests in a fixed order; the first that fails gives the reason. Then it summarizes the suite. */
#include "analyze/verdict.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/modes.h"
#include "analyze/rank_test.h"
#include "analyze/statistics.h"
#include "base/cleanup.h"
#include "base/metric_unit.h"

RL_DEFINE_CLEANUP(free_numbers, double *, free, NULL)

static int fail_memory(rl_error *err) {
  errno = ENOMEM;
  return rl_fail_errno(err, "judgement of a suite");
}

const char *rl_verdict_name(rl_verdict verdict) {
  static const char *const names[RL_VERDICT_COUNT] = {"faster", "same", "slower", "inconclusive", "incomparable"};
  return verdict < RL_VERDICT_COUNT ? names[verdict] : "unknown";
}

size_t rl_verdict_count_needed_blocks(size_t metrics) {
  size_t blocks = 1;
  while (rl_rank_test_smallest_p(blocks, blocks) > RL_VERDICT_Q / (double)(metrics > 0 ? metrics : 1)) blocks++;
  return blocks;
}

bool rl_verdict_compare_conditions(const rl_verdict_conditions *baseline, const rl_verdict_conditions *current,
                                   char reason[RL_VERDICT_REASON_SIZE]) {
  const struct {
    const char *name, *baseline, *current;
  } conditions[] = {{"device", baseline->device_name, current->device_name},
                    {"driver", baseline->driver, current->driver},
                    {"clock setting", baseline->clock_setting, current->clock_setting},
                    {"definition of the job", baseline->definition_sha256, current->definition_sha256}};
  for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
    const char *before = conditions[i].baseline, *now = conditions[i].current;
    if (before == now || (before != NULL && now != NULL && strcmp(before, now) == 0)) continue;
    snprintf(reason, RL_VERDICT_REASON_SIZE, "The %s differs: %s in the baseline, %s now.", conditions[i].name,
             before != NULL ? before : "unknown", now != NULL ? now : "unknown");
    return false;
  }
  return true;
}

/* --- samples ----------------------------------------------------------------------------------------------------------- */

typedef struct sample {
  double *values; /* finite values, sorted */
  size_t count;
  double median, median_cycles; /* NAN: none */
  rl_modes modes;
} sample;
static void free_sample(sample *s) { free(s->values); }

static int compare_values(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static size_t copy_finite(const double *values, size_t count, double *copied) {
  size_t n = 0;
  for (size_t i = 0; i < count; i++)
    if (isfinite(values[i])) copied[n++] = values[i];
  return n;
}

/* Makes one sample from the blocks of all runs. */
static int make_sample(const rl_verdict_blocks *runs, size_t run_count, sample *made, rl_error *err) {
  size_t count = 0, cycles = 0;
  for (size_t i = 0; i < run_count; i++) count += runs[i].count;
  *made = (sample){.values = malloc((2 * count + 1) * sizeof(double))};
  if (made->values == NULL) return fail_memory(err);
  for (size_t i = 0; i < run_count; i++) made->count += copy_finite(runs[i].values, runs[i].count, made->values + made->count);
  double *numbers = made->values + made->count;
  for (size_t i = 0; i < run_count; i++)
    if (runs[i].cycles != NULL) cycles += copy_finite(runs[i].cycles, runs[i].count, numbers + cycles);
  made->median_cycles = rl_compute_quartiles(numbers, cycles).median;
  made->median = rl_compute_quartiles(made->values, made->count).median;
  made->modes = rl_modes_find(made->values, made->count);
  return 0;
}

static bool is_positive(const sample *s) { return s->count > 0 && s->values[0] > 0; }
static bool is_constant(const sample *s, double value) {
  return s->count > 0 && s->values[0] == value && s->values[s->count - 1] == value;
}

static double effect_between(double baseline, double current) {
  if (current == baseline) return 0;
  return baseline > 0 ? current / baseline - 1 : NAN;
}

/* --- the limit of the history ------------------------------------------------------------------------------------------ */

enum {
  RECENT_RUNS = 5,   /* number of earlier runs whose median a run is compared with */
  MIN_FENCE_RUNS = 8 /* with fewer runs the quartiles of the changes are too uncertain for Tukey's fence */
};

typedef struct history_limit {
  double recent_median; /* median of the recent runs; NAN: there are none */
  double limit;         /* ratio; larger changes don't occur from run to run. NAN: too few runs */
  size_t runs;
} history_limit;

/* Computes how much a run can differ from the median of the RECENT_RUNS runs before it without a cause. The change of an earlier
 * run is |log(run / that median)|. The limit is the largest of three:
 *
 *   Student's limit   root mean square of the changes, times Student's critical value: without a cause, the probability that any
 *                     of `metrics` metrics exceeds this limit is RL_VERDICT_Q / 2. A metric that drifts has large changes, so a
 *                     high limit.
 *   Tukey's fence     Q3 + 3 IQR of the changes, from MIN_FENCE_RUNS runs on
 *   observed          1.5 times the largest change */
static int compute_history_limit(const double *history, size_t count, size_t metrics, history_limit *found, rl_error *err) {
  *found = (history_limit){NAN, NAN, 0};
  RL_CLEANUP(free_numbers) double *medians = malloc((2 * count + 1) * sizeof *medians);
  if (medians == NULL) return fail_memory(err);
  double *changes = medians + count, window[RECENT_RUNS], squares = 0, largest = 0;
  size_t runs = 0;
  for (size_t i = 0; i < count; i++)
    if (isfinite(history[i]) && history[i] > 0) medians[runs++] = history[i];
  for (size_t i = 1; i <= runs; i++) {
    size_t before = i < RECENT_RUNS ? i : RECENT_RUNS;
    memcpy(window, medians + i - before, before * sizeof *window);
    found->recent_median = rl_compute_quartiles(window, before).median;
    if (i == runs) break;
    changes[i - 1] = fabs(log(medians[i] / found->recent_median));
    squares += changes[i - 1] * changes[i - 1];
    largest = fmax(largest, changes[i - 1]);
  }
  found->runs = runs;
  if (runs < RL_VERDICT_HISTORY_RUNS) return 0;
  double degrees = (double)(runs - 1);
  double limit = sqrt(squares / degrees) * rl_student_critical_value(RL_VERDICT_Q / 2 / (double)metrics, runs - 1);
  limit = fmax(limit, 1.5 * largest);
  if (runs >= MIN_FENCE_RUNS) limit = fmax(limit, rl_compute_outer_fence(rl_compute_quartiles(changes, runs - 1)));
  found->limit = expm1(limit);
  return 0;
}

/* Estimates the standard deviation of a sample's logarithms by Qn (Rousseeuw and Croux 1993): the C(n / 2 + 1, 2)-th smallest
 * difference of two values, times factors that make it unbiased for normal values. Outliers can't make it arbitrarily large if
 * they are fewer than half of the values, and from sample to sample it varies less than an estimate from quartiles. */
static int estimate_deviation(const sample *s, double *deviation, rl_error *err) {
  size_t n = s->count, half = n / 2 + 1, pairs = 0;
  RL_CLEANUP(free_numbers) double *differences = malloc((n * n + 1) * sizeof *differences);
  if (differences == NULL) return fail_memory(err);
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < i; j++) differences[pairs++] = log(s->values[i] / s->values[j]); /* >= 0: sorted values */
  qsort(differences, pairs, sizeof *differences, compare_values);
  double few_values = (double)n / ((double)n + (n % 2 == 0 ? 3.8 : 1.4));
  *deviation = 2.2219 * few_values * differences[half * (half - 1) / 2 - 1];
  return 0;
}

/* Estimates the limit without a history. Assumes that runs vary as much as blocks do, whose deviation is estimated. Writes
 * Student's limit for the difference of two such runs, as a ratio; returns NAN if there are too few blocks. */
static int estimate_limit_without_history(const sample *baseline, const sample *current, size_t metrics, double *limit,
                                          rl_error *err) {
  double blocks = fmin((double)baseline->count, (double)current->count), deviations[2];
  *limit = NAN;
  if (!(blocks >= 3 && is_positive(baseline) && is_positive(current))) return 0;
  if (estimate_deviation(baseline, &deviations[0], err) < 0 || estimate_deviation(current, &deviations[1], err) < 0) return -1;
  double variance = (deviations[0] * deviations[0] + deviations[1] * deviations[1]) / 2;
  double difference_deviation = sqrt(2 * variance * (1 + M_PI_2 / blocks)); /* π / 2: variance ratio of median and mean */
  double critical = rl_student_critical_value(RL_VERDICT_Q / 2 / (double)metrics, baseline->count + current->count - 2);
  *limit = expm1(difference_deviation * critical);
  return 0;
}

/* --- reasons ----------------------------------------------------------------------------------------------------------- */

static void set_verdict(rl_verdict_judgement *judgement, rl_verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void set_verdict(rl_verdict_judgement *judgement, rl_verdict verdict, const char *format, ...) {
  va_list arguments;
  judgement->verdict = verdict;
  va_start(arguments, format);
  vsnprintf(judgement->reason, sizeof judgement->reason, format, arguments);
  va_end(arguments);
}

typedef struct phrase {
  char text[160];
} phrase;

/* Formats a ratio as a percentage: "0.31", "8.2" or "130". */
static phrase in_percent(double ratio) {
  phrase p;
  double percent = 100 * ratio;
  snprintf(p.text, sizeof p.text, fabs(percent) < 10 ? "%.2g" : "%.0f", percent);
  return p;
}

/* Formats an effect: "8.2 % above", "0.31 % below" or "equal to". */
static phrase describe_effect(double effect) {
  phrase p;
  if (effect == 0) snprintf(p.text, sizeof p.text, "equal to");
  else snprintf(p.text, sizeof p.text, "%.100s %% %s", in_percent(fabs(effect)).text, effect < 0 ? "below" : "above");
  return p;
}

enum { VALUE_DIGITS = 4, MAX_VALUE_DIGITS = 12 };

/* Formats a value with its unit and VALUE_DIGITS significant digits: "330.6 µs". If the value that it is compared with would have
 * the same text, although it differs, both get more digits, at most MAX_VALUE_DIGITS. */
static phrase with_unit(const rl_verdict_metric *metric, double value, double compared) {
  phrase p;
  char text[RL_METRIC_TEXT_SIZE], compared_text[RL_METRIC_TEXT_SIZE];
  for (int digits = VALUE_DIGITS; digits <= MAX_VALUE_DIGITS; digits++) {
    rl_metric_text(text, metric->key, value, digits), rl_metric_text(compared_text, metric->key, compared, digits);
    if (value == compared || strcmp(text, compared_text) != 0) break;
  }
  snprintf(p.text, sizeof p.text, "%s", text);
  return p;
}

static phrase describe_medians(const rl_verdict_metric *metric, const rl_verdict_judgement *judgement) {
  phrase p;
  snprintf(p.text, sizeof p.text, "The median of %zu blocks, %.32s, is %.40s the baseline's %.32s (%zu blocks)",
           judgement->blocks_current, with_unit(metric, judgement->current_median, judgement->baseline_median).text,
           describe_effect(judgement->effect_ratio).text,
           with_unit(metric, judgement->baseline_median, judgement->current_median).text, judgement->blocks_baseline);
  return p;
}

static phrase describe_interval(double low, double high) {
  phrase p;
  snprintf(p.text, sizeof p.text, "%.0f %% interval is %s%.60s to %s%.60s %%", 100 * (1 - RL_VERDICT_Q), low > 0 ? "+" : "",
           in_percent(low).text, high > 0 ? "+" : "", in_percent(high).text);
  return p;
}

/* --- one metric -------------------------------------------------------------------------------------------------------- */

/* One metric, its samples and its judgement. */
typedef struct comparison {
  const rl_verdict_metric *metric;
  sample baseline, current, confirmation;
  sample baseline_confirmation; /* confirming blocks of a measured baseline; empty: the baseline's blocks are used */
  rl_verdict_judgement judgement;
} comparison;

static void free_comparison(comparison *c) {
  free_sample(&c->baseline), free_sample(&c->current), free_sample(&c->confirmation), free_sample(&c->baseline_confirmation);
}

/* Returns the sample that the confirming blocks are compared with. */
static const sample *confirmation_baseline(const comparison *c) {
  return c->metric->confirmation_baseline.count > 0 ? &c->baseline_confirmation : &c->baseline;
}

static int estimate_interval(const sample *baseline, const sample *measured, double *low, double *high, rl_error *err) {
  rl_ratio_interval interval;
  *low = *high = NAN;
  if (is_constant(measured, measured->median) && is_constant(baseline, measured->median)) *low = *high = 0;
  else if (is_positive(baseline) && is_positive(measured)) {
    if (rl_rank_test_estimate_ratio(baseline->values, baseline->count, measured->values, measured->count, RL_VERDICT_Q, &interval,
                                    err) < 0)
      return -1;
    *low = interval.low - 1, *high = interval.high - 1;
  }
  return 0;
}

static int compute_statistics(comparison *c, size_t metrics, rl_error *err) {
  rl_verdict_judgement *judgement = &c->judgement;
  const rl_verdict_metric *metric = c->metric;
  if (make_sample(metric->baseline_runs, metric->baseline_run_count, &c->baseline, err) < 0 ||
      make_sample(&metric->current, 1, &c->current, err) < 0 ||
      make_sample(&metric->confirmation, 1, &c->confirmation, err) < 0 ||
      make_sample(&metric->confirmation_baseline, 1, &c->baseline_confirmation, err) < 0)
    return -1;
  const sample *baseline = &c->baseline, *current = &c->current, *confirmation = &c->confirmation;
  const sample *fresh_baseline = confirmation_baseline(c);
  rl_rank_test current_test, confirmation_test;
  history_limit earlier;
  *judgement = (rl_verdict_judgement){
      .baseline_median = baseline->median,
      .current_median = current->median,
      .effect_ratio = effect_between(baseline->median, current->median),
      .q_value = NAN,
      .cycles_effect_ratio = effect_between(baseline->median_cycles, current->median_cycles),
      .confirmation_baseline_median = c->baseline_confirmation.median,
      .confirmation_median = confirmation->median,
      .confirmation_effect_ratio = effect_between(fresh_baseline->median, confirmation->median),
      .confirmation_q_value = NAN,
      .confirmed = -1,
      .blocks_baseline = baseline->count,
      .blocks_current = current->count,
      .blocks_confirmation = confirmation->count,
      .blocks_dropped = metric->current.count + metric->confirmation.count - current->count - confirmation->count,
      .blocks_needed = rl_verdict_count_needed_blocks(metrics),
      .baseline_bimodal = baseline->modes.bimodal,
      .current_bimodal = current->modes.bimodal,
      .baseline_modes = {baseline->modes.low, baseline->modes.high},
      .current_modes = {current->modes.low, current->modes.high}};
  if (rl_rank_test_compare(baseline->values, baseline->count, current->values, current->count, &current_test, err) < 0 ||
      rl_rank_test_compare(fresh_baseline->values, fresh_baseline->count, confirmation->values, confirmation->count,
                           &confirmation_test, err) < 0 ||
      compute_history_limit(metric->history, metric->history_count, metrics, &earlier, err) < 0 ||
      estimate_interval(baseline, current, &judgement->interval_low_ratio, &judgement->interval_high_ratio, err) < 0 ||
      estimate_interval(fresh_baseline, confirmation, &judgement->confirmation_low_ratio, &judgement->confirmation_high_ratio,
                        err) < 0)
    return -1;
  judgement->p_value = current_test.p_value, judgement->confirmation_p_value = confirmation_test.p_value;
  judgement->history_limit_ratio = earlier.limit;
  if (isnan(earlier.limit) &&
      estimate_limit_without_history(baseline, current, metrics, &judgement->history_limit_ratio, err) < 0)
    return -1;
  judgement->history_runs = earlier.runs, judgement->recent_median = earlier.recent_median;
  judgement->step_ratio = effect_between(earlier.recent_median, current->median);
  return 0;
}

/* Returns true if the effect is larger than the threshold and has the sign of `expected`. */
static bool exceeds_threshold(const rl_verdict_metric *metric, double effect, double expected) {
  return fabs(effect) > metric->threshold_ratio && effect * expected > 0;
}

/* The effect of the current or of the confirming blocks, which exceeds the threshold. */
typedef struct measured_effect {
  const sample *baseline, *measured;
  const char *name;        /* name of the blocks in the reason */
  double ratio, low, high; /* low and high: the interval of the ratio */
  double p_value, q_value; /* q_value: the p-value adjusted for the number of metrics of the suite */
} measured_effect;

/* Returns true if device cycles were reported, and their change contradicts the effect. A change of the work changes the cycles
 * in the same direction and by at least half of the effect; more work takes more cycles, also for a metric of which higher values
 * are better. */
static bool cycles_contradict(const comparison *c, const measured_effect *effect, double *cycles_effect) {
  *cycles_effect = effect_between(effect->baseline->median_cycles, effect->measured->median_cycles);
  double work_effect = c->metric->direction == RL_LOWER_IS_BETTER ? effect->ratio : -effect->ratio;
  return isfinite(*cycles_effect) && !(*cycles_effect * work_effect > 0 && fabs(*cycles_effect) >= 0.5 * fabs(effect->ratio));
}

/* Returns true if the baseline has two modes, and the measured median exceeds the mode on the effect's side by at most the
 * threshold. */
static bool lies_within_baseline_mode(const comparison *c, const measured_effect *effect) {
  const rl_modes *modes = &effect->baseline->modes;
  if (!modes->bimodal) return false;
  double from_mode = effect_between(effect->ratio > 0 ? modes->high : modes->low, effect->measured->median);
  return !exceeds_threshold(c->metric, from_mode, effect->ratio);
}

/* Returns true if the factor of the change, up or down, is at most the factor of the limit. A limit of 150 % is the factor 2.5,
 * so 160 % more and 61 % less exceed it. Returns false if the limit is unknown. */
static bool lies_within_limit(double effect, double limit) { return isfinite(limit) && !(fabs(log1p(effect)) > log1p(limit)); }

/* Returns the limit in the direction of the effect. A limit of 150 % is 150 % more or 60 % less. */
static double limit_towards(double effect, double limit) { return effect > 0 ? limit : limit / (1 + limit); }

static phrase describe_measured_effect(const rl_verdict_metric *metric, const measured_effect *effect) {
  phrase p;
  snprintf(p.text, sizeof p.text, "%s (median %.32s, %.40s the baseline's %.32s)", effect->name,
           with_unit(metric, effect->measured->median, effect->baseline->median).text, describe_effect(effect->ratio).text,
           with_unit(metric, effect->baseline->median, effect->measured->median).text);
  return p;
}

/* Returns true if every test shows the effect; else sets the verdict to inconclusive, with the first failed test as the
 * reason. */
static bool passes_all_tests(const comparison *c, const measured_effect *effect, rl_verdict_judgement *judgement) {
  const rl_modes *modes = &effect->baseline->modes;
  const char *bimodal = modes->bimodal || effect->measured->modes.bimodal ? "; the blocks have two modes" : "";
  double cycles, threshold = c->metric->threshold_ratio,
                 step = effect_between(judgement->recent_median, effect->measured->median),
                 limit = judgement->history_limit_ratio;
  phrase text = describe_measured_effect(c->metric, effect);
  if (!(effect->q_value <= RL_VERDICT_Q))
    set_verdict(judgement, RL_VERDICT_INCONCLUSIVE,
                "%s exceed the threshold of %s %%, but their ranks don't show it: p = %.2g, adjusted %.2g%s.", text.text,
                in_percent(threshold).text, effect->p_value, effect->q_value, bimodal);
  else if (!exceeds_threshold(c->metric, effect->ratio > 0 ? effect->low : effect->high, effect->ratio))
    set_verdict(judgement, RL_VERDICT_INCONCLUSIVE, "%s differ, but maybe by less than the threshold of %s %%: the %s%s.",
                text.text, in_percent(threshold).text, describe_interval(effect->low, effect->high).text, bimodal);
  else if (lies_within_baseline_mode(c, effect))
    set_verdict(judgement, RL_VERDICT_INCONCLUSIVE,
                "The baseline has two modes, %s (%zu blocks) and %s (%zu blocks). %s lie no more than %s %% beyond one of them.",
                with_unit(c->metric, modes->low, modes->high).text, modes->low_count,
                with_unit(c->metric, modes->high, modes->low).text, modes->high_count, text.text, in_percent(threshold).text);
  else if (lies_within_limit(effect->ratio, limit))
    set_verdict(judgement, RL_VERDICT_INCONCLUSIVE,
                "%s differ no more than runs of this metric do without a cause: the limit is %s %%%s.", text.text,
                in_percent(limit_towards(effect->ratio, limit)).text,
                judgement->history_runs < RL_VERDICT_HISTORY_RUNS ? ", assumed from the blocks" : "");
  else if (judgement->history_runs >= RL_VERDICT_HISTORY_RUNS && !(step * effect->ratio > 0 && !lies_within_limit(step, limit)))
    set_verdict(
        judgement, RL_VERDICT_INCONCLUSIVE,
        "%s are only %s the last earlier runs (%s), within their limit of %s %%: the metric drifted away from the baseline.",
        text.text, describe_effect(step).text, with_unit(c->metric, judgement->recent_median, effect->measured->median).text,
        in_percent(limit_towards(effect->ratio, limit)).text);
  else if (cycles_contradict(c, effect, &cycles))
    set_verdict(judgement, RL_VERDICT_INCONCLUSIVE, "%s took device cycles %s the baseline's: the clock differs, not the work.",
                text.text, describe_effect(cycles).text);
  else return true;
  return false;
}

static void judge_large_effect(const comparison *c, rl_verdict_judgement *judgement) {
  const sample *fresh = &c->confirmation;
  measured_effect first = {.baseline = &c->baseline,
                           .measured = &c->current,
                           .name = "The blocks",
                           .ratio = judgement->effect_ratio,
                           .low = judgement->interval_low_ratio,
                           .high = judgement->interval_high_ratio,
                           .p_value = judgement->p_value,
                           .q_value = judgement->q_value};
  measured_effect second = {.baseline = confirmation_baseline(c),
                            .measured = fresh,
                            .name = "Confirming blocks",
                            .ratio = judgement->confirmation_effect_ratio,
                            .low = judgement->confirmation_low_ratio,
                            .high = judgement->confirmation_high_ratio,
                            .p_value = judgement->confirmation_p_value,
                            .q_value = judgement->confirmation_q_value};
  if (!passes_all_tests(c, &first, judgement)) return;
  if (c->metric->confirmation.count == 0) {
    judgement->needs_confirmation = true;
    return set_verdict(judgement, RL_VERDICT_INCONCLUSIVE, "%s; fresh blocks have to confirm it.",
                       describe_medians(c->metric, judgement).text);
  }
  judgement->confirmed = 0;
  size_t confirming = fresh->count < second.baseline->count ? fresh->count : second.baseline->count;
  if (confirming < judgement->blocks_needed)
    return set_verdict(judgement, RL_VERDICT_INCONCLUSIVE, "%s, but only %zu of %zu confirming blocks were measured.",
                       describe_medians(c->metric, judgement).text, confirming, judgement->blocks_needed);
  if (!exceeds_threshold(c->metric, judgement->confirmation_effect_ratio, judgement->effect_ratio))
    return set_verdict(judgement, RL_VERDICT_INCONCLUSIVE,
                       "%s, but fresh blocks don't confirm it: their median is %s the baseline's.",
                       describe_medians(c->metric, judgement).text, describe_effect(judgement->confirmation_effect_ratio).text);
  if (!passes_all_tests(c, &second, judgement)) return;
  judgement->confirmed = 1;
  bool worse = (judgement->effect_ratio > 0) == (c->metric->direction == RL_LOWER_IS_BETTER);
  set_verdict(judgement, worse ? RL_VERDICT_SLOWER : RL_VERDICT_FASTER,
              "%s: the %s, p = %.2g, and %zu fresh blocks confirm it with a median %s the baseline's.",
              describe_medians(c->metric, judgement).text,
              describe_interval(judgement->interval_low_ratio, judgement->interval_high_ratio).text, judgement->p_value,
              fresh->count, describe_effect(judgement->confirmation_effect_ratio).text);
}

static void judge_small_effect(const comparison *c, rl_verdict_judgement *judgement) {
  double threshold = c->metric->threshold_ratio;
  if (judgement->interval_low_ratio >= -threshold && judgement->interval_high_ratio <= threshold)
    return set_verdict(
        judgement, RL_VERDICT_SAME, "%s; the %s, within the threshold of %s %%.", describe_medians(c->metric, judgement).text,
        describe_interval(judgement->interval_low_ratio, judgement->interval_high_ratio).text, in_percent(threshold).text);
  bool bimodal = c->baseline.modes.bimodal || c->current.modes.bimodal;
  set_verdict(judgement, RL_VERDICT_INCONCLUSIVE, "%s, but the %s, which reaches beyond the threshold of %s %%%s.",
              describe_medians(c->metric, judgement).text,
              describe_interval(judgement->interval_low_ratio, judgement->interval_high_ratio).text, in_percent(threshold).text,
              bimodal ? ": the blocks have two modes" : "");
}

static void judge_too_few_blocks(const comparison *c, rl_verdict_judgement *judgement) {
  char dropped[RL_VERDICT_REASON_SIZE / 2] = "";
  if (c->metric->dropped_reason != NULL)
    snprintf(dropped, sizeof dropped, " %zu %s dropped; the first: %.160s.", judgement->blocks_dropped,
             judgement->blocks_dropped == 1 ? "block was" : "blocks were", c->metric->dropped_reason);
  set_verdict(judgement, RL_VERDICT_INCONCLUSIVE,
              "%zu blocks of the baseline and %zu of this run are too few: %zu of each are needed.%s", c->baseline.count,
              c->current.count, judgement->blocks_needed, dropped);
}

static void judge_metric(comparison *c, const char *quarantine_reason) {
  rl_verdict_judgement *judgement = &c->judgement;
  const rl_verdict_metric *metric = c->metric;
  if (metric->incomparable_reason != NULL)
    return set_verdict(judgement, RL_VERDICT_INCOMPARABLE, "%s", metric->incomparable_reason);
  if (c->baseline.count == 0)
    return set_verdict(judgement, RL_VERDICT_INCOMPARABLE,
                       "There is no baseline of this metric: an earlier good run, or a promoted one.");
  if (quarantine_reason != NULL) return set_verdict(judgement, RL_VERDICT_INCONCLUSIVE, "%s", quarantine_reason);
  if (c->current.count < judgement->blocks_needed || c->baseline.count < judgement->blocks_needed)
    return judge_too_few_blocks(c, judgement);
  if (isnan(judgement->effect_ratio) || (isnan(judgement->interval_low_ratio) && judgement->effect_ratio == 0))
    return set_verdict(judgement, RL_VERDICT_INCONCLUSIVE, "%s against %s in the baseline: a ratio needs positive values.",
                       with_unit(metric, judgement->current_median, judgement->baseline_median).text,
                       with_unit(metric, judgement->baseline_median, judgement->current_median).text);
  if (fabs(judgement->effect_ratio) > metric->threshold_ratio) judge_large_effect(c, judgement);
  else judge_small_effect(c, judgement);
}

int rl_verdict_find_outlying_block(const double *values, size_t count, double threshold_ratio, size_t *block, rl_error *err) {
  RL_CLEANUP(free_numbers) double *sorted = malloc((count + 1) * sizeof *sorted);
  if (sorted == NULL) return fail_memory(err);
  rl_quartiles quartiles = rl_compute_quartiles(sorted, copy_finite(values, count, sorted));
  double fence = 3 * (quartiles.q3 - quartiles.q1);
  size_t i = 0;
  for (; i < count; i++) {
    bool is_outside_fence = values[i] > quartiles.q3 + fence || values[i] < quartiles.q1 - fence;
    if (is_outside_fence && fabs(effect_between(quartiles.median, values[i])) > threshold_ratio) break;
  }
  *block = i;
  return 0;
}

/* --- the suite --------------------------------------------------------------------------------------------------------- */

static void describe_unchanged(size_t metric_count, char *reason, size_t size) {
  if (metric_count == 1) snprintf(reason, size, "The metric is the same within its threshold.");
  else snprintf(reason, size, "All %zu metrics are the same within their thresholds.", metric_count);
}

static void summarize(const rl_verdict_suite *suite, const rl_verdict_judgement *judgements, rl_verdict_summary *summary) {
  static const rl_verdict order[] = {RL_VERDICT_SLOWER, RL_VERDICT_INCOMPARABLE, RL_VERDICT_INCONCLUSIVE, RL_VERDICT_FASTER,
                                     RL_VERDICT_SAME};
  *summary = (rl_verdict_summary){.verdict = RL_VERDICT_INCONCLUSIVE};
  for (size_t i = 0; i < suite->metric_count; i++) {
    summary->counts[judgements[i].verdict]++;
    summary->unconfirmed += judgements[i].needs_confirmation;
  }
  if (suite->metric_count == 0) {
    snprintf(summary->reason, sizeof summary->reason, "The suite has no metrics.");
    return;
  }
  size_t first = 0;
  while (summary->counts[order[first]] == 0) first++;
  summary->verdict = order[first];
  size_t example = 0;
  while (judgements[example].verdict != summary->verdict) example++;
  if (suite->quarantine_reason != NULL && summary->verdict == RL_VERDICT_INCONCLUSIVE)
    snprintf(summary->reason, sizeof summary->reason, "%s", suite->quarantine_reason);
  else if (summary->verdict == RL_VERDICT_SAME) describe_unchanged(suite->metric_count, summary->reason, sizeof summary->reason);
  else
    snprintf(summary->reason, sizeof summary->reason, "%zu of %zu %s: %s. %s: %.300s", summary->counts[summary->verdict],
             suite->metric_count, suite->metric_count == 1 ? "metric" : "metrics", rl_verdict_name(summary->verdict),
             suite->metrics[example].key, judgements[example].reason);
}

static int adjust_all_p_values(size_t count, comparison *comparisons, rl_error *err) {
  RL_CLEANUP(free_numbers) double *p = malloc((2 * count + 1) * sizeof *p);
  if (p == NULL) return fail_memory(err);
  double *adjusted = p + count;
  for (size_t i = 0; i < count; i++) p[i] = comparisons[i].judgement.p_value;
  if (rl_adjust_p_values(p, count, adjusted, err) < 0) return -1;
  for (size_t i = 0; i < count; i++)
    comparisons[i].judgement.q_value = adjusted[i], p[i] = comparisons[i].judgement.confirmation_p_value;
  if (rl_adjust_p_values(p, count, adjusted, err) < 0) return -1;
  for (size_t i = 0; i < count; i++) comparisons[i].judgement.confirmation_q_value = adjusted[i];
  return 0;
}

static int compute_suite_statistics(const rl_verdict_suite *suite, comparison *comparisons, rl_error *err) {
  for (size_t i = 0; i < suite->metric_count; i++) {
    comparisons[i].metric = &suite->metrics[i];
    if (!(suite->metrics[i].threshold_ratio > 0))
      return rl_fail(err, RL_INPUT, 0, "the threshold of %s is %g, not positive", suite->metrics[i].key,
                     suite->metrics[i].threshold_ratio);
    if (compute_statistics(&comparisons[i], suite->metric_count, err) < 0) return -1;
  }
  return adjust_all_p_values(suite->metric_count, comparisons, err);
}

int rl_verdict_judge_suite(const rl_verdict_suite *suite, rl_verdict_judgement *judgements, rl_verdict_summary *summary,
                           rl_error *err) {
  comparison *comparisons = calloc(suite->metric_count + 1, sizeof *comparisons);
  if (comparisons == NULL) return fail_memory(err);
  int failed = compute_suite_statistics(suite, comparisons, err);
  for (size_t i = 0; i < suite->metric_count; i++) {
    if (!failed) judge_metric(&comparisons[i], suite->quarantine_reason), judgements[i] = comparisons[i].judgement;
    free_comparison(&comparisons[i]);
  }
  free(comparisons);
  if (!failed) summarize(suite, judgements, summary);
  return failed;
}
