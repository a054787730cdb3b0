/* Tests that every rule has a finding on a launch that triggers it and none on a launch that does not, that the roofline shows
 * the known bytes and operations of some kernels, and that the reports of the kernels with known causes name them. All use
 * metrics that the counters pass collects on the launches of this folder. With the name of a file as argument, writes the metrics
 * to it, for judge_known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/catalogue.h"
#include "analyze/kernel_verdict.h"
#include "analyze/roofline.h"
#include "analyze/rules.h"
#include "cupti/load_profiler.h"
#include "cupti/subject.h"
#include "known_causes.h"
#include "sm_count.h"

/* A metric that the test supplies itself, because the counters pass does not collect it, or because only another device would
 * have such a value. A NULL name ends a list. */
typedef struct given_metric {
  const char *name;
  double value;
} given_metric;
enum { MAX_GIVEN = 2 };

typedef struct rule_case {
  const char *rule;              /* identifier of the rule */
  const char *triggering;        /* name of a launch on which the rule has a finding */
  const char *silent;            /* name of a launch on which the rule has no finding */
  given_metric given[MAX_GIVEN]; /* metrics that the test adds to those of the triggering launch */
} rule_case;

#define COMPUTE_PCT "sm__throughput.avg.pct_of_peak_sustained_elapsed"
#define MEMORY_PCT "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
#define ATOMIC_UNIT(rollup) "lts__d_atomic_input_cycles_active." #rollup ".pct_of_peak_sustained_elapsed"

static const rule_case rule_cases[] = {
    {"bound_memory", "copy", "fma"},
    {"bound_compute", "fma", "copy"},
    {"bound_balanced", "read_no_banks", "fma"},
    {"near_peak", "fma", "chase"},
    {"low_utilization", "chase", "fma"},
    {"dram_saturated", "copy", "fma"},
    {"launch_too_small", "few_blocks", "one_each"},
    {"partial_wave", "one_each", "whole_waves"},
    {"tail_effect", "one_and_a_half_waves", "whole_waves"},
    {"block_not_whole_warps", "odd_block", "small_blocks"},
    {"short_kernel", "tiny", "copy"},
    {"occupancy_registers", "registers", "few_busy_warps"},
    {"occupancy_shared", "shared", "whole_waves"},
    {"occupancy_blocks", "small_blocks", "whole_blocks"},
    {"occupancy_barriers", "barriers", "whole_waves"},
    {"occupancy_warps", "large_blocks", "whole_waves"},
    {"occupancy_achieved", "early_ends", "copy"},
    {"issue_slots", "chase", "fma"},
    {"stall_long_scoreboard", "chase", "write_apart"},
    {"dependent_loads", "chase", "loads_ahead"},
    {"shallow_cp_async", "cp_async_one_stage", "cp_async_stages"},
    {"shallow_tma", "tma_one_stage", "tma_stages"},
    {"tensor_waits_for_shared", "products_from_shared", "mma_reuses"},
    {"stall_short_scoreboard", "chase_shared", "fma"},
    {"stall_mio_throttle", "store_shared", "fma", {{COMPUTE_PCT, 40}, {MEMORY_PCT, 40}}}, /* it saturates shared memory */
    {"stall_lg_throttle", "red_spread", "far_stores"},
    {"stall_tex_throttle", "texture", "fma", {{MEMORY_PCT, 40}}},
    {"stall_math_pipe_throttle", "dfma", "chase"},
    {"stall_barrier", "barrier", "fma"},
    {"stall_membar", "fence", "fma"},
    {"stall_wait", "chain", "chase"},
    {"stall_branch_resolving", "branch", "fma"},
    {"stall_no_instruction", "code", "fma"},
    {"stall_imc_miss", "constants", "fma"},
    {"stall_drain", "drain", "fma"},
    {"stall_sleeping", "asleep", "fma"},
    {"stall_dispatch_stall", "wide_products", "fma", {{COMPUTE_PCT, 40}}},
    {"stall_gmma", "wgmma_late", "wgmma"},
    {"stall_misc",
     "chase",
     "fma",
     {{"smsp__average_warps_issue_stalled_misc_per_issue_active.ratio", 40},
      {"smsp__average_warp_latency_per_inst_issued.ratio", 100}}},
    {"stall_not_selected", "fma", "chase"},
    {"thread_divergence", "diverge", "fma"},
    {"predication", "predicate", "fma"},
    {"branch_divergence", "diverge", "branch"},
    {"fp64_slow_device", "dfma", "fma", {{"device__attribute_single_to_double_precision_perf_ratio", 64}}},
    {"fp64_dominates", "dfma", "fma"},
    {"not_fused_fp32", "add_mul", "fma"},
    {"not_fused_fp64", "dadd_dmul", "dfma"},
    {"not_fused_fp16", "hadd_hmul", "hfma"},
    {"tensor_unused", "hfma", "wgmma"},
    {"tensor_underused", "mma_starved", "wgmma"},
    {"pipe_alu_saturated", "logic", "chase"},
    {"pipe_fma_saturated", "fma", "chase"},
    {"pipe_fp64_saturated", "dfma", "fma"},
    {"pipe_xu_saturated", "ex2", "fma"},
    {"pipe_lsu_saturated", "read_no_banks", "fma"},
    {"tensor_saturated", "wgmma", "hfma"},
    {"uncoalesced_ld", "read_apart", "read"},
    {"uncoalesced_st", "write_apart", "write"},
    {"l2_sectors_excess", "read_apart", "read"},
    {"dram_sector_use", "read_apart", "read"},
    {"dram_sector_use", "read_apart", "tma_stages"}, /* loads of the TMA are not those that the rule judges */
    {"traffic_above_model", "read_apart", "read", {{"model__bytes", 8 << 20}}},
    {"bank_conflicts_ld", "read_banks", "read_no_banks"},
    {"bank_conflicts_st", "write_banks", "write_no_banks"},
    {"l1_hit_low", "read_again", "copy"},
    {"l2_hit_low", "copy", "read_again"},
    {"local_memory", "local", "fma"},
    {"register_spills", "too_few_registers", "local"},
    {"global_atomics", "red_one_word", "red_spread"},
    {"global_atomics_spread", "red_spread", "red_one_word", {{ATOMIC_UNIT(max), 95}, {ATOMIC_UNIT(avg), 90}}},
    {"shared_atomics", "shared_atomics_one_word", "shared_atomics_spread"},
    {"l2_compression", "noise", "no_noise"},
    {"launch_overhead", "tiny", "copy"},
    {"launch_bound", "tiny", "copy", {{"activity__launch_gap_ratio", 0.8}}},
    {"imbalance_sm", "uneven_blocks", "whole_waves"},
    /* a slice's atomic unit is saturated before its tag lookups are */
    {"imbalance_l2",
     "one_word",
     "read_again",
     {{ATOMIC_UNIT(max), 59}, {"lts__t_tag_requests.max.pct_of_peak_sustained_elapsed", 95}}},
    {"imbalance_dram", "few_channels", "copy", {{"dram__cycles_active.avg", 1000}}}, /* an H100 spreads the addresses */
};
enum { RULE_CASES = sizeof rule_cases / sizeof *rule_cases };

static rl_profiler *profiler;
static rl_instance *instance;
static rl_records records;

static int64_t kernel_of(const char *launch) {
  for (size_t i = 0; i < records.kernel_count; i++)
    if (strcmp(records.kernels[i].launch, launch) == 0) return records.kernels[i].ordinal;
  fail_msg("no kernel of the launch %s was counted", launch);
  return -1;
}

static bool is_given(const given_metric *given, const char *metric) {
  for (size_t i = 0; i < MAX_GIVEN; i++)
    if (given[i].name && strcmp(given[i].name, metric) == 0) return true;
  return false;
}

/* Returns the collected metrics of the launch's kernel and the given ones. The caller frees `items`. */
static rl_metric_values values_of(const char *launch, const given_metric *given) {
  int64_t kernel = kernel_of(launch);
  rl_metric_value *items = malloc((records.metric_count + MAX_GIVEN) * sizeof *items);
  size_t count = 0;
  for (size_t i = 0; i < records.metric_count; i++) {
    const rl_kernel_metric *metric = &records.metrics[i];
    if (metric->ordinal == kernel && !is_given(given, metric->metric))
      items[count++] = (rl_metric_value){metric->metric, metric->value, metric->reason};
  }
  for (size_t i = 0; i < MAX_GIVEN; i++)
    if (given[i].name) items[count++] = (rl_metric_value){given[i].name, given[i].value, NULL};
  rl_metric_values_sort(items, count);
  return (rl_metric_values){items, count};
}

/* Returns whether the rule has a finding on the launch, and sets *finding. A finding that only reports missing metrics counts as
 * none. */
static bool triggers(const rule_case *test, const char *launch, rl_finding *finding) {
  rl_metric_values values = values_of(launch, test->given);
  bool has_finding = rl_rule_apply(rl_rule_find(test->rule), &values, finding);
  free((void *)(uintptr_t)values.items);
  return has_finding && finding->kind == finding->rule->kind;
}

static void print_inputs(const char *launch, const rl_finding *finding) {
  for (int i = 0; i < finding->input_count; i++)
    print_message("  %s: %s = %g%s%s\n", launch, finding->inputs[i].name, finding->inputs[i].value,
                  isnan(finding->inputs[i].value) ? ": " : "",
                  isnan(finding->inputs[i].value) && finding->inputs[i].reason ? finding->inputs[i].reason : "");
}

/* Returns whether the rule reads metrics that are collected by patching SASS, which is not possible on every machine. */
static bool needs_sass_metrics(const char *rule) {
  for (const rl_rule_input *input = rl_rule_find(rule)->inputs; input->name; input++)
    for (size_t i = 0; i < rl_raw_metric_count; i++)
      if (rl_raw_metrics[i].origin == RL_ORIGIN_SASS && strcmp(rl_raw_metrics[i].name, input->metric) == 0) return true;
  return false;
}

static void each_rule_is_triggered_by_its_kernel(void **state) {
  (void)state;
  int untriggered = 0;
  for (const rule_case *test = rule_cases; test < rule_cases + RULE_CASES; test++) {
    rl_finding finding;
    if (triggers(test, test->triggering, &finding)) {
      print_message("%s: %s: %s\n", test->rule, test->triggering, finding.message);
      continue;
    }
    print_message("%s is not triggered by %s\n", test->rule, test->triggering);
    print_inputs(test->triggering, &finding);
    untriggered += !needs_sass_metrics(test->rule);
  }
  assert_int_equal(untriggered, 0);
}

static void each_rule_is_silent_on_the_other_kernel(void **state) {
  (void)state;
  int wrong = 0;
  for (const rule_case *test = rule_cases; test < rule_cases + RULE_CASES; test++) {
    rule_case without_given = {.rule = test->rule};
    rl_finding finding;
    if (!triggers(&without_given, test->silent, &finding)) continue;
    print_message("%s is triggered by %s: %s\n", test->rule, test->silent, finding.message);
    wrong++;
  }
  assert_int_equal(wrong, 0);
}

static void every_rule_is_tested(void **state) {
  (void)state;
  for (const rl_rule_group *group = rl_rule_groups; group->title; group++)
    for (const rl_rule *rule = group->rules; rule->id; rule++) {
      if (strcmp(rule->section, RL_RULE_TIMELINE_SECTION) == 0)
        continue; /* such rules judge a whole run, not a kernel; tests/unit tests them */
      const rule_case *test = rule_cases;
      while (test < rule_cases + RULE_CASES && strcmp(test->rule, rule->id) != 0) test++;
      if (test == rule_cases + RULE_CASES) fail_msg("%s is not tested", rule->id);
    }
}

static rl_roofline roofline_of(const char *launch) {
  static const given_metric none[MAX_GIVEN];
  rl_metric_values values = values_of(launch, none);
  rl_roofline made = rl_roofline_compute(&values);
  free((void *)(uintptr_t)values.items);
  return made;
}

/* Asserts that the roof's achieved rate times the kernel's duration is near the expected amount. A tolerance is needed because
 * rate and duration are counted in different passes over the kernel. */
static void assert_amount(const char *what, const rl_roof *roof, double duration_s, double expected) {
  double amount = roof->achieved_per_s * duration_s;
  print_message("%s: %s: %.6g of the expected amount, %.4g of the peak\n", what, roof->name, amount / expected,
                roof->achieved_per_s / roof->theoretical_per_s);
  assert_true(fabs(amount / expected - 1) < 0.05);
  assert_true(roof->achieved_per_s <= 1.02 * roof->theoretical_per_s);
}

static void operations_are_as_expected(void **state) {
  (void)state;
  static const struct {
    const char *launch;
    rl_roof_unit unit;
    double operations; /* per SM */
  } known[] = {
      {"fma", RL_UNIT_FP32, 8. * 256 * 400 * 64 * 2},
      {"add_mul", RL_UNIT_FP32, 8. * 256 * 200 * 64 * 2},
      {"dfma", RL_UNIT_FP64, 8. * 256 * 200 * 64 * 2},
      {"dadd_dmul", RL_UNIT_FP64, 8. * 256 * 100 * 64 * 2},
      {"hfma", RL_UNIT_FP16, 8. * 256 * 400 * 64 * 4},
      {"mma_starved", RL_UNIT_TENSOR_FP16, 8. * 2000 * 2 * 16 * 8 * 16},
      {"wgmma", RL_UNIT_TENSOR_FP16, 4. * 400 * 8 * 2 * 64 * 64 * 16},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    rl_roofline roofline = roofline_of(known[i].launch);
    assert_amount(known[i].launch, &roofline.units[known[i].unit], roofline.duration_s, known[i].operations * rules_sm_count());
  }
}

static void bytes_are_as_expected(void **state) {
  (void)state;
  const double bytes = 256 << 20;
  rl_roofline read = roofline_of("read"), copy = roofline_of("copy");
  assert_amount("read", &read.levels[RL_LEVEL_DRAM], read.duration_s, bytes);
  assert_amount("read", &read.levels[RL_LEVEL_L2], read.duration_s, bytes);
  assert_amount("read", &read.levels[RL_LEVEL_L1], read.duration_s, bytes);
  assert_amount("copy", &copy.levels[RL_LEVEL_L2], copy.duration_s, 2 * bytes);
  assert_amount("copy", &copy.levels[RL_LEVEL_L1], copy.duration_s, bytes);
}

static void kernels_are_on_their_side_of_the_ridge(void **state) {
  (void)state;
  static const struct {
    const char *launch;
    rl_bound bound;
  } known[] = {{"copy", RL_BOUND_MEMORY},   {"read_apart", RL_BOUND_MEMORY}, {"fma", RL_BOUND_COMPUTE},
               {"dfma", RL_BOUND_COMPUTE},  {"wgmma", RL_BOUND_COMPUTE},     {"chase", RL_BOUND_LATENCY},
               {"asleep", RL_BOUND_LATENCY}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    rl_classification found = roofline_of(known[i].launch).classification;
    print_message("%s: %s: %s\n", known[i].launch, rl_bound_names[found.bound], found.why);
    assert_int_equal(found.bound, known[i].bound);
  }
}

static void kernels_have_their_verdict(void **state) {
  (void)state;
  static const struct {
    const char *launch;
    rl_kernel_bound bound;
    const char *pipeline; /* "": none */
  } known[] = {{"copy", RL_KERNEL_BOUND_DRAM, ""},
               {"fma", RL_KERNEL_BOUND_PIPELINE, "fma"},
               {"dfma", RL_KERNEL_BOUND_PIPELINE, "fp64"},
               {"wgmma", RL_KERNEL_BOUND_PIPELINE, "tensor"},
               {"logic", RL_KERNEL_BOUND_PIPELINE, "alu"},
               {"ex2", RL_KERNEL_BOUND_PIPELINE, "xu"},
               {"read_banks", RL_KERNEL_BOUND_L1, ""},
               {"write_banks", RL_KERNEL_BOUND_L1, ""},
               {"read_no_banks", RL_KERNEL_BOUND_L1, ""},
               {"chase", RL_KERNEL_BOUND_LATENCY, ""},
               {"asleep", RL_KERNEL_BOUND_LATENCY, ""},
               {"few_blocks", RL_KERNEL_BOUND_LAUNCH, ""},
               {"uneven_blocks", RL_KERNEL_BOUND_TAIL, ""},
               {"one_long_block", RL_KERNEL_BOUND_TAIL, ""},
               {"tiny", RL_KERNEL_BOUND_TOO_SMALL, ""},
               {"red_one_word", RL_KERNEL_BOUND_ATOMICS, ""},
               {"atom_one_word", RL_KERNEL_BOUND_ATOMICS, ""},
               {"red_spread", RL_KERNEL_BOUND_LATENCY, ""}};
  static const given_metric none[MAX_GIVEN];
  int wrong = 0;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    rl_metric_values values = values_of(known[i].launch, none);
    rl_kernel_verdict v = rl_kernel_verdict_make(&values);
    print_message("%s: %s: %s\n", known[i].launch, rl_kernel_bound_names[v.bound], v.message);
    wrong += v.bound != known[i].bound || strcmp(v.pipeline ? v.pipeline : "", known[i].pipeline) != 0;
    free((void *)(uintptr_t)values.items);
  }
  assert_int_equal(wrong, 0);
}

/* At least 95 % of the verdicts are right, and 95 % of the reports have no false optimisation. */
static void kernels_with_known_causes_are_judged_right(void **state) {
  (void)state;
  static const given_metric none[MAX_GIVEN];
  size_t right = 0, without_false = 0;
  for (const known_kernel *kernel = known_kernels; kernel < known_kernels + known_kernel_count; kernel++) {
    rl_metric_values values = values_of(kernel->launch, none);
    known_result result = known_kernel_judge(kernel, &values);
    print_message("%s: %s%s, %s, false optimisation: %s\n", kernel->launch, rl_kernel_bound_names[result.verdict.bound],
                  result.verdict_is_right ? "" : " (wrong)", result.cause_is_found ? "cause found" : "cause missing",
                  result.false_rule ? result.false_rule->id : "none");
    right += result.verdict_is_right, without_false += !result.false_rule;
    free((void *)(uintptr_t)values.items);
  }
  assert_true(100 * right >= 95 * known_kernel_count);
  assert_true(100 * without_false >= 95 * known_kernel_count);
}

/* Writes the metrics as cupti_probe_rules count does, without the kernels' names and sizes. */
static void write_metrics(const char *path) {
  FILE *out = fopen(path, "w");
  if (!out) fail_msg("%s cannot be written", path);
  for (size_t i = 0; i < records.metric_count; i++) {
    const rl_kernel_metric *metric = &records.metrics[i];
    const rl_kernel *kernel = &records.kernels[metric->ordinal];
    fprintf(out, "%d,%s,\"\",,,%s,\"%s\",", (int)metric->ordinal, kernel->launch, metric->metric, metric->reason);
    if (isnan(metric->value)) fprintf(out, "\n");
    else fprintf(out, "%.17g\n", metric->value);
  }
  fclose(out);
}

/* Returns the sections that the rooflines and rules read. */
static rl_profile_options profile_options_of_rules(void) {
  rl_profile_options profile_options = {.matching_index = RL_ALL_MATCHING_KERNELS};
  for (size_t i = 0; i < rl_section_count; i++)
    if (strstr(rl_sections[i].id, "Roofline")) profile_options.sections |= UINT32_C(1) << i;
  for (const rl_rule_group *group = rl_rule_groups; group->title; group++)
    for (const rl_rule *rule = group->rules; rule->id; rule++)
      for (size_t i = 0; i < rl_section_count; i++)
        if (strcmp(rl_sections[i].id, rule->section) == 0) profile_options.sections |= UINT32_C(1) << i;
  return profile_options;
}

static const char *metrics_path; /* NULL: the metrics are not written */

static int collect(void **state) {
  (void)state;
  rl_error err = {0};
  char reason[RL_REASON_SIZE] = "";
  rl_profile_options profile_options = profile_options_of_rules();
  int result = profiler->ops->collect_counters(profiler, instance, &profile_options, NULL, &records, reason, &err);
  if (result != 0) print_message("%s\n", result == 1 ? reason : err.message);
  if (result == 0 && metrics_path) write_metrics(metrics_path);
  return result;
}

int main(int argc, char **argv) {
  rl_error err = {0};
  metrics_path = argc > 1 ? argv[1] : NULL;
  profiler = load_profiler(&err);
  int opened = subject_open(0, NULL, &instance, &err);
  if (opened == 1) {
    printf("skipped: %s\n", err.message);
    return SKIP;
  }
  check(profiler == NULL || opened != 0 ? -1 : 0, "profiler and device", &err);
  profiler->device = instance->device;
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_rule_is_tested),
                                     cmocka_unit_test(each_rule_is_triggered_by_its_kernel),
                                     cmocka_unit_test(each_rule_is_silent_on_the_other_kernel),
                                     cmocka_unit_test(operations_are_as_expected),
                                     cmocka_unit_test(bytes_are_as_expected),
                                     cmocka_unit_test(kernels_are_on_their_side_of_the_ridge),
                                     cmocka_unit_test(kernels_have_their_verdict),
                                     cmocka_unit_test(kernels_with_known_causes_are_judged_right)};
  int failed = cmocka_run_group_tests(tests, collect, NULL);
  rl_records_clear(&records);
  profiler->ops->close(profiler);
  instance->ops->close(instance);
  return failed;
}
