#include "analyze/roofline.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "analyze/expression.h"

const char *const rl_bound_names[] = {"unknown", "memory", "compute", "latency", NULL};

/* Thresholds of the classification, in percent of a peak. */
#define HIGH_PCT 80.0
#define LOW_PCT 50.0

/* --- where the numbers come from --------------------------------------------------------------------------------------- */

enum { ALTERNATIVES = 4 };

typedef struct source { /* expressions over metrics */
  const char *name;
  const char *achieved[ALTERNATIVES], *theoretical[ALTERNATIVES]; /* the first that is known: chips differ in names */
  const char *measured[ALTERNATIVES];                             /* the most of those that are known */
} source;

#define DONE(op) "smsp__sass_thread_inst_executed_op_" op "_pred_on.sum.per_cycle_elapsed"
#define PEAK(op) "sm__sass_thread_inst_executed_op_" op "_pred_on.sum.peak_sustained"
#define SM_CLOCK "sm__cycles_elapsed.avg.per_second"
#define TENSOR_DONE(type) "sm__ops_path_tensor_src_" type ".sum.per_cycle_elapsed * " SM_CLOCK
#define TENSOR_PEAK(type) "sm__ops_path_tensor_" type ".sum.peak_sustained * " SM_CLOCK

/* Bytes of L2 are those between it and the multiprocessors, both ways; its theoretical ceiling is that of reading. Bytes of L1
 * are those it returns to registers. */
static const source level_sources[RL_LEVELS] = {
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

/* A thread's FP16 instruction works on two numbers. Peaks of tensor cores are those of dense matrices. */
static const source unit_sources[RL_UNITS] = {
    [RL_UNIT_FP64] = {"fp64",
                      {"(" DONE("dadd") " + " DONE("dmul") " + 2 * " DONE("dfma") ") * " SM_CLOCK},
                      {"2 * " PEAK("dfma") " * " SM_CLOCK},
                      {"ceiling__fp64_operations_per_s"}},
    [RL_UNIT_FP32] = {"fp32",
                      {"(" DONE("fadd") " + " DONE("fmul") " + 2 * " DONE("ffma") ") * " SM_CLOCK},
                      {"2 * " PEAK("ffma") " * " SM_CLOCK},
                      {"ceiling__fp32_operations_per_s"}},
    [RL_UNIT_FP16] = {"fp16",
                      {"(2 * " DONE("hadd") " + 2 * " DONE("hmul") " + 4 * " DONE("hfma") ") * " SM_CLOCK},
                      {"4 * " PEAK("hfma") " * " SM_CLOCK},
                      {"ceiling__fp16_operations_per_s", "ceiling__bf16_operations_per_s"}},
    [RL_UNIT_TENSOR_FP64] = {"tensor_fp64",
                             {TENSOR_DONE("fp64")},
                             {TENSOR_PEAK("src_fp64")},
                             {"ceiling__tensor_fp64_operations_per_s"}},
    [RL_UNIT_TENSOR_TF32] = {"tensor_tf32",
                             {TENSOR_DONE("tf32_dst_fp32")},
                             {TENSOR_PEAK("op_hgmma_src_tf32_dst_fp32_sparsity_off"),
                              TENSOR_PEAK("src_tf32_dst_fp32_sparsity_off"),
                              TENSOR_PEAK("op_hmma_src_tf32_dst_fp32_sparsity_off")},
                             {"ceiling__tensor_tf32_operations_per_s"}},
    [RL_UNIT_TENSOR_FP16] = {"tensor_fp16",
                             {TENSOR_DONE("fp16"),
                              "(sm__ops_path_tensor_src_fp16_dst_fp16.sum.per_cycle_elapsed + "
                              "sm__ops_path_tensor_src_fp16_dst_fp32.sum.per_cycle_elapsed) * " SM_CLOCK},
                             {TENSOR_PEAK("op_hgmma_src_fp16_sparsity_off"), TENSOR_PEAK("src_fp16_dst_fp32_sparsity_off"),
                              TENSOR_PEAK("op_hmma_src_fp16_dst_fp32_sparsity_off")},
                             {"ceiling__tensor_fp16_operations_per_s"}},
    [RL_UNIT_TENSOR_BF16] = {"tensor_bf16",
                             {TENSOR_DONE("bf16_dst_fp32")},
                             {TENSOR_PEAK("op_hgmma_src_bf16_dst_fp32_sparsity_off"),
                              TENSOR_PEAK("src_bf16_dst_fp32_sparsity_off"),
                              TENSOR_PEAK("op_hmma_src_bf16_dst_fp32_sparsity_off")},
                             {"ceiling__tensor_bf16_operations_per_s"}},
};

/* --- evaluation -------------------------------------------------------------------------------------------------------- */

static double look_up(void *context, const char *name) { return rl_metric_get(context, name); }

static double value_of(const rl_metric_values *values, const char *expression) {
  rl_scope scope = {look_up, (void *)(uintptr_t)values};
  double value = NAN;
  return rl_expression_evaluate(expression, strlen(expression), &scope, &value, NULL) == 0 ? value : NAN;
}

static double first_known(const rl_metric_values *values, const char *const expressions[ALTERNATIVES]) {
  double value = NAN;
  for (int i = 0; i < ALTERNATIVES && expressions[i] && isnan(value); i++) value = value_of(values, expressions[i]);
  return value;
}

static double most_known(const rl_metric_values *values, const char *const expressions[ALTERNATIVES]) {
  double most = NAN;
  for (int i = 0; i < ALTERNATIVES && expressions[i]; i++) most = fmax(most, value_of(values, expressions[i]));
  return most;
}

static rl_roof roof_of(const rl_metric_values *values, const source *from) {
  return (rl_roof){.name = from->name,
                   .achieved_per_s = first_known(values, from->achieved),
                   .theoretical_per_s = first_known(values, from->theoretical),
                   .measured_per_s = most_known(values, from->measured)};
}

static double ratio(double a, double b) { return b > 0 ? a / b : NAN; }

/* Of two limits the lower; NAN when one is not known. */
static double lower(double a, double b) { return isnan(a) || isnan(b) ? NAN : fmin(a, b); }

static rl_roof_point point_of(const rl_roof *level, const rl_roof *unit) {
  double intensity = ratio(unit->achieved_per_s, level->achieved_per_s);
  return (rl_roof_point){.intensity = intensity,
                         .ridge_theoretical = ratio(unit->theoretical_per_s, level->theoretical_per_s),
                         .ridge_measured = ratio(unit->measured_per_s, level->measured_per_s),
                         .attainable_theoretical_per_s = lower(unit->theoretical_per_s, intensity * level->theoretical_per_s),
                         .attainable_measured_per_s = lower(unit->measured_per_s, intensity * level->measured_per_s)};
}

static rl_roof_model model_of(const rl_metric_values *values, double duration_s) {
  double bytes = rl_metric_get(values, "model__bytes"), operations = rl_metric_get(values, "model__operations");
  return (rl_roof_model){.bytes = bytes,
                         .operations = operations,
                         .intensity = ratio(operations, bytes),
                         .bytes_per_s = ratio(bytes, duration_s),
                         .operations_per_s = ratio(operations, duration_s)};
}

/* --- classification ---------------------------------------------------------------------------------------------------- */

/* The unit that is nearest to its peak; -1 when none does anything. */
static int busiest_unit(const rl_roof *units) {
  int busiest = -1;
  double most = 0;
  for (int i = 0; i < RL_UNITS; i++) {
    double share = ratio(units[i].achieved_per_s, units[i].theoretical_per_s);
    if (share > most) busiest = i, most = share;
  }
  return busiest;
}

static void read_counters(const rl_metric_values *values, const rl_roofline *roofline, rl_classification *into) {
  into->memory_pct = rl_metric_get(values, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed");
  into->compute_pct = rl_metric_get(values, "sm__throughput.avg.pct_of_peak_sustained_elapsed");
  into->unit = busiest_unit(roofline->units);
  if (into->unit < 0) return;
  into->intensity = roofline->points[RL_LEVEL_DRAM][into->unit].intensity;
  into->ridge = roofline->points[RL_LEVEL_DRAM][into->unit].ridge_theoretical;
}

/* The model does not say in which precision it counts; of the rate of single precision the share is the least it can be. */
static void read_model(const rl_roofline *roofline, rl_classification *into) {
  double bytes = roofline->levels[RL_LEVEL_DRAM].measured_per_s, operations = roofline->units[RL_UNIT_FP32].measured_per_s;
  into->memory_pct = 100 * ratio(roofline->model.bytes_per_s, bytes);
  into->compute_pct = 100 * ratio(roofline->model.operations_per_s, operations);
  into->intensity = roofline->model.intensity;
  into->ridge = ratio(operations, bytes);
}

static rl_bound larger_share(const rl_classification *c) {
  return c->memory_pct >= c->compute_pct ? RL_BOUND_MEMORY : RL_BOUND_COMPUTE;
}

static void decide(rl_classification *c) {
  double most = fmax(c->memory_pct, c->compute_pct), least = fmin(c->memory_pct, c->compute_pct);
  if (isnan(c->memory_pct) || isnan(c->compute_pct)) {
    snprintf(c->why, sizeof c->why, "the share of a peak is not known for %s", isnan(c->memory_pct) ? "memory" : "compute");
  } else if (most >= HIGH_PCT && least < HIGH_PCT) {
    c->bound = larger_share(c);
    snprintf(c->why, sizeof c->why, "%s reaches %.1f%% of its peak, at least %.0f%%", rl_bound_names[c->bound], most, HIGH_PCT);
  } else if (most < LOW_PCT) {
    c->bound = RL_BOUND_LATENCY;
    snprintf(c->why, sizeof c->why, "memory (%.1f%%) and compute (%.1f%%) both stay below %.0f%% of their peaks", c->memory_pct,
             c->compute_pct, LOW_PCT);
  } else if (!isnan(c->intensity) && !isnan(c->ridge)) {
    c->bound = c->intensity < c->ridge ? RL_BOUND_MEMORY : RL_BOUND_COMPUTE;
    snprintf(c->why, sizeof c->why, "%.4g operations per byte are %s the ridge at %.4g", c->intensity,
             c->bound == RL_BOUND_MEMORY ? "left of" : "right of", c->ridge);
  } else {
    c->bound = larger_share(c);
    snprintf(c->why, sizeof c->why, "%s has the larger share of its peak, %.1f%%", rl_bound_names[c->bound], most);
  }
}

static rl_classification classify(const rl_metric_values *values, const rl_roofline *roofline) {
  rl_classification made = {.unit = -1, .intensity = NAN, .ridge = NAN, .high_pct = HIGH_PCT, .low_pct = LOW_PCT};
  if (roofline->counted) read_counters(values, roofline, &made);
  else read_model(roofline, &made);
  decide(&made);
  return made;
}

rl_roofline rl_roofline_of(const rl_metric_values *values) {
  double counted_ns = rl_metric_get(values, "gpu__time_duration.sum");
  rl_roofline made = {.counted = !isnan(counted_ns)};
  made.duration_s = made.counted ? counted_ns * 1e-9 : rl_metric_get(values, "timing__time_cold_us_median") * 1e-6;
  for (int level = 0; level < RL_LEVELS; level++) made.levels[level] = roof_of(values, &level_sources[level]);
  for (int unit = 0; unit < RL_UNITS; unit++) made.units[unit] = roof_of(values, &unit_sources[unit]);
  for (int level = 0; level < RL_LEVELS; level++)
    for (int unit = 0; unit < RL_UNITS; unit++) made.points[level][unit] = point_of(&made.levels[level], &made.units[unit]);
  made.model = model_of(values, made.duration_s);
  made.classification = classify(values, &made);
  return made;
}

const char *rl_roofline_expression(size_t index) {
  for (size_t i = 0; i < RL_LEVELS + RL_UNITS; i++) {
    const source *from = i < RL_LEVELS ? &level_sources[i] : &unit_sources[i - RL_LEVELS];
    const char *const *lists[] = {from->achieved, from->theoretical, from->measured};
    for (size_t k = 0; k < 3 * ALTERNATIVES; k++)
      if (lists[k / ALTERNATIVES][k % ALTERNATIVES] && index-- == 0) return lists[k / ALTERNATIVES][k % ALTERNATIVES];
  }
  return NULL;
}
