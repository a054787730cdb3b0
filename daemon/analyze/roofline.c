/* Evaluates the expressions of each roof over raw metrics, and classifies the kernel by its shares of the roofs. */
#include "analyze/roofline.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "analyze/expression.h"
#include "analyze/thresholds.h"

const char *const rl_bound_names[] = {"unknown", "memory", "compute", "latency", NULL};

/* --- expressions of the roofs ------------------------------------------------------------------------------------------ */

enum { MAX_EXPRESSIONS = 4 };

typedef struct roof_expressions {
  const char *name;
  /* The first expression whose metrics are known is used, because metric names differ between chips. */
  const char *achieved[MAX_EXPRESSIONS], *theoretical[MAX_EXPRESSIONS];
  const char *measured[MAX_EXPRESSIONS]; /* expressions of which the largest known value is used */
} roof_expressions;

#define EXECUTED(op) "smsp__sass_thread_inst_executed_op_" op "_pred_on.sum.per_cycle_elapsed"
#define PEAK_EXECUTED(op) "sm__sass_thread_inst_executed_op_" op "_pred_on.sum.peak_sustained"
#define SM_CLOCK "sm__cycles_elapsed.avg.per_second"
#define TENSOR_EXECUTED(type) "sm__ops_path_tensor_src_" type ".sum.per_cycle_elapsed * " SM_CLOCK
#define TENSOR_PEAK(type) "sm__ops_path_tensor_" type ".sum.peak_sustained * " SM_CLOCK

/* The rate of L2 counts bytes between L2 and the multiprocessors in both directions, but its theoretical ceiling is the ceiling
 * of reads. The rate of L1 counts bytes that L1 returns to registers. */
static const roof_expressions level_expressions[RL_LEVEL_COUNT] = {
    [RL_LEVEL_DRAM] = {"dram",
                       {"dram__bytes.sum.per_second"},
                       {"dram__bytes.sum.peak_sustained * dram__cycles_elapsed.avg.per_second"},
                       {"ceiling__dram_read_bytes_per_s", "ceiling__dram_write_bytes_per_s", "ceiling__dram_copy_bytes_per_s",
                        "ceiling__dram_triad_bytes_per_s"}},
    [RL_LEVEL_L2] = {"l2",
                     {"l1tex__m_xbar2l1tex_read_bytes.sum.per_second + l1tex__m_l1tex2xbar_write_bytes.sum.per_second"},
                     {"32 * lts__lts2xbar_cycles_active.sum.peak_sustained * lts__cycles_elapsed.avg.per_second"},
                     {"ceiling__l2_read_bytes_per_s", "ceiling__l2_write_bytes_per_s", "ceiling__l2_copy_bytes_per_s"}},
    [RL_LEVEL_L1] = {"l1",
                     {"128 * l1tex__lsu_writeback_active_mem_lgds.sum.per_second"},
                     {"128 * l1tex__lsu_writeback_active_mem_lgds.sum.peak_sustained * l1tex__cycles_elapsed.avg.per_second"},
                     {"ceiling__l1_read_bytes_per_s"}},
};

/* These counters include moves of constants and conversions, which are encoded as HFMA2 and HADD2. */
#define FP16_WITH_MOVES "(2 * " EXECUTED("hadd") " + 2 * " EXECUTED("hmul") " + 4 * " EXECUTED("hfma") ") * " SM_CLOCK

/* An FP16 instruction of a thread computes two elements. Tensor core peaks are for dense matrices. */
static const roof_expressions unit_expressions[RL_UNIT_COUNT] = {
    [RL_UNIT_FP64] = {"fp64",
                      {"(" EXECUTED("dadd") " + " EXECUTED("dmul") " + 2 * " EXECUTED("dfma") ") * " SM_CLOCK},
                      {"2 * " PEAK_EXECUTED("dfma") " * " SM_CLOCK},
                      {"ceiling__fp64_operations_per_s"}},
    [RL_UNIT_FP32] = {"fp32",
                      {"(" EXECUTED("fadd") " + " EXECUTED("fmul") " + 2 * " EXECUTED("ffma") ") * " SM_CLOCK},
                      {"2 * " PEAK_EXECUTED("ffma") " * " SM_CLOCK},
                      {"ceiling__fp32_operations_per_s"}},
    [RL_UNIT_FP16] = {"fp16",
                      {"(2 * max(0, " EXECUTED("hadd") " - code__thread_inst_executed_hadd2_moves / smsp__cycles_elapsed.max) + "
                                                       "2 * " EXECUTED(
                                                           "hmul") " + "
                                                                   "4 * max(0, " EXECUTED(
                                                                       "hfma") " - code__thread_inst_executed_hfma2_moves / "
                                                                               "smsp__cycles_elapsed.max)) * " SM_CLOCK,
                       FP16_WITH_MOVES},
                      {"4 * " PEAK_EXECUTED("hfma") " * " SM_CLOCK},
                      {"ceiling__fp16_operations_per_s", "ceiling__bf16_operations_per_s"}},
    [RL_UNIT_TENSOR_FP64] = {"tensor_fp64",
                             {TENSOR_EXECUTED("fp64")},
                             {TENSOR_PEAK("src_fp64")},
                             {"ceiling__tensor_fp64_operations_per_s"}},
    [RL_UNIT_TENSOR_TF32] = {"tensor_tf32",
                             {TENSOR_EXECUTED("tf32_dst_fp32")},
                             {TENSOR_PEAK("op_hgmma_src_tf32_dst_fp32_sparsity_off"),
                              TENSOR_PEAK("src_tf32_dst_fp32_sparsity_off"),
                              TENSOR_PEAK("op_hmma_src_tf32_dst_fp32_sparsity_off")},
                             {"ceiling__tensor_tf32_operations_per_s"}},
    [RL_UNIT_TENSOR_FP16] = {"tensor_fp16",
                             {TENSOR_EXECUTED("fp16"),
                              "(sm__ops_path_tensor_src_fp16_dst_fp16.sum.per_cycle_elapsed + "
                              "sm__ops_path_tensor_src_fp16_dst_fp32.sum.per_cycle_elapsed) * " SM_CLOCK},
                             {TENSOR_PEAK("op_hgmma_src_fp16_sparsity_off"), TENSOR_PEAK("src_fp16_dst_fp32_sparsity_off"),
                              TENSOR_PEAK("op_hmma_src_fp16_dst_fp32_sparsity_off")},
                             {"ceiling__tensor_fp16_operations_per_s"}},
    [RL_UNIT_TENSOR_BF16] = {"tensor_bf16",
                             {TENSOR_EXECUTED("bf16_dst_fp32")},
                             {TENSOR_PEAK("op_hgmma_src_bf16_dst_fp32_sparsity_off"),
                              TENSOR_PEAK("src_bf16_dst_fp32_sparsity_off"),
                              TENSOR_PEAK("op_hmma_src_bf16_dst_fp32_sparsity_off")},
                             {"ceiling__tensor_bf16_operations_per_s"}},
};

/* --- evaluation -------------------------------------------------------------------------------------------------------- */

static double look_up(void *context, const char *name) { return rl_metric_values_get(context, name); }

static double value_of(const rl_metric_values *values, const char *expression) {
  rl_scope scope = {look_up, (void *)(uintptr_t)values};
  double value = NAN;
  return rl_expression_evaluate(expression, strlen(expression), &scope, &value, NULL) == 0 ? value : NAN;
}

static double first_known(const rl_metric_values *values, const char *const expressions[MAX_EXPRESSIONS]) {
  double value = NAN;
  for (int i = 0; i < MAX_EXPRESSIONS && expressions[i] && isnan(value); i++) value = value_of(values, expressions[i]);
  return value;
}

static double max_known(const rl_metric_values *values, const char *const expressions[MAX_EXPRESSIONS]) {
  double max = NAN;
  for (int i = 0; i < MAX_EXPRESSIONS && expressions[i]; i++) max = fmax(max, value_of(values, expressions[i]));
  return max;
}

/* Returns whether the achieved rate may include moves: only the expression that counts them is known, and it is not 0. */
static bool counts_moves(const rl_metric_values *values, const roof_expressions *expressions) {
  return expressions == &unit_expressions[RL_UNIT_FP16] && isnan(value_of(values, expressions->achieved[0])) &&
         value_of(values, expressions->achieved[1]) > 0;
}

static rl_roof compute_roof(const rl_metric_values *values, const roof_expressions *expressions) {
  return (rl_roof){.name = expressions->name,
                   .achieved_per_s = first_known(values, expressions->achieved),
                   .is_upper_bound = counts_moves(values, expressions),
                   .theoretical_per_s = first_known(values, expressions->theoretical),
                   .measured_per_s = max_known(values, expressions->measured)};
}

static double ratio(double a, double b) { return b > 0 ? a / b : NAN; }

/* Returns the smaller value; NAN if one is unknown. */
static double min_if_known(double a, double b) { return isnan(a) || isnan(b) ? NAN : fmin(a, b); }

static rl_roof_point compute_point(const rl_roof *level, const rl_roof *unit) {
  double intensity = ratio(unit->achieved_per_s, level->achieved_per_s);
  return (rl_roof_point){
      .intensity = intensity,
      .ridge_theoretical = ratio(unit->theoretical_per_s, level->theoretical_per_s),
      .ridge_measured = ratio(unit->measured_per_s, level->measured_per_s),
      .attainable_theoretical_per_s = min_if_known(unit->theoretical_per_s, intensity * level->theoretical_per_s),
      .attainable_measured_per_s = min_if_known(unit->measured_per_s, intensity * level->measured_per_s)};
}

static rl_roof_model compute_model(const rl_metric_values *values, double duration_s) {
  double bytes = rl_metric_values_get(values, "model__bytes"), operations = rl_metric_values_get(values, "model__operations");
  return (rl_roof_model){.bytes = bytes,
                         .operations = operations,
                         .intensity = ratio(operations, bytes),
                         .bytes_per_s = ratio(bytes, duration_s),
                         .operations_per_s = ratio(operations, duration_s)};
}

/* --- classification ---------------------------------------------------------------------------------------------------- */

static double share_pct(const rl_roof *unit) { return 100 * ratio(unit->achieved_per_s, unit->theoretical_per_s); }

/* Returns the unit that is closest to its peak; returns -1 if no unit executed an operation. */
static int busiest_unit(const rl_roof *units) {
  int busiest = -1;
  for (int i = 0; i < RL_UNIT_COUNT; i++)
    if (share_pct(&units[i]) > (busiest < 0 ? 0 : share_pct(&units[busiest]))) busiest = i;
  return busiest;
}

static void set_shares_from_counters(const rl_metric_values *values, const rl_roofline *roofline, rl_classification *c) {
  c->memory_pct = rl_metric_values_get(values, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed");
  c->compute_pct = rl_metric_values_get(values, "sm__throughput.avg.pct_of_peak_sustained_elapsed");
  c->unit = busiest_unit(roofline->units);
  if (c->unit < 0) return;
  c->unit_pct = share_pct(&roofline->units[c->unit]);
  c->intensity = roofline->points[RL_LEVEL_DRAM][c->unit].intensity;
  c->ridge = roofline->points[RL_LEVEL_DRAM][c->unit].ridge_theoretical;
}

#define MODEL_RATE "model__operations_ceiling_per_s"

static void set_shares_from_model(const rl_metric_values *values, const rl_roofline *roofline, rl_classification *c) {
  double bytes = roofline->levels[RL_LEVEL_DRAM].measured_per_s, operations = rl_metric_values_get(values, MODEL_RATE);
  const rl_metric_value *rate = rl_metric_find(values, MODEL_RATE);
  c->memory_pct = 100 * ratio(roofline->model.bytes_per_s, bytes);
  c->compute_pct = roofline->model.operations == 0 ? 0 : 100 * ratio(roofline->model.operations_per_s, operations);
  c->compute_reason = rate != NULL && isnan(operations) ? rate->reason : NULL;
  c->unit_pct = c->compute_pct;
  c->intensity = roofline->model.intensity;
  c->ridge = ratio(operations, bytes);
}

static rl_bound bound_with_larger_share(const rl_classification *c) {
  return c->memory_pct >= c->compute_pct ? RL_BOUND_MEMORY : RL_BOUND_COMPUTE;
}

static void decide_bound(rl_classification *c) {
  double higher_pct = fmax(c->memory_pct, c->compute_pct), lower_pct = fmin(c->memory_pct, c->compute_pct);
  if (isnan(c->memory_pct) || isnan(c->compute_pct)) {
    const char *reason = isnan(c->memory_pct) ? NULL : c->compute_reason;
    snprintf(c->why, sizeof c->why, "the percentage of the peak is unknown for %s%s%s",
             isnan(c->memory_pct) ? "memory" : "compute", reason != NULL ? ": " : "", reason != NULL ? reason : "");
  } else if (higher_pct < c->busy_pct) {
    c->bound = RL_BOUND_LATENCY;
    snprintf(c->why, sizeof c->why, "memory (%.1f %%) and compute (%.1f %%) both stay below %.0f %% of their peaks",
             c->memory_pct, c->compute_pct, c->busy_pct);
  } else if (higher_pct - lower_pct >= c->balanced_pct) {
    c->bound = bound_with_larger_share(c);
    snprintf(c->why, sizeof c->why, "%s reaches %.1f %% of its peak, %s %.1f %%", rl_bound_names[c->bound], higher_pct,
             c->bound == RL_BOUND_MEMORY ? "compute" : "memory", lower_pct);
  } else if (c->unit_pct >= c->compute_pct - c->balanced_pct && !isnan(c->intensity) && !isnan(c->ridge)) {
    c->bound = c->intensity < c->ridge ? RL_BOUND_MEMORY : RL_BOUND_COMPUTE;
    snprintf(c->why, sizeof c->why, "the intensity, %.4g operations per byte, is %s the ridge at %.4g", c->intensity,
             c->bound == RL_BOUND_MEMORY ? "below" : "not below", c->ridge);
  } else {
    c->bound = bound_with_larger_share(c);
    snprintf(c->why, sizeof c->why, "%s reaches the higher percentage of its peak, %.1f %%", rl_bound_names[c->bound],
             higher_pct);
  }
}

static rl_classification classify(const rl_metric_values *values, const rl_roofline *roofline) {
  rl_classification classification = {.unit = -1,
                                      .unit_pct = NAN,
                                      .intensity = NAN,
                                      .ridge = NAN,
                                      .busy_pct = RL_BUSY_PCT,
                                      .balanced_pct = RL_BALANCED_DIFFERENCE_PCT};
  if (roofline->counted) set_shares_from_counters(values, roofline, &classification);
  else set_shares_from_model(values, roofline, &classification);
  decide_bound(&classification);
  return classification;
}

rl_roofline rl_roofline_compute(const rl_metric_values *values) {
  double counted_ns = rl_metric_values_get(values, "gpu__time_duration.sum");
  rl_roofline roofline = {.counted = !isnan(counted_ns)};
  roofline.duration_s = roofline.counted ? counted_ns * 1e-9 : rl_metric_values_get(values, "timing__time_cold_us_median") * 1e-6;
  for (int level = 0; level < RL_LEVEL_COUNT; level++) roofline.levels[level] = compute_roof(values, &level_expressions[level]);
  for (int unit = 0; unit < RL_UNIT_COUNT; unit++) roofline.units[unit] = compute_roof(values, &unit_expressions[unit]);
  for (int level = 0; level < RL_LEVEL_COUNT; level++)
    for (int unit = 0; unit < RL_UNIT_COUNT; unit++)
      roofline.points[level][unit] = compute_point(&roofline.levels[level], &roofline.units[unit]);
  roofline.model = compute_model(values, roofline.duration_s);
  roofline.classification = classify(values, &roofline);
  return roofline;
}

const char *rl_roofline_expression(size_t index) {
  for (size_t i = 0; i < RL_LEVEL_COUNT + RL_UNIT_COUNT; i++) {
    const roof_expressions *roof = i < RL_LEVEL_COUNT ? &level_expressions[i] : &unit_expressions[i - RL_LEVEL_COUNT];
    const char *const *lists[] = {roof->achieved, roof->theoretical, roof->measured};
    for (size_t k = 0; k < 3 * MAX_EXPRESSIONS; k++)
      if (lists[k / MAX_EXPRESSIONS][k % MAX_EXPRESSIONS] && index-- == 0) return lists[k / MAX_EXPRESSIONS][k % MAX_EXPRESSIONS];
  }
  return NULL;
}
