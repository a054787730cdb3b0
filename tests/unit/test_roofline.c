/* rl_roofline_compute: what Nsight Compute's numbers of one kernel give, and each branch of the classification. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "model/catalogue.h"
#include "analyze/expression.h"
#include "analyze/roofline.h"

#define COMPUTE "sm__throughput.avg.pct_of_peak_sustained_elapsed"
#define MEMORY "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
#define FFMA_DONE "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed"
#define FADD_DONE "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed"
#define FMUL_DONE "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed"
#define FFMA_PEAK "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained"

enum { MOST = 64 };
typedef struct numbers {
  rl_metric_value items[MOST];
  size_t count;
} numbers;

static void set(numbers *to, const char *name, double value) {
  size_t i = 0;
  while (i < to->count && strcmp(to->items[i].name, name) != 0) i++;
  to->items[i] = (rl_metric_value){name, value, NULL};
  if (i == to->count) to->count++;
}

static rl_roofline roofline_of(const numbers *from) {
  numbers sorted = *from;
  rl_metric_values_sort(sorted.items, sorted.count);
  return rl_roofline_compute(&(rl_metric_values){sorted.items, sorted.count});
}

static void close_to(double value, double expected) {
  if (!(fabs(value - expected) <= 1e-9 * fabs(expected))) fail_msg("%.12g is not %.12g", value, expected);
}

/* A device of 1 GHz: DRAM moves 1000 bytes a cycle, FP32 does 10000 multiply-adds a cycle; half of each was reached in 1 ms. */
static numbers half_busy(void) {
  numbers made = {0};
  set(&made, "gpu__time_duration.sum", 1e6);
  set(&made, COMPUTE, 60);
  set(&made, MEMORY, 55);
  set(&made, "dram__bytes.sum.per_second", 500e9);
  set(&made, "dram__bytes.sum.peak_sustained", 1000);
  set(&made, "dram__cycles_elapsed.avg.per_second", 1e9);
  set(&made, FFMA_DONE, 4000);
  set(&made, FADD_DONE, 1500);
  set(&made, FMUL_DONE, 500);
  set(&made, FFMA_PEAK, 10000);
  set(&made, "sm__cycles_elapsed.avg.per_second", 1e9);
  set(&made, "ceiling__dram_read_bytes_per_s", 800e9);
  set(&made, "ceiling__dram_copy_bytes_per_s", 900e9);
  set(&made, "ceiling__fp32_operations_per_s", 18e12);
  set(&made, "model__bytes", 250e6);
  set(&made, "model__operations", 5e9);
  return made;
}

static void rates_intensities_and_ridges(void **state) {
  (void)state;
  numbers from = half_busy();
  rl_roofline r = roofline_of(&from);
  assert_true(r.counted);
  close_to(r.duration_s, 1e-3);
  assert_string_equal(r.levels[RL_LEVEL_DRAM].name, "dram");
  close_to(r.levels[RL_LEVEL_DRAM].achieved_per_s, 500e9);
  close_to(r.levels[RL_LEVEL_DRAM].theoretical_per_s, 1000e9);
  close_to(r.levels[RL_LEVEL_DRAM].measured_per_s, 900e9); /* the best of those that were measured */
  close_to(r.units[RL_UNIT_FP32].achieved_per_s, 10e12);
  close_to(r.units[RL_UNIT_FP32].theoretical_per_s, 20e12);
  const rl_roof_point *point = &r.points[RL_LEVEL_DRAM][RL_UNIT_FP32];
  close_to(point->intensity, 20);
  close_to(point->ridge_theoretical, 20);
  close_to(point->ridge_measured, 20);
  close_to(point->attainable_theoretical_per_s, 20e12);
  close_to(point->attainable_measured_per_s, 18e12);
  close_to(r.model.intensity, 20);
  close_to(r.model.bytes_per_s, 250e9);
  close_to(r.model.operations_per_s, 5e12);
  assert_true(isnan(r.levels[RL_LEVEL_L1].achieved_per_s) && isnan(r.units[RL_UNIT_TENSOR_FP16].theoretical_per_s));
}

static void left_of_the_ridge_the_memory_limits(void **state) {
  (void)state;
  numbers from = half_busy();
  set(&from, FFMA_DONE, 0), set(&from, FADD_DONE, 500), set(&from, FMUL_DONE, 0);
  rl_roofline r = roofline_of(&from);
  close_to(r.points[RL_LEVEL_DRAM][RL_UNIT_FP32].intensity, 1);
  close_to(r.points[RL_LEVEL_DRAM][RL_UNIT_FP32].attainable_theoretical_per_s, 1000e9);
  assert_int_equal(r.classification.bound, RL_BOUND_MEMORY);
  assert_int_equal(r.classification.unit, RL_UNIT_FP32);
  close_to(r.classification.intensity, 1);
  close_to(r.classification.ridge, 20);
}

static void tensor_operations_of_chips_that_name_them_otherwise(void **state) {
  (void)state;
  numbers from = half_busy();
  set(&from, "sm__ops_path_tensor_src_fp16_dst_fp16.sum.per_cycle_elapsed", 1000);
  set(&from, "sm__ops_path_tensor_src_fp16_dst_fp32.sum.per_cycle_elapsed", 3000);
  set(&from, "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32_sparsity_off.sum.peak_sustained", 100000);
  rl_roofline r = roofline_of(&from);
  close_to(r.units[RL_UNIT_TENSOR_FP16].achieved_per_s, 4e12);
  close_to(r.units[RL_UNIT_TENSOR_FP16].theoretical_per_s, 100e12);
  set(&from, "sm__ops_path_tensor_src_fp16.sum.per_cycle_elapsed", 7000);
  set(&from, "sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum.peak_sustained", 200000);
  r = roofline_of(&from);
  close_to(r.units[RL_UNIT_TENSOR_FP16].achieved_per_s, 7e12);
  close_to(r.units[RL_UNIT_TENSOR_FP16].theoretical_per_s, 200e12);
}

static rl_bound bound_of(double compute, double memory, double additions) {
  numbers from = half_busy();
  set(&from, COMPUTE, compute), set(&from, MEMORY, memory);
  set(&from, FFMA_DONE, 0), set(&from, FMUL_DONE, 0), set(&from, FADD_DONE, additions);
  rl_classification c = roofline_of(&from).classification;
  assert_true(c.high_pct == 80 && c.low_pct == 50 && c.why[0]);
  return c.bound;
}

static void classification_by_the_thresholds(void **state) {
  (void)state;
  enum { LEFT = 9999, RIGHT = 10000 }; /* of the ridge at 20 operations a byte, 500 bytes a cycle */
  assert_int_equal(bound_of(10, 80, RIGHT), RL_BOUND_MEMORY);
  assert_int_equal(bound_of(80, 10, LEFT), RL_BOUND_COMPUTE);
  assert_int_equal(bound_of(85, 80, LEFT), RL_BOUND_MEMORY); /* both: the ridge decides */
  assert_int_equal(bound_of(80, 85, RIGHT), RL_BOUND_COMPUTE);
  assert_int_equal(bound_of(85, 80, 0), RL_BOUND_COMPUTE);
  assert_int_equal(bound_of(49.9, 49.9, RIGHT), RL_BOUND_LATENCY);
  assert_int_equal(bound_of(10, 50, LEFT), RL_BOUND_MEMORY);
  assert_int_equal(bound_of(10, 79.9, RIGHT), RL_BOUND_COMPUTE);
  assert_int_equal(bound_of(60, 10, 0), RL_BOUND_COMPUTE); /* nothing in floating point: the larger share */
  assert_int_equal(bound_of(10, 60, 0), RL_BOUND_MEMORY);
  assert_int_equal(bound_of(NAN, 90, RIGHT), RL_BOUND_UNKNOWN);
}

static void without_counters_the_model_and_the_measured_ceilings_decide(void **state) {
  (void)state;
  numbers from = {0};
  set(&from, "timing__time_cold_us_median", 1000);
  set(&from, "model__bytes", 45e6);
  set(&from, "model__operations", 1e6);
  set(&from, "ceiling__dram_copy_bytes_per_s", 50e9);
  set(&from, "ceiling__fp32_operations_per_s", 500e9);
  rl_roofline r = roofline_of(&from);
  assert_false(r.counted);
  close_to(r.model.bytes_per_s, 45e9);
  close_to(r.classification.memory_pct, 90);
  close_to(r.classification.compute_pct, 0.2);
  close_to(r.classification.ridge, 10);
  assert_int_equal(r.classification.bound, RL_BOUND_MEMORY);
  assert_int_equal(r.classification.unit, -1);
  set(&from, "timing__time_cold_us_median", 10000);
  assert_int_equal(roofline_of(&from).classification.bound, RL_BOUND_LATENCY);
}

static void nothing_known_is_nothing_said(void **state) {
  (void)state;
  rl_roofline r = rl_roofline_compute(&(rl_metric_values){NULL, 0});
  assert_true(isnan(r.duration_s) && isnan(r.model.bytes) && isnan(r.points[RL_LEVEL_DRAM][RL_UNIT_FP32].intensity));
  assert_int_equal(r.classification.bound, RL_BOUND_UNKNOWN);
}

static double collected(void *context, const char *name) {
  (void)context;
  if (strncmp(name, "ceiling__", 9) == 0) return 1;
  for (size_t i = 0; i < rl_raw_metric_count; i++)
    if (strcmp(rl_raw_metrics[i].name, name) == 0) return 1;
  fail_msg("%s is no raw metric", name);
  return NAN;
}

static void every_metric_is_one_of_the_catalogue(void **state) {
  (void)state;
  size_t count = 0;
  for (const char *text; (text = rl_roofline_expression(count)) != NULL; count++) {
    rl_error err = {0};
    double value;
    if (rl_expression_evaluate(text, strlen(text), &(rl_scope){collected, NULL}, &value, &err) != 0) fail_msg("%s", err.message);
  }
  assert_true(count > 2 * (RL_LEVELS + RL_UNITS));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rates_intensities_and_ridges),
      cmocka_unit_test(left_of_the_ridge_the_memory_limits),
      cmocka_unit_test(tensor_operations_of_chips_that_name_them_otherwise),
      cmocka_unit_test(classification_by_the_thresholds),
      cmocka_unit_test(without_counters_the_model_and_the_measured_ceilings_decide),
      cmocka_unit_test(nothing_known_is_nothing_said),
      cmocka_unit_test(every_metric_is_one_of_the_catalogue),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
