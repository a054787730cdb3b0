/* What of the module needs no device: which metrics a chip has and which can share a configuration, names, occupancy. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "worker/cupti/metrics.h"
#include "worker/cupti/names.h"
#include "worker/cupti/occupancy.h"
#include "worker/cupti/plan.h"
#include "worker/cupti/result.h"

static rl_counter_plan *plan_of(const char *chip, const char *const *names, size_t count) {
  rl_error err = {0};
  rl_counter_plan *plan = NULL;
  if (rl_counter_plan_open(chip, names, count, &plan, &err) != 0) fail_msg("%s", err.message);
  return plan;
}

static void test_hopper_has_every_metric(void **state) {
  (void)state;
  const char *names[64] = {0};
  for (size_t i = 0; i < rl_metric_count; i++) names[i] = rl_metrics[i].name;
  rl_counter_plan *plan = plan_of("GH100", names, rl_metric_count);
  size_t placed = 0;
  for (size_t i = 0; i < plan->group_count; i++) placed += plan->groups[i].count;
  for (size_t i = 0; i < rl_metric_count; i++) assert_string_equal(plan->reasons[i].text, "");
  assert_int_equal(placed, rl_metric_count);
  assert_int_equal(plan->group_count, 1);
  assert_true(plan->passes > 0 && plan->passes < 20);
  rl_counter_plan_close(plan);
}

static void test_metrics_that_exclude_each_other_are_parted(void **state) {
  (void)state;
  static const char *const names[] = {"dram__bytes.sum", "pcie__read_bytes.sum", "smsp__inst_executed.sum"};
  rl_counter_plan *plan = plan_of("GH100", names, 3);
  assert_int_equal(plan->group_count, 2);
  assert_int_equal(plan->groups[0].count, 2);
  assert_int_equal(plan->groups[0].metrics[1], 2);
  assert_int_equal(plan->groups[1].count, 1);
  assert_string_equal(plan->groups[1].names[0], "pcie__read_bytes.sum");
  rl_counter_plan_close(plan);
}

static void test_a_metric_that_is_not_there_says_so(void **state) {
  (void)state;
  static const char *const names[] = {"launch__registers_per_thread", "dram__bytes.sum"};
  rl_counter_plan *plan = plan_of("GH100", names, 2);
  assert_non_null(strstr(plan->reasons[0].text, "GH100"));
  assert_string_equal(plan->reasons[1].text, "");
  assert_int_equal(plan->group_count, 1);
  rl_counter_plan_close(plan);
}

static void test_an_unknown_chip_is_an_error(void **state) {
  (void)state;
  static const char *const names[] = {"dram__bytes.sum"};
  rl_error err = {0};
  rl_counter_plan *plan = NULL;
  assert_int_equal(rl_counter_plan_open("XX999", names, 1, &plan, &err), -1);
  assert_int_equal(err.domain, RL_CUPTI);
  assert_null(plan);
}

static void test_refusals_are_told_from_mistakes(void **state) {
  (void)state;
  rl_error err = {0};
  assert_int_equal(rl_cupti_check(CUPTI_SUCCESS, "x", &err), 0);
  assert_int_equal(rl_cupti_check(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "start", &err), -1);
  assert_true(rl_cupti_refused(&err));
  assert_non_null(strstr(err.message, "NVreg_RestrictProfilingToAdminUsers"));
  assert_int_equal(rl_cupti_check(CUPTI_ERROR_INVALID_PARAMETER, "start", &err), -1);
  assert_false(rl_cupti_refused(&err));
}

static void test_names_are_demangled_and_kept_once(void **state) {
  (void)state;
  rl_names names = {0};
  rl_error err = {0};
  uint32_t index = 9, same = 9, plain = 9;
  char moved[] = "_Z3addPfi";
  assert_int_equal(rl_names_find(&names, "_Z3addPfi", &index, &err), 0);
  assert_int_equal(rl_names_find(&names, moved, &same, &err), 0);
  assert_int_equal(rl_names_find(&names, "memset", &plain, &err), 0);
  assert_string_equal(names.items[index].text, "add(float*, int)");
  assert_int_equal(index, same);
  assert_string_equal(names.items[plain].text, "memset");
  strcpy(moved, "_Z3subPfi"); /* the pointer is used again for another name */
  assert_int_equal(rl_names_find(&names, moved, &same, &err), 0);
  assert_string_equal(names.items[same].text, "sub(float*, int)");
  for (int i = 0; i < 5000; i++) { /* the table grows */
    static char many[5000][12];
    snprintf(many[i], sizeof many[i], "kernel%d", i % 1000);
    assert_int_equal(rl_names_find(&names, many[i], &same, &err), 0);
    assert_string_equal(names.items[same].text, many[i]);
  }
  assert_int_equal(names.count, 1003);
  rl_names_clear(&names);
}

/* A multiprocessor of an H100 or H200: 2048 threads, 65536 registers, 228 KiB of shared memory, 1 KiB of it reserved a block. */
static const rl_occupancy hopper = {.major = 9, .minor = 0, .processors = 132, .warp_threads = 32, .block_threads = 1024,
                                    .processor_threads = 2048, .block_registers = 65536, .processor_registers = 65536,
                                    .block_shared_bytes = 48 << 10, .block_shared_optin_bytes = 227 << 10,
                                    .block_reserved_bytes = 1 << 10, .processor_shared_bytes = 228 << 10};

static void test_occupancy_is_limited_by_what_runs_out_first(void **state) {
  (void)state;
  static const struct {
    uint32_t threads, registers, shared, dynamic;
    double ratio;
  } cases[] = {
      {256, 32, 0, 0, 1.0},                  /* threads: 8 blocks */
      {256, 64, 0, 0, 0.5},                  /* registers: 4 blocks */
      {1024, 64, 0, 0, 0.5},                 /* registers: 1 block */
      {32, 16, 0, 0, 0.5},                   /* 32 blocks a multiprocessor */
      {256, 32, 0, 75 << 10, 0.375},         /* shared memory: 3 blocks of 76 KiB */
      {256, 32, 48 << 10, 0, 0.5},           /* 4 blocks of 49 KiB */
      {128, 33, 0, 0, 12 * 4 / 64.0},        /* 40 registers a thread in granules of 256 a warp: 12 blocks */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_activity_row row = {.kind = RL_ACTIVITY_KERNEL, .grid = {1, 1, 1}, .block = {cases[i].threads, 1, 1},
                           .registers = cases[i].registers, .static_shared_bytes = cases[i].shared,
                           .dynamic_shared_bytes = cases[i].dynamic};
    double ratio = rl_occupancy_ratio(&hopper, &row);
    if (ratio != cases[i].ratio) fail_msg("case %zu: %.4f, not %.4f", i, ratio, cases[i].ratio);
  }
}

static void test_what_cannot_run_has_no_occupancy(void **state) {
  (void)state;
  rl_activity_row row = {.kind = RL_ACTIVITY_KERNEL, .block = {256, 1, 1}, .registers = 32, .dynamic_shared_bytes = 300 << 10};
  assert_true(isnan(rl_occupancy_ratio(&hopper, &row)));
  row.dynamic_shared_bytes = 0;
  row.kind = RL_ACTIVITY_MEMCPY;
  assert_true(isnan(rl_occupancy_ratio(&hopper, &row)));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_hopper_has_every_metric),
      cmocka_unit_test(test_metrics_that_exclude_each_other_are_parted),
      cmocka_unit_test(test_a_metric_that_is_not_there_says_so),
      cmocka_unit_test(test_an_unknown_chip_is_an_error),
      cmocka_unit_test(test_refusals_are_told_from_mistakes),
      cmocka_unit_test(test_names_are_demangled_and_kept_once),
      cmocka_unit_test(test_occupancy_is_limited_by_what_runs_out_first),
      cmocka_unit_test(test_what_cannot_run_has_no_occupancy),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
