/* Tests rl_roofline_compute: rates, intensities and ridges of one kernel, and each branch of the classification. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "model/catalogue.h"
#include "analyze/expression.h"
#include "analyze/roofline.h"

#define COMPUTE_PCT "sm__throughput.avg.pct_of_peak_sustained_elapsed"
#define MEMORY_PCT "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
#define FFMA_EXECUTED "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed"
#define FADD_EXECUTED "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed"
#define FMUL_EXECUTED "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed"
#define FFMA_PEAK "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained"

enum { MAX_METRICS = 64 };
typedef struct metrics {
  rl_metric_value items[MAX_METRICS];
  size_t count;
} metrics;

static void set_metric(metrics *m, const char *name, double value) {
  size_t i = 0;
  while (i < m->count && strcmp(m->items[i].name, name) != 0) i++;
  m->items[i] = (rl_metric_value){name, value, NULL};
  if (i == m->count) m->count++;
}

static rl_roofline compute_roofline(const metrics *unsorted) {
  metrics sorted = *unsorted;
  rl_metric_values_sort(sorted.items, sorted.count);
  return rl_roofline_compute(&(rl_metric_values){sorted.items, sorted.count});
}

static void assert_close(double value, double expected) {
  if (!(fabs(value - expected) <= 1e-9 * fabs(expected))) fail_msg("%.12g is not %.12g", value, expected);
}

/* A device at 1 GHz: its DRAM moves 1000 bytes a cycle, and it executes 10000 FP32 multiply-adds a cycle. A kernel of 1 ms
 * reaches half of each rate. */
static metrics half_busy(void) {
  metrics m = {0};
  set_metric(&m, "gpu__time_duration.sum", 1e6);
  set_metric(&m, COMPUTE_PCT, 60);
  set_metric(&m, MEMORY_PCT, 55);
  set_metric(&m, "dram__bytes.sum.per_second", 500e9);
  set_metric(&m, "dram__bytes.sum.peak_sustained", 1000);
  set_metric(&m, "dram__cycles_elapsed.avg.per_second", 1e9);
  set_metric(&m, FFMA_EXECUTED, 4000);
  set_metric(&m, FADD_EXECUTED, 1500);
  set_metric(&m, FMUL_EXECUTED, 500);
  set_metric(&m, FFMA_PEAK, 10000);
  set_metric(&m, "sm__cycles_elapsed.avg.per_second", 1e9);
  set_metric(&m, "ceiling__dram_read_bytes_per_s", 800e9);
  set_metric(&m, "ceiling__dram_copy_bytes_per_s", 900e9);
  set_metric(&m, "ceiling__fp32_operations_per_s", 18e12);
  set_metric(&m, "model__bytes", 250e6);
  set_metric(&m, "model__operations", 5e9);
  return m;
}

static void rates_intensities_and_ridges_are_computed(void **state) {
  (void)state;
  metrics inputs = half_busy();
  rl_roofline r = compute_roofline(&inputs);
  assert_true(r.counted);
  assert_close(r.duration_s, 1e-3);
  assert_string_equal(r.levels[RL_LEVEL_DRAM].name, "dram");
  assert_close(r.levels[RL_LEVEL_DRAM].achieved_per_s, 500e9);
  assert_close(r.levels[RL_LEVEL_DRAM].theoretical_per_s, 1000e9);
  assert_close(r.levels[RL_LEVEL_DRAM].measured_per_s, 900e9); /* the highest measured rate */
  assert_close(r.units[RL_UNIT_FP32].achieved_per_s, 10e12);
  assert_close(r.units[RL_UNIT_FP32].theoretical_per_s, 20e12);
  const rl_roof_point *point = &r.points[RL_LEVEL_DRAM][RL_UNIT_FP32];
  assert_close(point->intensity, 20);
  assert_close(point->ridge_theoretical, 20);
  assert_close(point->ridge_measured, 20);
  assert_close(point->attainable_theoretical_per_s, 20e12);
  assert_close(point->attainable_measured_per_s, 18e12);
  assert_close(r.model.intensity, 20);
  assert_close(r.model.bytes_per_s, 250e9);
  assert_close(r.model.operations_per_s, 5e12);
  assert_true(isnan(r.levels[RL_LEVEL_L1].achieved_per_s) && isnan(r.units[RL_UNIT_TENSOR_FP16].theoretical_per_s));
}

static void below_the_ridge_memory_is_the_bound(void **state) {
  (void)state;
  metrics inputs = half_busy();
  set_metric(&inputs, FFMA_EXECUTED, 5000), set_metric(&inputs, FADD_EXECUTED, 0), set_metric(&inputs, FMUL_EXECUTED, 0);
  set_metric(&inputs, "dram__bytes.sum.per_second", 625e9);
  rl_roofline r = compute_roofline(&inputs);
  assert_close(r.points[RL_LEVEL_DRAM][RL_UNIT_FP32].intensity, 16);
  assert_close(r.points[RL_LEVEL_DRAM][RL_UNIT_FP32].attainable_theoretical_per_s, 16e12);
  assert_int_equal(r.classification.bound, RL_BOUND_MEMORY);
  assert_int_equal(r.classification.unit, RL_UNIT_FP32);
  assert_close(r.classification.intensity, 16);
  assert_close(r.classification.ridge, 20);
}

static void tensor_metrics_have_several_names(void **state) {
  (void)state;
  metrics inputs = half_busy();
  set_metric(&inputs, "sm__ops_path_tensor_src_fp16_dst_fp16.sum.per_cycle_elapsed", 1000);
  set_metric(&inputs, "sm__ops_path_tensor_src_fp16_dst_fp32.sum.per_cycle_elapsed", 3000);
  set_metric(&inputs, "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32_sparsity_off.sum.peak_sustained", 100000);
  rl_roofline r = compute_roofline(&inputs);
  assert_close(r.units[RL_UNIT_TENSOR_FP16].achieved_per_s, 4e12);
  assert_close(r.units[RL_UNIT_TENSOR_FP16].theoretical_per_s, 100e12);
  set_metric(&inputs, "sm__ops_path_tensor_src_fp16.sum.per_cycle_elapsed", 7000);
  set_metric(&inputs, "sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum.peak_sustained", 200000);
  r = compute_roofline(&inputs);
  assert_close(r.units[RL_UNIT_TENSOR_FP16].achieved_per_s, 7e12);
  assert_close(r.units[RL_UNIT_TENSOR_FP16].theoretical_per_s, 200e12);
}

/* Classifies a kernel that executes multiply-adds at 90 % of their peak. operations_per_byte: of DRAM; the ridge is 20. */
static rl_bound classify(double compute_pct, double memory_pct, double operations_per_byte) {
  metrics inputs = half_busy();
  set_metric(&inputs, COMPUTE_PCT, compute_pct), set_metric(&inputs, MEMORY_PCT, memory_pct);
  set_metric(&inputs, FFMA_EXECUTED, operations_per_byte > 0 ? 9000 : 0), set_metric(&inputs, FMUL_EXECUTED, 0),
      set_metric(&inputs, FADD_EXECUTED, 0);
  if (operations_per_byte > 0) set_metric(&inputs, "dram__bytes.sum.per_second", 18e12 / operations_per_byte);
  rl_classification c = compute_roofline(&inputs).classification;
  assert_true(c.busy_pct == 60 && c.balanced_pct == 10 && c.why[0]);
  return c.bound;
}

static void thresholds_classify_a_kernel(void **state) {
  (void)state;
  const double BELOW = 19.99, ABOVE = 20.01;
  assert_int_equal(classify(10, 80, ABOVE), RL_BOUND_MEMORY);
  assert_int_equal(classify(80, 10, BELOW), RL_BOUND_COMPUTE);
  assert_int_equal(classify(85, 80, BELOW), RL_BOUND_MEMORY); /* less than balanced_pct apart: the ridge decides */
  assert_int_equal(classify(80, 85, ABOVE), RL_BOUND_COMPUTE);
  assert_int_equal(classify(85, 80, 0), RL_BOUND_COMPUTE);
  assert_int_equal(classify(59.9, 59.9, ABOVE), RL_BOUND_LATENCY);
  assert_int_equal(classify(59.9, 60, ABOVE), RL_BOUND_COMPUTE);
  assert_int_equal(classify(70.1, 80, ABOVE), RL_BOUND_COMPUTE);
  assert_int_equal(classify(70, 80, ABOVE), RL_BOUND_MEMORY);
  assert_int_equal(classify(80, 70, BELOW), RL_BOUND_COMPUTE);
  assert_int_equal(classify(60, 10, 0), RL_BOUND_COMPUTE); /* no floating-point operations: the higher percentage decides */
  assert_int_equal(classify(10, 60, 0), RL_BOUND_MEMORY);
  assert_int_equal(classify(NAN, 90, ABOVE), RL_BOUND_UNKNOWN);
}

/* FP8 operations are in no unit: an epilogue in FP32 at 0.5 % of its peak does not decide. */
static void a_unit_that_is_idle_beside_others_does_not_decide(void **state) {
  (void)state;
  metrics inputs = half_busy();
  set_metric(&inputs, COMPUTE_PCT, 87), set_metric(&inputs, MEMORY_PCT, 79);
  set_metric(&inputs, FFMA_EXECUTED, 50), set_metric(&inputs, FADD_EXECUTED, 0), set_metric(&inputs, FMUL_EXECUTED, 0);
  rl_classification c = compute_roofline(&inputs).classification;
  assert_int_equal(c.unit, RL_UNIT_FP32);
  assert_close(c.intensity, 0.2);
  assert_int_equal(c.bound, RL_BOUND_COMPUTE);
  set_metric(&inputs, MEMORY_PCT, 88);
  assert_int_equal(compute_roofline(&inputs).classification.bound, RL_BOUND_MEMORY);
  set_metric(&inputs, MEMORY_PCT, 79);
  set_metric(&inputs, "sm__ops_path_tensor_src_fp16.sum.per_cycle_elapsed", 85000);
  set_metric(&inputs, "sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum.peak_sustained", 100000);
  set_metric(&inputs, "dram__bytes.sum.per_second", 900e9);
  c = compute_roofline(&inputs).classification;
  assert_int_equal(c.unit, RL_UNIT_TENSOR_FP16);
  assert_true(c.intensity < c.ridge);
  assert_int_equal(c.bound, RL_BOUND_MEMORY);
  set_metric(&inputs, "sm__ops_path_tensor_src_fp16.sum.per_cycle_elapsed", 77001); /* 10 points below compute */
  assert_int_equal(compute_roofline(&inputs).classification.bound, RL_BOUND_MEMORY);
  set_metric(&inputs, "sm__ops_path_tensor_src_fp16.sum.per_cycle_elapsed", 76999);
  assert_int_equal(compute_roofline(&inputs).classification.bound, RL_BOUND_COMPUTE);
}

/* Returns the classification of an FP16 product on a device with 4.8 TB/s and 879e12 operations a second. */
static rl_classification classify_product(double m, double n, double k, double us) {
  metrics inputs = {0};
  set_metric(&inputs, "timing__time_cold_us_median", us);
  set_metric(&inputs, "model__bytes", 2 * (m * k + k * n + m * n));
  set_metric(&inputs, "model__operations", 2 * m * n * k);
  set_metric(&inputs, "model__operations_ceiling_per_s", 879e12);
  set_metric(&inputs, "ceiling__dram_read_bytes_per_s", 4.8e12);
  set_metric(&inputs, "ceiling__fp32_operations_per_s", 65e12);
  return compute_roofline(&inputs).classification;
}

static void operations_are_compared_with_the_rate_of_their_precision(void **state) {
  (void)state;
  rl_classification large = classify_product(4096, 4096, 4096, 2 * 4096. * 4096 * 4096 / 879e6 / 0.85);
  assert_close(large.compute_pct, 85);
  assert_int_equal(large.bound, RL_BOUND_COMPUTE);
  rl_classification few_rows = classify_product(64, 11008, 4096, 26);
  assert_int_equal(few_rows.bound, RL_BOUND_MEMORY);
  assert_true(few_rows.memory_pct > 70 && few_rows.compute_pct < 30);
}

static void without_a_rate_compute_is_unknown(void **state) {
  (void)state;
  rl_metric_value items[] = {{"ceiling__dram_copy_bytes_per_s", 50e9, NULL},
                             {"ceiling__fp32_operations_per_s", 500e9, NULL},
                             {"model__bytes", 45e6, NULL},
                             {"model__operations", 1e6, NULL},
                             {"model__operations_ceiling_per_s", NAN, "no rate"},
                             {"timing__time_cold_us_median", 1000, NULL}};
  rl_metric_values values = {items, sizeof items / sizeof *items};
  rl_classification c = rl_roofline_compute(&values).classification;
  assert_int_equal(c.bound, RL_BOUND_UNKNOWN);
  assert_true(isnan(c.compute_pct) && isnan(c.ridge));
  assert_string_equal(c.why, "the percentage of the peak is unknown for compute: no rate");
  items[3].value = 0; /* a copy executes no operation */
  c = rl_roofline_compute(&values).classification;
  assert_close(c.memory_pct, 90);
  assert_int_equal(c.bound, RL_BOUND_MEMORY);
}

static void without_counters_the_model_is_classified(void **state) {
  (void)state;
  metrics inputs = {0};
  set_metric(&inputs, "timing__time_cold_us_median", 1000);
  set_metric(&inputs, "model__bytes", 45e6);
  set_metric(&inputs, "model__operations", 1e6);
  set_metric(&inputs, "ceiling__dram_copy_bytes_per_s", 50e9);
  set_metric(&inputs, "model__operations_ceiling_per_s", 500e9);
  rl_roofline r = compute_roofline(&inputs);
  assert_false(r.counted);
  assert_close(r.model.bytes_per_s, 45e9);
  assert_close(r.classification.memory_pct, 90);
  assert_close(r.classification.compute_pct, 0.2);
  assert_close(r.classification.ridge, 10);
  assert_int_equal(r.classification.bound, RL_BOUND_MEMORY);
  assert_int_equal(r.classification.unit, -1);
  set_metric(&inputs, "timing__time_cold_us_median", 10000);
  assert_int_equal(compute_roofline(&inputs).classification.bound, RL_BOUND_LATENCY);
}

static void without_metrics_everything_is_unknown(void **state) {
  (void)state;
  rl_roofline r = rl_roofline_compute(&(rl_metric_values){NULL, 0});
  assert_true(isnan(r.duration_s) && isnan(r.model.bytes) && isnan(r.points[RL_LEVEL_DRAM][RL_UNIT_FP32].intensity));
  assert_int_equal(r.classification.bound, RL_BOUND_UNKNOWN);
}

static double look_up_catalogue(void *context, const char *name) {
  (void)context;
  if (strncmp(name, "ceiling__", 9) == 0) return 1;
  if (rl_raw_metric_find(name) == NULL) fail_msg("%s is not a raw metric", name);
  return 1;
}

static void expressions_use_metrics_of_the_catalogue(void **state) {
  (void)state;
  size_t count = 0;
  for (const char *text; (text = rl_roofline_expression(count)) != NULL; count++) {
    rl_error err = {0};
    double value;
    if (rl_expression_evaluate(text, strlen(text), &(rl_scope){look_up_catalogue, NULL}, &value, &err) < 0)
      fail_msg("%s", err.message);
  }
  assert_true(count > 2 * (RL_LEVEL_COUNT + RL_UNIT_COUNT));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rates_intensities_and_ridges_are_computed),
      cmocka_unit_test(below_the_ridge_memory_is_the_bound),
      cmocka_unit_test(tensor_metrics_have_several_names),
      cmocka_unit_test(thresholds_classify_a_kernel),
      cmocka_unit_test(without_counters_the_model_is_classified),
      cmocka_unit_test(without_metrics_everything_is_unknown),
      cmocka_unit_test(expressions_use_metrics_of_the_catalogue),
      cmocka_unit_test(a_unit_that_is_idle_beside_others_does_not_decide),
      cmocka_unit_test(operations_are_compared_with_the_rate_of_their_precision),
      cmocka_unit_test(without_a_rate_compute_is_unknown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
