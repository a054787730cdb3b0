/* Implements suite_trials.h: the random numbers, the runs of one metric, and the judgement of a suite run. */
#include "suite_trials.h"

#include <math.h>

#include "hash.h"

typedef struct generator {
  uint64_t state;
} generator;

static double uniform(generator *g) { /* returns a random number in (0, 1] */
  g->state = rl_hash64(g->state);
  return ((double)(g->state >> 11) + 1) * 0x1p-53;
}
static double normal(generator *g) {
  double radius = sqrt(-2 * log(uniform(g)));
  return radius * cos(2 * M_PI * uniform(g));
}
static double student_3(generator *g) {
  double x = normal(g), y = normal(g), z = normal(g);
  return normal(g) / sqrt((x * x + y * y + z * z) / 3);
}

/* The state of one metric that continues from run to run or from block to block. */
typedef struct metric_state {
  double walk;          /* sum of the random walk's steps so far */
  double run_deviation; /* random part that the blocks of the current run share */
  double last_block;    /* random part of the previous block, before it is scaled */
  bool upper_mode;      /* the current run is in the upper mode */
  size_t next_recorded, stretch_left;
} metric_state;

static void start_run(const trial_noise *noise, generator *g, metric_state *state) {
  state->walk += noise->walk_ratio * normal(g);
  state->run_deviation = noise->run_ratio * normal(g);
  state->stretch_left = 0;
  state->upper_mode = uniform(g) <= noise->mode_share;
}

/* Returns the next recorded value, or the first of another stretch. Multiplies it by 1 plus about 1e-9, because a clock would
 * hardly give the same value twice. */
static double draw_recorded(const trial_noise *noise, generator *g, metric_state *state) {
  if (state->stretch_left == 0) {
    state->next_recorded = (size_t)(uniform(g) * (double)noise->recorded_count);
    state->stretch_left = TRIAL_RECORDED_STRETCH;
  }
  state->stretch_left--;
  return noise->recorded[state->next_recorded++ % noise->recorded_count] * (1 + 1e-9 * normal(g));
}

/* Returns the value of the next block. The outliers are drawn from `outlier_generator`, which gives the same sequence for every
 * metric of the suite: a process that is slow is slow in all its metrics. */
static double draw_block(const trial_noise *noise, generator *g, generator *outlier_generator, metric_state *state) {
  if (noise->family == TRIAL_RECORDED) return draw_recorded(noise, g, state);
  double block = noise->family == TRIAL_STUDENT_3 ? student_3(g) : normal(g);
  if (noise->family == TRIAL_AUTOCORRELATED)
    block = noise->correlation * state->last_block + sqrt(1 - noise->correlation * noise->correlation) * block;
  state->last_block = block;
  bool upper = noise->mode_for_a_run ? state->upper_mode
                                     : uniform(noise->family == TRIAL_OUTLIERS ? outlier_generator : g) <= noise->mode_share;
  bool has_modes = noise->family == TRIAL_TWO_MODES || noise->family == TRIAL_OUTLIERS;
  return 20 * exp(state->walk + state->run_deviation + noise->block_ratio * block) *
         (has_modes && upper ? 1 + noise->mode_ratio : 1);
}

static double median(const double *values, size_t count) {
  double sorted[TRIAL_MAX_BLOCKS];
  for (size_t i = 0, place; i < count; i++) {
    for (place = i; place > 0 && sorted[place - 1] > values[i]; place--) sorted[place] = sorted[place - 1];
    sorted[place] = values[i];
  }
  return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

/* The values of one metric: the blocks of the earlier runs, of the judged run and of its confirmation; the medians of the earlier
 * runs; and the earlier runs in the form that verdict.h takes. */
typedef struct metric_data {
  double values[TRIAL_MAX_RUNS + 2][TRIAL_MAX_BLOCKS], history[TRIAL_MAX_RUNS];
  rl_verdict_blocks runs[TRIAL_MAX_RUNS];
} metric_data;

static int draw_metric(const trial_plan *plan, double slow_down, generator *g, generator outlier_generator, metric_data *data) {
  metric_state state = {0};
  for (size_t run = 0; run < plan->history_runs + 2; run++) {
    bool confirms = run == plan->history_runs + 1;
    if (!confirms) start_run(&plan->noise, g, &state);
    double factor = run >= plan->history_runs ? 1 + slow_down : 1;
    size_t outlying_block;
    /* With baseline_runs 1, run 0 is the named baseline. rooflined refuses a run with an outlying block as one, so run 0 is then
     * drawn again. */
    do {
      for (size_t i = 0; i < plan->blocks; i++)
        data->values[run][i] = factor * draw_block(&plan->noise, g, &outlier_generator, &state);
      if (rl_verdict_find_outlying_block(data->values[run], plan->blocks, plan->threshold_ratio, &outlying_block, NULL) < 0)
        return -1;
    } while (run == 0 && plan->baseline_runs == 1 && outlying_block < plan->blocks);
    if (run >= plan->history_runs) continue;
    data->history[run] = median(data->values[run], plan->blocks);
    data->runs[run] = (rl_verdict_blocks){data->values[run], NULL, plan->blocks};
  }
  return 0;
}

int run_trial(const trial_plan *plan, uint64_t seed, trial_outcome *outcome) {
  static metric_data data[TRIAL_MAX_METRICS];
  rl_verdict_metric metrics[TRIAL_MAX_METRICS];
  rl_verdict_judgement judged[TRIAL_MAX_METRICS];
  rl_verdict_suite suite = {.metrics = metrics, .metric_count = plan->metrics};
  generator g = {rl_hash64(seed)}, outlier_generator = {rl_hash64(~seed)};
  size_t first_baseline_run = plan->baseline_runs == 1 ? 0 : plan->history_runs - plan->baseline_runs;
  for (size_t i = 0; i < plan->metrics; i++) {
    if (draw_metric(plan, i == 0 ? plan->slow_down_ratio : 0, &g, outlier_generator, &data[i]) < 0) return -1;
    metrics[i] = (rl_verdict_metric){.key = "job/fp32/metric",
                                     .threshold_ratio = plan->threshold_ratio,
                                     .baseline_runs = &data[i].runs[first_baseline_run],
                                     .baseline_run_count = plan->baseline_runs,
                                     .current = {data[i].values[plan->history_runs], NULL, plan->blocks},
                                     .history = data[i].history,
                                     .history_count = plan->history_runs};
  }
  *outcome = (trial_outcome){0};
  if (rl_verdict_judge_suite(&suite, judged, &outcome->summary, NULL) < 0) return -1;
  if (outcome->summary.unconfirmed > 0) {
    for (size_t i = 0; i < plan->metrics; i++)
      metrics[i].confirmation = (rl_verdict_blocks){data[i].values[plan->history_runs + 1], NULL, plan->blocks};
    if (rl_verdict_judge_suite(&suite, judged, &outcome->summary, NULL) < 0) return -1;
  }
  outcome->first_metric_verdict = judged[0].verdict;
  return 0;
}
