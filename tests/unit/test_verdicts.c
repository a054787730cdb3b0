/* Applies all rules and the roofline to the metrics of one real kernel: y[i] = max(x[i], 0) for 2048 x 2048 FP16 numbers, one
 * per thread, on an H200. Nsight Compute 2025.3.1 printed the metrics; data/ncu_relu_fp16_h200.csv has the metrics that this
 * test reads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/roofline.h"
#include "analyze/rules.h"

enum { MAX_METRICS = 512, NAME_SIZE = 128 };
static rl_metric_value items[MAX_METRICS];
static rl_metric_values values = {items, 0};

static int read_values(void **state) {
  (void)state;
  char line[256], name[NAME_SIZE];
  double value;
  FILE *file = fopen(RL_SOURCE "/tests/unit/data/ncu_relu_fp16_h200.csv", "r");
  if (!file || !fgets(line, sizeof line, file)) return -1;
  while (values.count < MAX_METRICS && fgets(line, sizeof line, file))
    if (sscanf(line, "%127[^,],%*[^0-9-]%lf", name, &value) == 2)
      items[values.count++] = (rl_metric_value){strdup(name), value, NULL};
  fclose(file);
  rl_metric_values_sort(items, values.count);
  return values.count > 100 ? 0 : -1;
}

static int free_values(void **state) {
  (void)state;
  for (size_t i = 0; i < values.count; i++) free((void *)(uintptr_t)items[i].name);
  return 0;
}

/* The kernel waits for DRAM, and a third of its warps are resident. No other rule has a finding. */
static void the_expected_rules_have_findings(void **state) {
  (void)state;
  static const struct {
    const char *rule;
    double speedup;
  } expected[] = {{"low_utilization", NAN}, {"occupancy_achieved", 66.5}, {"issue_slots", NAN}, {"stall_long_scoreboard", 81.0}};
  enum { EXPECTED_COUNT = sizeof expected / sizeof *expected };
  rl_finding findings[64];
  size_t count = rl_rules_apply(&values, findings, 64);
  for (size_t i = 0; i < count; i++)
    print_message("%s %.1f: %s\n", findings[i].rule->id, findings[i].speedup_pct, findings[i].message);
  assert_int_equal(count, EXPECTED_COUNT);
  for (size_t i = 0; i < EXPECTED_COUNT; i++) {
    assert_string_equal(findings[i].rule->id, expected[i].rule);
    if (isnan(expected[i].speedup)) assert_true(isnan(findings[i].speedup_pct));
    else assert_true(fabs(findings[i].speedup_pct - expected[i].speedup) < 0.5);
  }
}

static void assert_within_half_percent(double value, double expected) {
  if (!(fabs(value - expected) <= 0.005 * expected)) fail_msg("%.6g is not %.6g", value, expected);
}

static void the_roofline_has_the_expected_rates(void **state) {
  (void)state;
  rl_roofline r = rl_roofline_compute(&values);
  assert_true(r.counted);
  assert_within_half_percent(r.duration_s, 21.824e-6);
  assert_within_half_percent(r.levels[RL_LEVEL_DRAM].achieved_per_s, 384.5e9);
  assert_within_half_percent(r.levels[RL_LEVEL_DRAM].theoretical_per_s, 4.807e12);
  assert_within_half_percent(r.levels[RL_LEVEL_L2].achieved_per_s,
                             2 * 8388608 / 21.824e-6); /* each number is read and written once */
  assert_within_half_percent(r.levels[RL_LEVEL_L1].achieved_per_s, 1537.5e9);
  assert_within_half_percent(r.units[RL_UNIT_FP32].theoretical_per_s, 67.15e12);
  assert_within_half_percent(r.units[RL_UNIT_FP64].theoretical_per_s, 33.58e12);
  assert_within_half_percent(r.units[RL_UNIT_FP16].theoretical_per_s, 134.3e12);
  assert_within_half_percent(r.units[RL_UNIT_TENSOR_FP16].theoretical_per_s, 1074e12);
  assert_within_half_percent(r.units[RL_UNIT_TENSOR_TF32].theoretical_per_s, 537e12);
  assert_within_half_percent(r.points[RL_LEVEL_DRAM][RL_UNIT_FP32].ridge_theoretical, 13.97);
  assert_true(r.units[RL_UNIT_FP16].achieved_per_s == 0); /* a comparison is not counted as an operation */
  assert_int_equal(r.classification.bound, RL_BOUND_LATENCY);
  assert_int_equal(r.classification.unit, -1);
  assert_true(isnan(r.units[RL_UNIT_FP32].measured_per_s) && isnan(r.model.bytes));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_expected_rules_have_findings),
                                     cmocka_unit_test(the_roofline_has_the_expected_rates)};
  return cmocka_run_group_tests(tests, read_values, free_values);
}
