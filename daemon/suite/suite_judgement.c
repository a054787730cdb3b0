/* Implements suite_judgement.h. Reads the values of the run and of earlier runs, selects the baseline and the history of each
 * metric, lets analyze/verdict.h compute the verdicts, and prints the judgements as JSON. */
#include "suite/suite_judgement.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/rank_test.h"
#include "base/json_members.h"
#include "base/log.h"
#include "suite/suite_causes.h"
#include "suite/suite_values.h"

enum { EARLIER_RUNS_MAX = 40, HISTORY_RUNS_MAX = 30 };

/* --- earlier runs ----------------------------------------------------------------------------------------------------- */

/* How the verdict of a metric in an earlier run affects the baselines of later runs. */
typedef struct metric_mark {
  char metric[RL_SUITE_KEY_SIZE];
  bool is_bad;      /* the metric was slower, or its effect was not confirmed: the run is no rolling baseline of this metric */
  bool is_faster;   /* the metric was faster: baseline and history begin with this run */
  bool is_accepted; /* the metric was slower, but a user has promoted the run */
} metric_mark;

typedef struct earlier_run {
  int64_t id;
  char device_name[256], driver[64], clock_setting[128], against[RL_SUITE_NAME_SIZE]; /* "": unknown; against "": rolling */
  cJSON *jobs_sha256;
  metric_mark *marks;
  int mark_count;
  rl_suite_values values;
} earlier_run;

static void clear_run(earlier_run *run) {
  cJSON_Delete(run->jobs_sha256);
  free(run->marks);
  rl_suite_values_clear(&run->values);
}

static int fail_memory(rl_error *err) { return rl_fail(err, RL_ERRNO, ENOMEM, "no memory to judge a suite run"); }

static int read_marks(rl_store *store, earlier_run *run, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *metric;
  int found;
  if (rl_store_query(store, RL_QUERY_SUITE_METRIC_MARKS, RL_BINDINGS(RL_BIND_INTEGER(":run", run->id)), &cursor, err) < 0)
    return -1;
  while ((found = rl_cursor_next(cursor, &metric, err)) > 0) {
    metric_mark *grown = realloc(run->marks, (size_t)(run->mark_count + 1) * sizeof *grown);
    if (grown == NULL) return fail_memory(err);
    run->marks = grown;
    metric_mark *mark = &grown[run->mark_count++];
    *mark = (metric_mark){.is_bad = rl_cursor_integer(cursor, 1) != 0,
                          .is_faster = rl_cursor_integer(cursor, 2) != 0,
                          .is_accepted = rl_cursor_integer(cursor, 3) != 0};
    snprintf(mark->metric, sizeof mark->metric, "%s", metric);
  }
  return found;
}

static void copy_column(rl_cursor *cursor, int column, char *text, size_t size) {
  const char *value = rl_cursor_text(cursor, column);
  snprintf(text, size, "%s", value != NULL ? value : "");
}

/* Earlier runs of the suite on the same device, the newest first. */
typedef struct earlier_runs {
  earlier_run runs[EARLIER_RUNS_MAX + 1]; /* + 1 for the run of the named baseline */
  int count;
  int named; /* index of the named baseline's run; -1: the baseline is rolling */
} earlier_runs;

static void free_earlier(earlier_runs *earlier) {
  for (int i = 0; earlier != NULL && i < earlier->count; i++) clear_run(&earlier->runs[i]);
  free(earlier);
}
RL_DEFINE_CLEANUP(earlier_cleanup, earlier_runs *, free_earlier, NULL)

static int add_run(rl_cursor *cursor, int64_t id, const char *jobs_sha256, int first_column, earlier_runs *earlier,
                   rl_error *err) {
  earlier_run *run = &earlier->runs[earlier->count];
  *run = (earlier_run){.id = id, .jobs_sha256 = cJSON_Parse(jobs_sha256)};
  if (run->jobs_sha256 == NULL) return fail_memory(err);
  copy_column(cursor, first_column, run->device_name, sizeof run->device_name);
  copy_column(cursor, first_column + 1, run->driver, sizeof run->driver);
  copy_column(cursor, first_column + 2, run->clock_setting, sizeof run->clock_setting);
  earlier->count++;
  return 0;
}

static int list_earlier(rl_store *store, const rl_suite_progress *progress, earlier_runs *earlier, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *jobs_sha256;
  int found;
  if (rl_store_query(store, RL_QUERY_SUITE_EARLIER_RUNS,
                     RL_BINDINGS(RL_BIND_INTEGER(":run", progress->id), RL_BIND_TEXT(":suite", progress->suite->name),
                                 RL_BIND_TEXT(":device", progress->device), RL_BIND_INTEGER(":limit", EARLIER_RUNS_MAX)),
                     &cursor, err) < 0)
    return -1;
  while ((found = rl_cursor_next(cursor, &jobs_sha256, err)) > 0)
    if (add_run(cursor, rl_cursor_integer(cursor, 1), jobs_sha256, 2, earlier, err) < 0) return -1;
    else copy_column(cursor, 5, earlier->runs[earlier->count - 1].against, RL_SUITE_NAME_SIZE);
  return found;
}

/* Sets earlier->named, and adds the run of the named baseline unless the list already contains it. */
static int find_named(rl_store *store, const rl_suite_progress *progress, earlier_runs *earlier, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *definition;
  earlier->named = -1;
  if (progress->against[0] == '\0') return 0;
  for (int i = 0; i < earlier->count; i++)
    if (earlier->runs[i].id == progress->against_run_id) earlier->named = i;
  if (earlier->named >= 0) return 0;
  if (rl_store_query(store, RL_QUERY_SUITE_RUN_COLUMNS, RL_BINDINGS(RL_BIND_INTEGER(":run", progress->against_run_id)), &cursor,
                     err) < 0)
    return -1;
  int found = rl_cursor_next(cursor, &definition, err);
  if (found <= 0) return found;
  earlier->named = earlier->count;
  return add_run(cursor, progress->against_run_id, rl_cursor_text(cursor, 7), 8, earlier, err);
}

static int read_earlier(rl_store *store, const rl_suite_progress *progress, earlier_runs *earlier, rl_error *err) {
  if (list_earlier(store, progress, earlier, err) < 0 || find_named(store, progress, earlier, err) < 0) return -1;
  for (int i = 0; i < earlier->count; i++)
    if (rl_suite_values_read(store, earlier->runs[i].id, &earlier->runs[i].values, err) < 0 ||
        read_marks(store, &earlier->runs[i], err) < 0)
      return -1;
  return 0;
}

static metric_mark find_mark(const earlier_run *run, const char *metric) {
  for (int i = 0; i < run->mark_count; i++)
    if (strcmp(run->marks[i].metric, metric) == 0) return run->marks[i];
  return (metric_mark){0};
}

/* --- one metric -------------------------------------------------------------------------------------------------------- */

/* The inputs of a metric's judgement, and the suite runs from which they come. */
typedef struct metric_inputs {
  const rl_suite_metric *metric;
  rl_verdict_blocks baseline[EARLIER_RUNS_MAX];
  int64_t baseline_runs[EARLIER_RUNS_MAX];
  size_t baseline_count;
  double history[HISTORY_RUNS_MAX];
  size_t history_count;
  char incomparable_reason[RL_VERDICT_REASON_SIZE];
} metric_inputs;

static const char *text_or_null(const char *text) { return text[0] != '\0' ? text : NULL; }

static bool is_comparable(const earlier_run *run, const rl_suite_progress *progress, const rl_suite_job *job,
                          char reason[RL_VERDICT_REASON_SIZE]) {
  const rl_verdict_conditions baseline = {text_or_null(run->device_name), text_or_null(run->driver),
                                          text_or_null(run->clock_setting),
                                          cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(run->jobs_sha256, job->name))};
  const rl_verdict_conditions current = {text_or_null(progress->device_name), text_or_null(progress->driver),
                                         text_or_null(progress->clock_setting), job->sha256};
  return rl_verdict_compare_conditions(&baseline, &current, reason);
}

/* Converts a series for analyze/verdict.h; NULL becomes a list without blocks. */
static rl_verdict_blocks blocks_of(const rl_suite_series *series) {
  return series != NULL ? (rl_verdict_blocks){series->values, series->sm_cycles, series->count} : (rl_verdict_blocks){0};
}

static void add_baseline(int64_t run_id, const rl_suite_series *values, metric_inputs *inputs) {
  inputs->baseline_runs[inputs->baseline_count] = run_id;
  inputs->baseline[inputs->baseline_count++] = blocks_of(values);
}

/* Reverses the baseline runs and the history, which were added from the newest to the oldest. */
static void sort_oldest_first(metric_inputs *inputs) {
  for (size_t i = 0; i < inputs->baseline_count / 2; i++) {
    size_t other = inputs->baseline_count - 1 - i;
    rl_verdict_blocks blocks = inputs->baseline[i];
    inputs->baseline[i] = inputs->baseline[other];
    inputs->baseline[other] = blocks;
    int64_t id = inputs->baseline_runs[i];
    inputs->baseline_runs[i] = inputs->baseline_runs[other];
    inputs->baseline_runs[other] = id;
  }
  for (size_t i = 0; i < inputs->history_count / 2; i++) {
    double median = inputs->history[i];
    inputs->history[i] = inputs->history[inputs->history_count - 1 - i];
    inputs->history[inputs->history_count - 1 - i] = median;
  }
}

/* The state of the search for the run with which a metric's current performance level begins. Older runs are neither baseline nor
 * history. The search goes from the newest to the oldest run. */
typedef struct level_search {
  bool is_over;            /* the runs that follow in the search, which are older, have another level */
  const char *faster_than; /* name of the baseline than which the last seen run was faster; NULL: no such run was seen */
} level_search;

/* Ends the level before this run if the newer runs were faster than a named baseline and this run was not. Several runs in a row
 * can be faster than the same named baseline; the oldest of them begins the level. */
static void end_level_before(level_search *level, const earlier_run *run, metric_mark mark) {
  if (level->faster_than != NULL && !mark.is_faster && strcmp(run->against, level->faster_than) == 0) level->is_over = true;
}

/* Ends the level after this run, the first of its level, if the run was faster than the rolling baseline, or slower and promoted.
 */
static void end_level_after(level_search *level, const earlier_run *run, metric_mark mark) {
  if (mark.is_accepted || (mark.is_faster && run->against[0] == '\0')) level->is_over = true;
  if (mark.is_faster && run->against[0] != '\0') level->faster_than = run->against;
}

/* Returns the metric's values in the run; NULL if the run has none, or if most of them were dropped and the run is not the named
 * baseline. Sets *median to their median. */
static const rl_suite_series *find_good_values(const earlier_run *run, const char *key, bool is_named, double *median) {
  const rl_suite_series *values = rl_suite_series_find(&run->values.blocks, key);
  size_t finite_count = 0;
  *median = values != NULL ? rl_suite_series_median(values, &finite_count) : NAN;
  return finite_count > 0 && (is_named || values->dropped_count <= finite_count) ? values : NULL;
}

static void explain_other_processes(const earlier_run *run, const rl_suite_series *values, char reason[RL_VERDICT_REASON_SIZE]) {
  snprintf(reason, RL_VERDICT_REASON_SIZE,
           "Suite run %lld is not used as a baseline: other processes used the device while block %zu was measured: %s.",
           (long long)run->id, values->first_block_with_other_processes, values->other_processes);
}

/* Selects the baseline and the history of a metric from the earlier runs. If no run can be a baseline, sets
 * inputs->incomparable_reason to the reason of the newest run that has the metric. */
static void select_inputs(const earlier_runs *earlier, const rl_suite_progress *progress, const char *key,
                          metric_inputs *inputs) {
  const rl_suite_job *job = rl_suite_find_job(progress->suite, inputs->metric->job);
  char reason[RL_VERDICT_REASON_SIZE], first_reason[RL_VERDICT_REASON_SIZE] = "";
  size_t max_rolling_runs = earlier->named >= 0 ? 0 : (size_t)progress->suite->baseline_runs;
  level_search level = {0};
  for (int i = 0; i < earlier->count; i++) {
    const earlier_run *run = &earlier->runs[i];
    bool is_named = i == earlier->named;
    double median;
    const rl_suite_series *values = find_good_values(run, key, is_named, &median);
    metric_mark mark = find_mark(run, key);
    if (values == NULL || (mark.is_bad && !is_named)) continue;
    if (values->other_processes[0] != '\0' && !is_named) {
      if (earlier->named < 0 && first_reason[0] == '\0') explain_other_processes(run, values, first_reason);
      continue;
    }
    if (!is_comparable(run, progress, job, reason)) {
      if ((earlier->named < 0 || is_named) && first_reason[0] == '\0') memcpy(first_reason, reason, sizeof reason);
      continue;
    }
    end_level_before(&level, run, mark);
    if (is_named || (!level.is_over && inputs->baseline_count < max_rolling_runs)) add_baseline(run->id, values, inputs);
    if (!level.is_over && inputs->history_count < HISTORY_RUNS_MAX) inputs->history[inputs->history_count++] = median;
    end_level_after(&level, run, mark);
  }
  if (inputs->baseline_count == 0) memcpy(inputs->incomparable_reason, first_reason, sizeof first_reason);
  sort_oldest_first(inputs);
}

/* Selects the values of the baseline that the run itself has measured. Needs no history, because the jobs of the baseline and the
 * current jobs ran under the same conditions. */
static void select_measured_baseline(const rl_suite_progress *progress, const rl_suite_values *current, const char *key,
                                     metric_inputs *inputs) {
  const rl_suite_series *values = rl_suite_series_find(&current->baselines, key);
  size_t finite_count;
  if (values != NULL && isfinite(rl_suite_series_median(values, &finite_count)))
    return add_baseline(progress->id, values, inputs);
  const rl_suite_step_row *failing = rl_suite_find_failing_job(progress, "baseline");
  if (failing != NULL)
    snprintf(inputs->incomparable_reason, sizeof inputs->incomparable_reason,
             "Job %s of the measured baseline failed in every block: %s.", failing->job_name, failing->dropped_reason);
}

/* --- the judgement as JSON --------------------------------------------------------------------------------------------- */

static void add_pair(cJSON *object, const char *name, double low, double high) {
  cJSON *pair = cJSON_AddArrayToObject(object, name);
  cJSON_AddItemToArray(pair, isfinite(low) ? cJSON_CreateNumber(low) : cJSON_CreateNull());
  cJSON_AddItemToArray(pair, isfinite(high) ? cJSON_CreateNumber(high) : cJSON_CreateNull());
}

static void add_effects(const rl_verdict_judgement *judged, cJSON *item) {
  rl_json_add_number(item, "baseline_median", judged->baseline_median);
  rl_json_add_number(item, "current_median", judged->current_median);
  rl_json_add_number(item, "effect_ratio", judged->effect_ratio);
  add_pair(item, "interval_ratio", judged->interval_low_ratio, judged->interval_high_ratio);
  rl_json_add_number(item, "p_value", judged->p_value);
  rl_json_add_number(item, "q_value", judged->q_value);
  rl_json_add_number(item, "history_limit_ratio", judged->history_limit_ratio);
  cJSON_AddNumberToObject(item, "history_runs", (double)judged->history_runs);
  rl_json_add_number(item, "recent_median", judged->recent_median);
  rl_json_add_number(item, "step_ratio", judged->step_ratio);
  rl_json_add_number(item, "cycles_effect_ratio", judged->cycles_effect_ratio);
  rl_json_add_number(item, "confirmation_baseline_median", judged->confirmation_baseline_median);
  rl_json_add_number(item, "confirmation_median", judged->confirmation_median);
  rl_json_add_number(item, "confirmation_effect_ratio", judged->confirmation_effect_ratio);
  add_pair(item, "confirmation_interval_ratio", judged->confirmation_low_ratio, judged->confirmation_high_ratio);
  rl_json_add_number(item, "confirmation_p_value", judged->confirmation_p_value);
  rl_json_add_number(item, "confirmation_q_value", judged->confirmation_q_value);
}

static void add_counts(const rl_verdict_judgement *judged, cJSON *item) {
  cJSON_AddNumberToObject(item, "blocks_baseline", (double)judged->blocks_baseline);
  cJSON_AddNumberToObject(item, "blocks_current", (double)judged->blocks_current);
  cJSON_AddNumberToObject(item, "blocks_confirmation", (double)judged->blocks_confirmation);
  cJSON_AddNumberToObject(item, "blocks_dropped", (double)judged->blocks_dropped);
  cJSON_AddNumberToObject(item, "blocks_needed", (double)judged->blocks_needed);
}

static void add_modes(cJSON *item, const char *name, bool is_bimodal, const double modes[2]) {
  if (is_bimodal) add_pair(item, name, modes[0], modes[1]);
  else cJSON_AddNullToObject(item, name);
}

static char *print_judgement(const char *key, const metric_inputs *inputs, const rl_verdict_judgement *judged) {
  cJSON *item = cJSON_CreateObject();
  cJSON_AddStringToObject(item, "metric", key);
  cJSON_AddStringToObject(item, "verdict", rl_verdict_name(judged->verdict));
  cJSON_AddStringToObject(item, "reason", judged->reason);
  cJSON_AddStringToObject(item, "direction", inputs->metric->direction == 0 ? "lower" : "higher");
  cJSON_AddNumberToObject(item, "threshold_ratio", inputs->metric->threshold_ratio);
  add_effects(judged, item);
  add_counts(judged, item);
  if (judged->confirmed < 0) cJSON_AddNullToObject(item, "confirmed");
  else cJSON_AddBoolToObject(item, "confirmed", judged->confirmed);
  add_modes(item, "baseline_modes", judged->baseline_bimodal, judged->baseline_modes);
  add_modes(item, "current_modes", judged->current_bimodal, judged->current_modes);
  cJSON *runs = cJSON_AddArrayToObject(item, "baseline_runs"), *history = cJSON_AddArrayToObject(item, "history");
  for (size_t i = 0; i < inputs->baseline_count; i++)
    cJSON_AddItemToArray(runs, cJSON_CreateNumber((double)inputs->baseline_runs[i]));
  for (size_t i = 0; i < inputs->history_count; i++) cJSON_AddItemToArray(history, cJSON_CreateNumber(inputs->history[i]));
  cJSON_AddNumberToObject(item, "method_version", RL_VERDICT_METHOD);
  char *text = cJSON_PrintUnformatted(item);
  cJSON_Delete(item);
  return text;
}

void rl_suite_judgement_clear(rl_suite_judgement *judgement) {
  for (int i = 0; i < judgement->verdict_count; i++) {
    free((char *)judgement->verdicts[i].metric);
    free((char *)judgement->verdicts[i].judgement);
    free((char *)judgement->verdicts[i].causes);
  }
  free(judgement->verdicts);
  free(judgement->baseline_runs);
  *judgement = (rl_suite_judgement){0};
}

/* Returns a JSON array of the ids of all runs that are a baseline of some metric, each once. The caller frees the text. */
static char *print_baseline_runs(const metric_inputs *inputs, int count) {
  cJSON *ids = cJSON_CreateArray();
  for (int i = 0; i < count; i++)
    for (size_t j = 0; j < inputs[i].baseline_count; j++) {
      bool known = false;
      const cJSON *id;
      cJSON_ArrayForEach (id, ids) known |= id->valuedouble == (double)inputs[i].baseline_runs[j];
      if (!known) cJSON_AddItemToArray(ids, cJSON_CreateNumber((double)inputs[i].baseline_runs[j]));
    }
  char *text = cJSON_PrintUnformatted(ids);
  cJSON_Delete(ids);
  return text;
}

/* --- all metrics ------------------------------------------------------------------------------------------------------- */

/* The inputs of the judgement of all metrics. */
typedef struct suite_inputs {
  rl_suite_values current;
  earlier_runs *earlier;
  metric_inputs *inputs; /* one for each series of current.blocks */
  rl_verdict_metric *metrics;
  rl_verdict_judgement *judgements;
} suite_inputs;

static void clear_inputs(suite_inputs *inputs) {
  rl_suite_values_clear(&inputs->current);
  free_earlier(inputs->earlier);
  free(inputs->inputs);
  free(inputs->metrics);
  free(inputs->judgements);
}

static void fill_metric(const rl_suite_series *current, const metric_inputs *inputs, rl_verdict_metric *metric) {
  *metric = (rl_verdict_metric){
      .key = current->metric,
      .direction = inputs->metric->direction == 0 ? RL_LOWER_IS_BETTER : RL_HIGHER_IS_BETTER,
      .threshold_ratio = inputs->metric->threshold_ratio,
      .baseline_runs = inputs->baseline,
      .baseline_run_count = inputs->baseline_count,
      .current = blocks_of(current),
      .history = inputs->history,
      .history_count = inputs->history_count,
      .dropped_reason = text_or_null(current->first_dropped_reason),
      .incomparable_reason = text_or_null(inputs->incomparable_reason),
  };
}

static void add_confirmation(const rl_suite_values *values, rl_verdict_metric *metric) {
  metric->confirmation = blocks_of(rl_suite_series_find(&values->confirmations, metric->key));
  metric->confirmation_baseline = blocks_of(rl_suite_series_find(&values->baseline_confirmations, metric->key));
}

static int read_inputs(rl_store *store, const rl_suite_progress *progress, bool with_confirmation, suite_inputs *all,
                       rl_error *err) {
  all->earlier = calloc(1, sizeof *all->earlier);
  if (all->earlier == NULL) return fail_memory(err);
  if (rl_suite_values_read(store, progress->id, &all->current, err) < 0 || read_earlier(store, progress, all->earlier, err) < 0)
    return -1;
  size_t count = (size_t)all->current.blocks.count;
  all->inputs = calloc(count + 1, sizeof *all->inputs);
  all->metrics = calloc(count + 1, sizeof *all->metrics);
  all->judgements = calloc(count + 1, sizeof *all->judgements);
  if (all->inputs == NULL || all->metrics == NULL || all->judgements == NULL) return fail_memory(err);
  for (size_t i = 0; i < count; i++) {
    const rl_suite_series *current = &all->current.blocks.items[i];
    metric_inputs *inputs = &all->inputs[i];
    inputs->metric = rl_suite_find_metric_by_key(progress->suite, current->metric);
    if (inputs->metric == NULL)
      return rl_fail(err, RL_STORAGE, RL_STORAGE_INTERNAL,
                     "suite run %lld has values of %s, which is not a metric of its definition", (long long)progress->id,
                     current->metric);
    if (progress->measured_baseline != NULL) select_measured_baseline(progress, &all->current, current->metric, inputs);
    else select_inputs(all->earlier, progress, current->metric, inputs);
    fill_metric(current, inputs, &all->metrics[i]);
    if (with_confirmation) add_confirmation(&all->current, &all->metrics[i]);
  }
  return 0;
}

static void mark_unconfirmed(const rl_suite *suite, const rl_suite_metric *metric, rl_suite_judgement *judgement) {
  for (int i = 0; i < suite->job_count; i++) judgement->unconfirmed_jobs[i] |= strcmp(suite->jobs[i].name, metric->job) == 0;
}

static int write_verdicts(const rl_suite *suite, const suite_inputs *all, rl_suite_judgement *judgement, rl_error *err) {
  judgement->verdicts = calloc((size_t)all->current.blocks.count + 1, sizeof *judgement->verdicts);
  judgement->baseline_runs = print_baseline_runs(all->inputs, all->current.blocks.count);
  if (judgement->verdicts == NULL || judgement->baseline_runs == NULL) return fail_memory(err);
  for (int i = 0; i < all->current.blocks.count; i++) {
    rl_suite_verdict *verdict = &judgement->verdicts[judgement->verdict_count++];
    verdict->metric = strdup(all->current.blocks.items[i].metric);
    verdict->verdict = rl_verdict_name(all->judgements[i].verdict);
    verdict->judgement = print_judgement(all->current.blocks.items[i].metric, &all->inputs[i], &all->judgements[i]);
    if (verdict->metric == NULL || verdict->judgement == NULL) return fail_memory(err);
    if (all->judgements[i].needs_confirmation) mark_unconfirmed(suite, all->inputs[i].metric, judgement);
  }
  return 0;
}

/* Returns the id of the metric's newest baseline run; 0 if it has none. */
static int64_t newest_baseline(const metric_inputs *inputs) {
  return inputs->baseline_count > 0 ? inputs->baseline_runs[inputs->baseline_count - 1] : 0;
}

/* Returns the variant of the measured baseline that corresponds to this variant. */
static const char *find_counterpart(const rl_suite_progress *progress, const char *job_name, const char *variant) {
  const rl_suite_job *job = rl_suite_find_job(progress->suite, job_name),
                     *baseline = rl_suite_find_job(progress->measured_baseline, job_name);
  for (int i = 0; i < job->variant_count; i++)
    if (strcmp(job->variants[i], variant) == 0) return baseline->variants[i];
  return variant;
}

/* Returns whether a metric's effect is so large that its causes are searched: the metric is slower or faster, or its effect
 * exceeds the threshold but a second test, such as the one of the clock cycles, does not confirm the effect. */
static bool has_large_effect(const rl_verdict_judgement *judged, const rl_suite_metric *metric) {
  return judged->verdict == RL_VERDICT_SLOWER || judged->verdict == RL_VERDICT_FASTER ||
         (judged->verdict == RL_VERDICT_INCONCLUSIVE && fabs(judged->effect_ratio) > metric->threshold_ratio);
}

/* Returns whether the metric has too few blocks because blocks were dropped while the device was throttled or other processes
 * used it. */
static bool lacks_blocks_because_of_device(const rl_verdict_judgement *judged, const rl_suite_series *blocks) {
  return judged->verdict == RL_VERDICT_INCONCLUSIVE && judged->blocks_current < judged->blocks_needed &&
         blocks->dropped_count > 0 &&
         (strstr(blocks->first_dropped_reason, "throttled") != NULL || blocks->other_processes[0] != '\0');
}

/* Adds causes to the verdicts of metrics with a large effect, and of metrics with too few blocks. A verdict gets no causes if its
 * profiles can't be compared. */
static void add_causes(rl_store *store, const rl_suite_progress *progress, const suite_inputs *all,
                       rl_suite_judgement *judgement) {
  char job[RL_SUITE_NAME_SIZE], variant[32];
  rl_error err;
  for (int i = 0; i < judgement->verdict_count; i++) {
    rl_suite_verdict *verdict = &judgement->verdicts[i];
    const rl_verdict_judgement *judged = &all->judgements[i];
    const char *metric = all->inputs[i].metric->metric;
    char *causes = NULL;
    if (lacks_blocks_because_of_device(judged, &all->current.blocks.items[i])) {
      verdict->causes = rl_suite_print_dropped_blocks(&all->current.blocks.items[i]);
      continue;
    }
    if (!has_large_effect(judged, all->inputs[i].metric) || !rl_suite_split_key(verdict->metric, job, variant)) continue;
    const rl_suite_series *blocks = &all->current.blocks.items[i],
                          *baseline_series = rl_suite_series_find(&all->current.baselines, verdict->metric);
    const rl_suite_profile current = {progress->id, "profile", job, variant, judged->current_median, blocks->other_processes};
    rl_suite_profile baseline = {
        newest_baseline(&all->inputs[i]),
        "profile",
        job,
        variant,
        judged->baseline_median,
        progress->measured_baseline != NULL && baseline_series != NULL ? baseline_series->other_processes : ""};
    if (progress->measured_baseline != NULL) baseline.run = progress->id, baseline.role = "baseline_profile";
    if (progress->measured_baseline != NULL) baseline.variant = find_counterpart(progress, job, variant);
    if (baseline.run == 0) continue;
    if (rl_suite_find_causes(store, metric, &baseline, &current, &causes, &err) < 0)
      rl_log(RL_LOG_WARNING, "suite run %lld, %s: can't find causes: %s", (long long)progress->id, verdict->metric, err.message);
    verdict->causes = causes;
  }
}

int rl_suite_judge_run(rl_store *store, const rl_suite_progress *progress, bool with_confirmation, const char *quarantine_reason,
                       rl_suite_judgement *judgement, rl_error *err) {
  suite_inputs all = {0};
  *judgement = (rl_suite_judgement){0};
  int rc = read_inputs(store, progress, with_confirmation, &all, err);
  const rl_verdict_suite suite = {all.metrics, (size_t)all.current.blocks.count, quarantine_reason};
  if (rc == 0) rc = rl_verdict_judge_suite(&suite, all.judgements, &judgement->summary, err);
  if (rc == 0) rc = write_verdicts(progress->suite, &all, judgement, err);
  if (rc == 0 && with_confirmation) add_causes(store, progress, &all, judgement);
  clear_inputs(&all);
  return rc;
}
