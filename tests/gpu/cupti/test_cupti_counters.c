/* Tests the counters pass on the step of tiny.h, whose kernels have known traffic and instruction counts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "load_profiler.h"

static rl_profiler *profiler;
static tiny_fixture tiny;
static rl_records records;
static rl_error err;
static char reason[RL_REASON_SIZE];
static rl_profile_options profile_options; /* the default set; a test that changes it restores it */

enum { SLEEP, COPY, FMA, FMA_TWICE, PAIR_FIRST, PAIR_SECOND, UPDATE, KERNEL_COUNT }; /* ordinals in the step */

static double metric_value(int64_t kernel, const char *name) {
  for (size_t i = 0; i < records.metric_count; i++)
    if (records.metrics[i].ordinal == kernel && strcmp(records.metrics[i].metric, name) == 0) return records.metrics[i].value;
  fail_msg("no metric %s", name);
  return NAN;
}

static void assert_near(double value, double expected, double ratio, const char *what) {
  print_message("%s: %.6g, expected %.6g\n", what, value, expected);
  if (!(fabs(value - expected) <= ratio * expected)) fail_msg("%s is %.9g, not %.9g", what, value, expected);
}

static void test_every_kernel_of_the_step_is_listed(void **state) {
  (void)state;
  static const struct {
    const char *launch, *phase, *name;
  } expected[KERNEL_COUNT] = {{"sleep", "data", "tiny_sleeps("},           {"copy", "data", "tiny_copies("},
                              {"fma", "forward", "void tiny_multiplies<"}, {"fma_twice", "forward", "void tiny_multiplies<"},
                              {"pair", "backward", "tiny_reads("},         {"pair", "backward", "tiny_reads("},
                              {"update", "optimizer", "tiny_updates("}};
  assert_int_equal(records.kernel_count, KERNEL_COUNT);
  for (int i = 0; i < KERNEL_COUNT; i++) {
    const rl_kernel *kernel = &records.kernels[i];
    assert_int_equal(kernel->ordinal, i);
    assert_string_equal(kernel->launch, expected[i].launch);
    assert_string_equal(kernel->phase, expected[i].phase);
    assert_memory_equal(kernel->name, expected[i].name, strlen(expected[i].name));
    assert_true(kernel->registers_per_thread > 0 && isnan(kernel->total_us) && kernel->reason[0] != '\0');
  }
  assert_int_equal(records.kernels[FMA].grid_x * records.kernels[FMA].block_x, TINY_FMA_WARPS * 32);
}

static void test_every_metric_has_a_value_or_a_reason(void **state) {
  (void)state;
  assert_true(records.metric_count > 0);
  for (size_t i = 0; i < records.metric_count; i++)
    assert_true(!isnan(records.metrics[i].value) || records.metrics[i].reason[0] != '\0');
}

static void test_a_cold_copy_reads_its_bytes(void **state) {
  (void)state;
  const double bytes = TINY_COPY_BYTES, l2 = 64 << 20; /* up to this much is still dirty in L2 when the kernel ends */
  assert_near(metric_value(COPY, "dram__bytes_read.sum"), bytes, 0.01, "bytes read by the copy");
  double written = metric_value(COPY, "dram__bytes_write.sum");
  print_message("bytes written by the copy: %.6g of %.6g\n", written, bytes);
  assert_true(written <= 1.01 * bytes && written >= bytes - l2);
  assert_near(metric_value(COPY, "dram__bytes.sum"), metric_value(COPY, "dram__bytes_read.sum") + written, 0.02,
              "read and written");
  assert_near(metric_value(COPY, "dram__bytes_read.sum.per_second"),
              metric_value(COPY, "dram__bytes_read.sum") / (metric_value(COPY, "gpu__time_duration.sum") * 1e-9), 0.05,
              "rate of reading");
}

static void test_caches_are_cold_for_every_kernel_of_a_launch(void **state) {
  (void)state;
  assert_near(metric_value(PAIR_FIRST, "dram__bytes_read.sum"), TINY_PAIR_BYTES, 0.02, "bytes read by the first of a pair");
  assert_near(metric_value(PAIR_SECOND, "dram__bytes_read.sum"), TINY_PAIR_BYTES, 0.02, "bytes read by the second of a pair");
}

static void test_instructions_are_exact(void **state) {
  (void)state;
  double once = metric_value(FMA, "smsp__inst_executed.sum"), twice = metric_value(FMA_TWICE, "smsp__inst_executed.sum");
  print_message("instructions: %.0f and %.0f\n", once, twice);
  assert_true(twice - once == (double)TINY_FMAS_PER_THREAD * TINY_FMA_WARPS);
}

static void test_a_sleeping_kernel_lasts_as_long_as_it_sleeps(void **state) {
  (void)state;
  assert_near(metric_value(SLEEP, "gpu__time_duration.sum") / 1e3, TINY_SLEEP_US, 0.02, "us slept");
  assert_true(metric_value(SLEEP, "dram__bytes.sum") < 1e6);
}

/* Kernel UPDATE is excluded: there the compiler loads a constant by HFMA2.MMA, which runs on the tensor pipe. */
static void test_tensor_pipe_is_idle_without_matrix_instructions(void **state) {
  (void)state;
  for (int i = SLEEP; i < UPDATE; i++)
    assert_true(metric_value(i, "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active") == 0);
}

static void collect_once(void) {
  rl_records_clear(&records);
  int64_t before = rl_monotonic_ns();
  int result = profiler->ops->collect_counters(profiler, &tiny.base, &profile_options, NULL, &records, reason, &err);
  if (result == -1) fail_msg("%s", err.message);
  if (result == 1) fail_msg("refused: %s", reason);
  print_message("counted %zu kernels in %.2f s\n", records.kernel_count, (double)(rl_monotonic_ns() - before) / 1e9);
}

static void test_counting_restores_the_state_and_repeats(void **state) {
  (void)state;
  float *before = malloc(TINY_STATE_FLOATS * sizeof *before), *after = malloc(TINY_STATE_FLOATS * sizeof *after);
  double instructions = metric_value(UPDATE, "smsp__inst_executed.sum");
  assert_int_equal(tiny_read_state(&tiny, before, &err), 0);
  collect_once();
  assert_int_equal(tiny_read_state(&tiny, after, &err), 0);
  assert_memory_equal(before, after, TINY_STATE_FLOATS * sizeof *before);
  assert_true(metric_value(UPDATE, "smsp__inst_executed.sum") == instructions);
  free(before);
  free(after);
}

static void test_tracing_works_after_counting(void **state) {
  (void)state;
  rl_records_clear(&records);
  profiler->ops->release_counters(profiler);
  assert_int_equal(profiler->ops->trace_start(profiler, &err), 0);
  assert_int_equal(tiny_launch_empty(&tiny, 50, &err), 0);
  assert_int_equal(profiler->ops->trace_stop(profiler, &records, &err), 0);
  size_t kernels = 0;
  for (size_t i = 0; i < records.row_count; i++) kernels += records.rows[i].kind == RL_ACTIVITY_KERNEL;
  assert_int_equal(kernels, 50);
}

static void collect_with(const char *kernels, int64_t launch, const char *metrics) {
  const rl_profile_options previous = profile_options;
  profile_options = (rl_profile_options){.matching_index = launch};
  snprintf(profile_options.kernel_pattern, sizeof profile_options.kernel_pattern, "%s", kernels);
  snprintf(profile_options.metrics, sizeof profile_options.metrics, "%s", metrics);
  collect_once();
  profile_options = previous;
}

static void test_kernels_are_selected_by_name_and_launch(void **state) {
  (void)state;
  collect_with("*multiplies*", -1, "smsp__inst_executed.sum");
  assert_int_equal(records.kernel_count, 2);
  assert_true(records.kernels[0].ordinal == FMA && records.kernels[1].ordinal == FMA_TWICE);
  assert_true(metric_value(FMA_TWICE, "smsp__inst_executed.sum") - metric_value(FMA, "smsp__inst_executed.sum") ==
              (double)TINY_FMAS_PER_THREAD * TINY_FMA_WARPS);
  collect_with("pair", 1, "dram__bytes_read.sum"); /* "pair" is the launch's name; its second kernel starts cold too */
  assert_int_equal(records.kernel_count, 1);
  assert_int_equal(records.kernels[0].ordinal, PAIR_SECOND);
  assert_near(metric_value(PAIR_SECOND, "dram__bytes_read.sum"), TINY_PAIR_BYTES, 0.02, "bytes read by the chosen kernel");
}

/* The flush that empties L2 launches a kernel before each profiled kernel. The counters of that kernel must not be reported. */
static void test_an_empty_l2_changes_requests_alone(void **state) {
  (void)state;
  enum { STATES = 2 };
  double requests[STATES], reads[STATES], instructions[STATES][KERNEL_COUNT];
  const rl_profile_options previous = profile_options;
  for (int cache = RL_L2_FULL; cache <= RL_L2_EMPTY; cache++) {
    profile_options = (rl_profile_options){.matching_index = RL_ALL_MATCHING_KERNELS,
                                           .metrics = "lts__t_requests.sum\ndram__bytes_read.sum\nsmsp__inst_executed.sum",
                                           .cache = cache};
    collect_once();
    assert_int_equal(records.kernel_count, KERNEL_COUNT);
    requests[cache] = metric_value(PAIR_FIRST, "lts__t_requests.sum");
    reads[cache] = metric_value(PAIR_FIRST, "dram__bytes_read.sum");
    for (int k = 0; k < KERNEL_COUNT; k++) instructions[cache][k] = metric_value(k, "smsp__inst_executed.sum");
  }
  profile_options = previous;
  for (int k = COPY; k < KERNEL_COUNT; k++) /* SLEEP polls the clock */
    assert_true(instructions[RL_L2_EMPTY][k] == instructions[RL_L2_FULL][k]);
  assert_near(reads[RL_L2_EMPTY], TINY_PAIR_BYTES, 0.02, "bytes read with an empty L2");
  if (requests[RL_L2_EMPTY] >= 0.97 * requests[RL_L2_FULL])
    fail_msg("L2 requests: %g empty, %g full", requests[RL_L2_EMPTY], requests[RL_L2_FULL]);
}

/* Alternates between the states, and selects one kernel of several. */
static void test_an_empty_l2_serves_a_selected_kernel(void **state) {
  (void)state;
  collect_with("pair", 1, "smsp__inst_executed.sum");
  const double expected = metric_value(PAIR_SECOND, "smsp__inst_executed.sum");
  const rl_profile_options previous = profile_options;
  profile_options = (rl_profile_options){
      .matching_index = 1, .kernel_pattern = "pair", .metrics = "smsp__inst_executed.sum", .cache = RL_L2_EMPTY};
  collect_once();
  profile_options = previous;
  assert_int_equal(records.kernel_count, 1);
  assert_true(metric_value(PAIR_SECOND, "smsp__inst_executed.sum") == expected);
}

static void test_no_matching_kernel_is_an_input_error(void **state) {
  (void)state;
  rl_profile_options none = {.matching_index = 2, .kernel_pattern = "*multiplies*", .metrics = "smsp__inst_executed.sum"};
  rl_records_clear(&records);
  assert_int_equal(profiler->ops->collect_counters(profiler, &tiny.base, &none, NULL, &records, reason, &err), -1);
  assert_int_equal(err.domain, RL_INPUT);
  assert_int_equal(records.kernel_count, 0);
}

static void test_launch_and_device_metrics_need_no_counters(void **state) {
  (void)state;
  collect_with(
      "copy", -1,
      "launch__block_size\nlaunch__waves_per_multiprocessor\ndevice__attribute_warp_size\ndevice__attribute_nothing\nsm__"
      "nothing.sum");
  assert_true(metric_value(COPY, "launch__block_size") == 256 && metric_value(COPY, "device__attribute_warp_size") == 32);
  assert_true(metric_value(COPY, "launch__waves_per_multiprocessor") > 0);
  assert_true(isnan(metric_value(COPY, "device__attribute_nothing")) && isnan(metric_value(COPY, "sm__nothing.sum")));
  test_every_metric_has_a_value_or_a_reason(NULL);
}

/* The first collection has no SASS yet and collects all counters; the second derives zeros from the SASS. */
static void test_derived_zeros_equal_the_collected_values(void **state) {
  (void)state;
  enum { FULL = 3 };
  assert_string_equal(rl_profile_set_names[FULL], "full");
  const rl_profile_options full =
      rl_profile_options_resolve(FULL, &(rl_profile_options){.matching_index = RL_ALL_MATCHING_KERNELS});
  rl_records counted = {0};
  size_t derived = 0;
  rl_records_clear(&records);
  assert_int_equal(profiler->ops->collect_counters(profiler, &tiny.base, &full, NULL, &counted, reason, &err), 0);
  assert_int_equal(profiler->ops->collect_counters(profiler, &tiny.base, &full, NULL, &records, reason, &err), 0);
  for (size_t i = 0; i < records.metric_count; i++) {
    const rl_kernel_metric *repeated = &records.metrics[i];
    if (isnan(repeated->value) || repeated->reason[0] == '\0') continue;
    derived++;
    for (size_t j = 0; j < counted.metric_count; j++)
      if (counted.metrics[j].ordinal == repeated->ordinal && strcmp(counted.metrics[j].metric, repeated->metric) == 0 &&
          counted.metrics[j].value != repeated->value)
        fail_msg("%s of kernel %d was collected as %g", repeated->metric, (int)repeated->ordinal, counted.metrics[j].value);
  }
  print_message("%zu of %zu values were derived from the code\n", derived, records.metric_count);
  rl_records_clear(&counted);
}

static bool cancel(void *context) { return ++*(int *)context == 2; }

static double fma_metric_value(const char *name) {
  collect_with("*multiplies*", -1, name);
  return metric_value(FMA, name);
}

/* Between the collections the range profiler is kept, replaced by another configuration, or released. */
static void test_a_kept_profiler_counts_the_same(void **state) {
  (void)state;
  const char counters[] = "smsp__inst_executed.sum\nlts__t_sectors_op_read.sum";
  collect_with("*multiplies*", -1, counters);
  double once = metric_value(FMA, "smsp__inst_executed.sum"), twice = metric_value(FMA_TWICE, "smsp__inst_executed.sum");
  for (int i = 0; i < 6; i++) {
    if (i == 2) collect_with("copy", -1, "dram__bytes_read.sum");
    if (i == 4) profiler->ops->release_counters(profiler);
    collect_with("*multiplies*", -1, counters);
    assert_true(metric_value(FMA, "smsp__inst_executed.sum") == once &&
                metric_value(FMA_TWICE, "smsp__inst_executed.sum") == twice);
    assert_true(metric_value(FMA, "lts__t_sectors_op_read.sum") > 0);
  }
}

/* Both metrics need the same counters, so the kept configuration matches. */
static void test_a_kept_profiler_serves_other_metrics(void **state) {
  (void)state;
  double sum = fma_metric_value("smsp__inst_executed.sum"), kept = fma_metric_value("smsp__inst_executed.avg");
  profiler->ops->release_counters(profiler);
  assert_true(kept > 0 && fma_metric_value("smsp__inst_executed.avg") == kept);
  assert_true(fma_metric_value("smsp__inst_executed.sum") == sum);
}

static void test_counting_can_be_cancelled(void **state) {
  (void)state;
  int cancel_checks = 0;
  rl_observer observer = {.context = &cancel_checks, .cancelled = cancel};
  rl_records_clear(&records);
  assert_int_equal(profiler->ops->collect_counters(profiler, &tiny.base, &profile_options, &observer, &records, reason, &err),
                   -1);
  assert_int_equal(err.domain, RL_ERRNO);
  assert_int_equal(cancel_checks, 2);
}

static int collect_first(void **state) {
  (void)state;
  collect_once();
  return 0;
}

int main(void) {
  profiler = open_profiler(&tiny);
  profile_options =
      rl_profile_options_resolve(RL_PROFILE_SET_AUTO, &(rl_profile_options){.matching_index = RL_ALL_MATCHING_KERNELS});
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_kernel_of_the_step_is_listed),
      cmocka_unit_test(test_every_metric_has_a_value_or_a_reason),
      cmocka_unit_test(test_a_cold_copy_reads_its_bytes),
      cmocka_unit_test(test_caches_are_cold_for_every_kernel_of_a_launch),
      cmocka_unit_test(test_instructions_are_exact),
      cmocka_unit_test(test_a_sleeping_kernel_lasts_as_long_as_it_sleeps),
      cmocka_unit_test(test_tensor_pipe_is_idle_without_matrix_instructions),
      cmocka_unit_test(test_counting_restores_the_state_and_repeats),
      cmocka_unit_test(test_kernels_are_selected_by_name_and_launch),
      cmocka_unit_test(test_an_empty_l2_changes_requests_alone),
      cmocka_unit_test(test_an_empty_l2_serves_a_selected_kernel),
      cmocka_unit_test(test_no_matching_kernel_is_an_input_error),
      cmocka_unit_test(test_launch_and_device_metrics_need_no_counters),
      cmocka_unit_test(test_tracing_works_after_counting),
      cmocka_unit_test(test_counting_can_be_cancelled),
      cmocka_unit_test(test_a_kept_profiler_counts_the_same),
      cmocka_unit_test(test_a_kept_profiler_serves_other_metrics),
      cmocka_unit_test(test_derived_zeros_equal_the_collected_values),
  };
  int failed = cmocka_run_group_tests(tests, collect_first, NULL);
  rl_records_clear(&records);
  profiler->ops->close(profiler);
  tiny_close(&tiny);
  return failed;
}
