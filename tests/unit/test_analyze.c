/* Tests statistics, busy time and the attribution of kernels to launches, with results that were calculated by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/statistics.h"
#include "analyze/timeline.h"

static void assert_close(double value, double expected) {
  if (!(fabs(value - expected) <= 1e-9 * fmax(1, fabs(expected)))) fail_msg("%.12g is not %.12g", value, expected);
}

/* --- statistics -------------------------------------------------------------------------------------------------------- */

static void median_of_odd_and_even_counts(void **state) {
  (void)state;
  double odd[] = {5, 1, 9}, even[] = {4, 1, 3, 2}, one[] = {7};
  assert_close(rl_summarize_sample(odd, 3).median, 5);
  assert_close(rl_summarize_sample(even, 4).median, 2.5);
  rl_sample_summary single = rl_summarize_sample(one, 1);
  assert_close(single.median, 7), assert_close(single.minimum, 7), assert_close(single.maximum, 7),
      assert_close(single.spread_ratio, 0);
}

static void one_outlier_does_not_change_the_spread(void **state) {
  (void)state;
  double values[] = {100, 101, 99, 102, 1e9}; /* The median is 101, and the median of the deviations 1, 0, 2, 1 and 1e9 is 1. */
  rl_sample_summary summary = rl_summarize_sample(values, 5);
  assert_close(summary.minimum, 99);
  assert_close(summary.spread_ratio, 1.4826 / 101); /* 1.4826 median deviations are a standard deviation of normal values */
}

static void values_that_are_not_finite_are_ignored(void **state) {
  (void)state;
  double values[] = {NAN, 2, INFINITY, 4}, none[] = {NAN}, zeros[] = {0, 0};
  rl_sample_summary summary = rl_summarize_sample(values, 4);
  assert_int_equal(summary.count, 2);
  assert_close(summary.median, 3), assert_close(summary.maximum, 4);
  assert_int_equal(rl_summarize_sample(none, 1).count, 0);
  assert_true(isnan(rl_summarize_sample(none, 1).median) && isnan(rl_summarize_sample(NULL, 0).minimum));
  assert_true(isnan(rl_summarize_sample(zeros, 2).spread_ratio));
}

/* Compares with two-sided critical values of printed tables. */
static void student_quantiles_equal_printed_tables(void **state) {
  (void)state;
  static const struct {
    size_t degrees_of_freedom;
    double p, t;
  } rows[] = {{1, 0.05, 12.7062}, {2, 0.05, 4.3027},  {3, 0.01, 5.8409},   {9, 0.05, 2.2622},
              {10, 0.01, 3.1693}, {30, 0.01, 2.7500}, {30, 0.001, 3.6460}, {120, 0.05, 1.9799}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double t = rl_student_critical_value(rows[i].p, rows[i].degrees_of_freedom);
    if (!(fabs(t - rows[i].t) <= 5.1e-5))
      fail_msg("%zu degrees of freedom: %.6f is not %.4f", rows[i].degrees_of_freedom, t, rows[i].t);
    assert_close(rl_student_two_sided_p(t, rows[i].degrees_of_freedom), rows[i].p);
  }
  assert_close(rl_student_two_sided_p(0, 5), 1), assert_close(rl_student_two_sided_p(0, 6), 1);
}

/* --- busy time --------------------------------------------------------------------------------------------------------- */

static rl_activity_row make_row(uint32_t kind, int64_t start_ns, int64_t end_ns, uint32_t name_index) {
  return (rl_activity_row){.kind = kind, .start_ns = start_ns, .end_ns = end_ns, .name = name_index};
}

static void overlapping_work_counts_once(void **state) {
  (void)state;
  rl_activity_row rows[] = {
      make_row(RL_ACTIVITY_KERNEL, 500, 600, 0),                                                 /* out of order on purpose */
      make_row(RL_ACTIVITY_KERNEL, 100, 300, 0),  make_row(RL_ACTIVITY_MEMCPY, 200, 250, 0),     /* nested */
      make_row(RL_ACTIVITY_MEMSET, 280, 350, 0),                                                 /* overlaps by 20 */
      make_row(RL_ACTIVITY_KERNEL, 350, 400, 0),                                                 /* adjacent */
      make_row(RL_ACTIVITY_RUNTIME, 0, 10000, 0), make_row(RL_ACTIVITY_NVTX_RANGE, 0, 10000, 0), /* not work of the device */
      make_row(RL_ACTIVITY_KERNEL, 600, 600, 0)};                                                /* empty */
  rl_busy_time busy;
  assert_int_equal(rl_timeline_measure_busy_time(rows, sizeof rows / sizeof *rows, &busy, NULL), 0);
  assert_int_equal(busy.row_count, 6);
  assert_int_equal(busy.first_ns, 100);
  assert_int_equal(busy.last_ns, 600);
  assert_int_equal(busy.busy_ns, 300 + 100);
  assert_int_equal(rl_timeline_measure_busy_time(NULL, 0, &busy, NULL), 0);
  assert_int_equal(busy.row_count + (size_t)busy.busy_ns, 0);
}

/* --- totals ------------------------------------------------------------------------------------------------------------ */

static void add_name(rl_records *records, const char *name) {
  assert_int_equal(rl_records_add_name(records, name, strlen(name), NULL), 0);
}
static void add_row(rl_records *records, rl_activity_row row) {
  assert_int_equal(rl_records_add(records, RL_RECORD_ROW, &row, 1, NULL), 0);
}
static double half_occupancy(void *context, const rl_activity_row *row) {
  (void)context, (void)row;
  return 0.5;
}

/* A step launches gather, conv (a GEMM), relu and fc (a GEMM). The epoch has three such steps and one of gather and conv. */
static const rl_expected_launch launches[] = {{.name = "gather", .phase = "data", .sequence_index = 0, .repeats = 3},
                                              {.name = "conv", .phase = "forward", .sequence_index = 0, .repeats = 3},
                                              {.name = "relu", .phase = "forward", .sequence_index = 0, .repeats = 3},
                                              {.name = "fc", .phase = "forward", .sequence_index = 0, .repeats = 3},
                                              {.name = "gather", .phase = "data", .sequence_index = 1, .repeats = 1},
                                              {.name = "conv", .phase = "forward", .sequence_index = 1, .repeats = 1}};
enum { LAUNCH_COUNT = sizeof launches / sizeof *launches };

/* Adds a trace of the launches one by one: launch i has a range [100i + 1, 100i + 90] that contains its API call, and a kernel
 * that runs much later. Times are in ns. */
static void add_trace_without_graphs(rl_records *trace_without_graphs) {
  static const char *const functions[] = {"gather_k", "gemm_k", "relu_k", "gemm_k", "gather_k", "gemm_k"};
  add_name(trace_without_graphs, "forward"); /* name of a range that contains the ranges of launches 0 to 2 */
  add_row(trace_without_graphs, make_row(RL_ACTIVITY_NVTX_RANGE, 99, 395, 0));
  for (uint32_t i = 0; i < LAUNCH_COUNT; i++) {
    add_name(trace_without_graphs, launches[i].name);
    add_name(trace_without_graphs, functions[i]);
    rl_activity_row range = make_row(RL_ACTIVITY_NVTX_RANGE, 100 * i + 1, 100 * i + 90, 1 + 2 * i);
    rl_activity_row call = make_row(RL_ACTIVITY_RUNTIME, 100 * i + 10, 100 * i + 20, 1 + 2 * i);
    rl_activity_row kernel = make_row(RL_ACTIVITY_KERNEL, 5000 + 100 * i, 5050 + 100 * i, 2 + 2 * i);
    call.correlation = kernel.correlation = 40 + i;
    add_row(trace_without_graphs, kernel);
    add_row(trace_without_graphs, range);
    add_row(trace_without_graphs, call);
  }
}

/* Adds a trace of the same launches in a graph, without API calls. Durations in ns: conv 1000 + 10 s in step s = 0, 1, ...; fc
 * 300; gather 50; relu 20. */
static void add_graph_trace(rl_records *trace, int steps) {
  add_name(trace, "gather_k"), add_name(trace, "gemm_k"), add_name(trace, "relu_k");
  int64_t begin_ns = 0;
  for (int s = 0; s <= steps; s++, begin_ns += 10000) {
    rl_activity_row conv = make_row(RL_ACTIVITY_KERNEL, begin_ns + 100, begin_ns + 1100 + 10 * s, 1);
    conv.registers = 64, conv.grid[0] = s < steps ? 8 : 4, conv.block[0] = 128;
    add_row(trace, conv);
    add_row(trace, make_row(RL_ACTIVITY_KERNEL, begin_ns, begin_ns + 50, 0));
    if (s == steps) break; /* the shorter last step */
    add_row(trace, make_row(RL_ACTIVITY_KERNEL, begin_ns + 2000, begin_ns + 2020, 2));
    add_row(trace, make_row(RL_ACTIVITY_KERNEL, begin_ns + 3000, begin_ns + 3300, 1));
  }
}

static void kernels_are_attributed_to_their_launches(void **state) {
  (void)state;
  rl_records trace_without_graphs = {0}, trace = {0}, results = {0};
  rl_launch_map *launch_map;
  add_trace_without_graphs(&trace_without_graphs);
  add_graph_trace(&trace, 3);
  assert_int_equal(rl_launch_map_build(&trace_without_graphs, launches, LAUNCH_COUNT, &launch_map, NULL), 0);
  rl_kernel_summary_options options = {.launch_map = launch_map,
                                       .expected = launches,
                                       .expected_count = LAUNCH_COUNT,
                                       .epoch_us = 100,
                                       .occupancy = half_occupancy};
  assert_int_equal(rl_timeline_summarize_kernels(&trace, &options, &results, NULL), 0);
  assert_int_equal(results.kernel_count, 4);
  const rl_kernel *gather = &results.kernels[0], *conv = &results.kernels[1], *relu = &results.kernels[2],
                  *fc = &results.kernels[3];
  assert_string_equal(gather->launch, "gather"), assert_string_equal(gather->phase, "data");
  assert_int_equal(gather->launches, 4), assert_close(gather->total_us, 0.2);
  assert_string_equal(conv->launch, "conv"), assert_string_equal(conv->name, "gemm_k");
  assert_int_equal(conv->launches, 4), assert_int_equal(conv->ordinal, 1);
  assert_close(conv->min_us, 1.0), assert_close(conv->median_us, 1.015), assert_close(conv->max_us, 1.03),
      assert_close(conv->total_us, 4.06);
  assert_close(conv->share_ratio, 0.0406), assert_close(conv->registers_per_thread, 64);
  assert_close(conv->theoretical_occupancy_ratio, 0.5);
  assert_int_equal(conv->grid_x, 8), assert_int_equal(conv->block_x, 128);
  assert_non_null(strstr(conv->reason, "differ between launches"));
  assert_string_equal(relu->launch, "relu"), assert_string_equal(relu->reason, "");
  assert_string_equal(fc->launch, "fc"), assert_string_equal(fc->name, "gemm_k");
  assert_int_equal(fc->launches, 3), assert_close(fc->median_us, 0.3);
  rl_launch_map_free(launch_map);
  rl_records_clear(&trace_without_graphs), rl_records_clear(&trace), rl_records_clear(&results);
}

/* Two launches of one name in a step have a summary for each configuration, as one launch that runs its kernel twice has. */
static void launches_of_one_name_are_told_apart_by_configuration(void **state) {
  (void)state;
  static const rl_expected_launch relus[] = {{.name = "relu", .repeats = 2}, {.name = "relu", .repeats = 2}};
  rl_records trace_without_graphs = {0}, trace = {0}, results = {0};
  rl_launch_map *launch_map;
  add_name(&trace_without_graphs, "relu"), add_name(&trace_without_graphs, "relu_k"), add_name(&trace, "relu_k");
  for (int i = 0; i < 4; i++) {
    rl_activity_row call = make_row(RL_ACTIVITY_RUNTIME, 100 * i + 1, 100 * i + 2, 0);
    rl_activity_row kernel = make_row(RL_ACTIVITY_KERNEL, 100 * i + 3, 100 * i + 4, 1);
    call.correlation = kernel.correlation = (uint32_t)i + 1;
    kernel.grid[0] = i % 2 == 0 ? 8 : 4;
    kernel.name = 0;
    add_row(&trace, kernel);
    kernel.name = 1;
    if (i >= 2) continue;
    add_row(&trace_without_graphs, make_row(RL_ACTIVITY_NVTX_RANGE, 100 * i, 100 * i + 50, 0));
    add_row(&trace_without_graphs, call), add_row(&trace_without_graphs, kernel);
  }
  assert_int_equal(rl_launch_map_build(&trace_without_graphs, relus, 2, &launch_map, NULL), 0);
  rl_kernel_summary_options options = {.launch_map = launch_map, .expected = relus, .expected_count = 2, .epoch_us = 10};
  assert_int_equal(rl_timeline_summarize_kernels(&trace, &options, &results, NULL), 0);
  assert_int_equal(results.kernel_count, 2);
  assert_true(results.kernels[0].grid_x == 8 && results.kernels[0].launches == 2);
  assert_true(results.kernels[1].grid_x == 4 && results.kernels[1].launches == 2);
  rl_launch_map_free(launch_map);
  rl_records_clear(&trace_without_graphs), rl_records_clear(&trace), rl_records_clear(&results);
}

/* A launch that runs one kernel twice in a step has a summary for each configuration, and one if the configurations are equal.
 * The kernel of the last step, whose configuration is different, belongs to the first. */
static void executions_of_a_launch_are_told_apart_by_configuration(void **state) {
  (void)state;
  static const rl_expected_launch twice[] = {{.name = "conv", .sequence_index = 0, .repeats = 2},
                                             {.name = "conv", .sequence_index = 1, .repeats = 1}};
  for (uint32_t second_grid = 7; second_grid <= 8; second_grid++) {
    rl_records trace_without_graphs = {0}, trace = {0}, results = {0};
    rl_launch_map *launch_map;
    add_name(&trace_without_graphs, "conv"), add_name(&trace_without_graphs, "gemm_k"), add_name(&trace, "gemm_k");
    for (int i = 0; i < 3; i++) { /* two executions in the first range, one in the second */
      const int64_t begin_ns = i < 2 ? 10 * i : 100;
      rl_activity_row call = make_row(RL_ACTIVITY_RUNTIME, begin_ns + 1, begin_ns + 2, 0);
      rl_activity_row kernel = make_row(RL_ACTIVITY_KERNEL, begin_ns + 3, begin_ns + 4, 1);
      call.correlation = kernel.correlation = (uint32_t)i + 1;
      if (i != 1) add_row(&trace_without_graphs, make_row(RL_ACTIVITY_NVTX_RANGE, begin_ns, begin_ns + 50, 0));
      add_row(&trace_without_graphs, call), add_row(&trace_without_graphs, kernel);
    }
    static const int64_t duration_ns[] = {1000, 300, 1010, 310, 500};
    for (int i = 0; i < 5; i++) {
      rl_activity_row kernel = make_row(RL_ACTIVITY_KERNEL, 10000 * i, 10000 * i + duration_ns[i], 0);
      kernel.grid[0] = i == 4 ? 3 : i % 2 == 0 ? 8 : second_grid;
      add_row(&trace, kernel);
    }
    assert_int_equal(rl_launch_map_build(&trace_without_graphs, twice, 2, &launch_map, NULL), 0);
    rl_kernel_summary_options options = {.launch_map = launch_map, .expected = twice, .expected_count = 2, .epoch_us = 10};
    assert_int_equal(rl_timeline_summarize_kernels(&trace, &options, &results, NULL), 0);
    const rl_kernel *kernels = results.kernels;
    assert_int_equal(results.kernel_count, second_grid == 8 ? 1 : 2);
    assert_string_equal(kernels[0].launch, "conv"), assert_int_equal(kernels[0].grid_x, 8);
    assert_int_equal(kernels[0].launches, second_grid == 8 ? 5 : 3);
    assert_close(kernels[0].total_us, second_grid == 8 ? 3.12 : 2.51);
    if (second_grid == 7) {
      assert_string_equal(kernels[1].launch, "conv"), assert_int_equal(kernels[1].grid_x, 7);
      assert_int_equal(kernels[1].launches, 2), assert_close(kernels[1].total_us, 0.61);
      assert_null(strstr(kernels[1].reason, "differ between launches"));
    }
    rl_launch_map_free(launch_map);
    rl_records_clear(&trace_without_graphs), rl_records_clear(&trace), rl_records_clear(&results);
  }
}

static void an_unexpected_count_prevents_attribution(void **state) {
  (void)state;
  rl_records trace_without_graphs = {0}, trace = {0}, results = {0};
  rl_launch_map *launch_map;
  add_trace_without_graphs(&trace_without_graphs);
  add_graph_trace(&trace, 3);
  /* The trace has one GEMM more than expected. The counts of gather and relu match. */
  add_row(&trace, make_row(RL_ACTIVITY_KERNEL, 90000, 90010, 1));
  assert_int_equal(rl_launch_map_build(&trace_without_graphs, launches, LAUNCH_COUNT, &launch_map, NULL), 0);
  rl_kernel_summary_options options = {
      .launch_map = launch_map, .expected = launches, .expected_count = LAUNCH_COUNT, .epoch_us = NAN};
  assert_int_equal(rl_timeline_summarize_kernels(&trace, &options, &results, NULL), 0);
  assert_int_equal(results.kernel_count, 3);
  assert_string_equal(results.kernels[0].launch, "gather");
  assert_string_equal(results.kernels[1].launch, ""), assert_int_equal(results.kernels[1].launches, 8);
  assert_non_null(strstr(results.kernels[1].reason, "the workload's launch that issued this kernel is unknown"));
  assert_true(isnan(results.kernels[1].share_ratio) && isnan(results.kernels[1].theoretical_occupancy_ratio));
  rl_launch_map_free(launch_map);
  rl_records_clear(&trace_without_graphs), rl_records_clear(&trace), rl_records_clear(&results);
}

static rl_activity_row kernel_with_unknown(unsigned unknown) {
  rl_activity_row row = make_row(RL_ACTIVITY_KERNEL, 0, 1000, 0);
  row.grid[0] = row.block[0] = 1;
  row.registers = unknown & RL_UNKNOWN_REGISTERS ? 0 : 32;
  row.dynamic_shared_bytes = unknown & RL_UNKNOWN_DYNAMIC_SHARED ? 0 : 512;
  row.unknown = (uint8_t)unknown;
  return row;
}

/* Resources that the trace does not have are unknown, with the reason. A resource of 0 stays 0. */
static void resources_can_be_unknown(void **state) {
  (void)state;
  static const struct {
    unsigned unknown;
    double registers, static_shared, dynamic_shared;
    const char *reasons[2], *other_reason;
  } cases[] = {
      {0, 32, 0, 512, {"", ""}, "does not have"},
      {RL_UNKNOWN_REGISTERS, NAN, 0, 512, {"registers per thread: the trace does not have it", ""}, "shared memory"},
      {RL_UNKNOWN_STATIC_SHARED | RL_UNKNOWN_SHARED_PARTS, 32, NAN, NAN, {"shared memory: the trace has only the sum", ""}, "it"},
      {RL_UNKNOWN_STATIC_SHARED, 32, NAN, 512, {"static shared memory: the trace does not have it", ""}, "only the sum"},
      {RL_UNKNOWN_DYNAMIC_SHARED, 32, 0, NAN, {"dynamic shared memory: the trace does not have it", ""}, "only the sum"},
      {RL_UNKNOWN_ALL & ~RL_UNKNOWN_SHARED_PARTS,
       NAN,
       NAN,
       NAN,
       {"registers per thread: the trace does not have it", "shared memory: the trace does not have it"},
       "only the sum"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_records trace = {0}, results = {0};
    add_name(&trace, "kernel");
    add_row(&trace, kernel_with_unknown(cases[i].unknown));
    rl_kernel_summary_options options = {.epoch_us = 10, .missing_values_reason = "the trace has no theoretical occupancy"};
    assert_int_equal(rl_timeline_summarize_kernels(&trace, &options, &results, NULL), 0);
    const rl_kernel *kernel = results.kernels;
    const double found[] = {kernel->registers_per_thread, kernel->static_shared_bytes, kernel->dynamic_shared_bytes};
    const double expected[] = {cases[i].registers, cases[i].static_shared, cases[i].dynamic_shared};
    for (int k = 0; k < 3; k++) assert_true(isnan(expected[k]) ? isnan(found[k]) : found[k] == expected[k]);
    for (int k = 0; k < 2; k++) assert_non_null(strstr(kernel->reason, cases[i].reasons[k]));
    assert_null(strstr(kernel->reason, cases[i].other_reason));
    assert_non_null(strstr(kernel->reason, "the workload's launch that issued this kernel is unknown"));
    rl_records_clear(&trace), rl_records_clear(&results);
  }
}

static void spans_are_attributed_by_their_name(void **state) {
  (void)state;
  rl_records trace = {0}, results = {0};
  add_name(&trace, "conv"), add_name(&trace, "unheard_of");
  add_row(&trace, make_row(RL_ACTIVITY_CPU_SPAN, 0, 2000, 0));
  add_row(&trace, make_row(RL_ACTIVITY_CPU_SPAN, 3000, 7000, 0));
  add_row(&trace, make_row(RL_ACTIVITY_CPU_SPAN, 8000, 8001, 1));
  rl_kernel_summary_options options = {
      .expected = launches, .expected_count = LAUNCH_COUNT, .epoch_us = 10, .missing_values_reason = "a CPU launch"};
  assert_int_equal(rl_timeline_summarize_kernels(&trace, &options, &results, NULL), 0);
  assert_int_equal(results.kernel_count, 2);
  assert_string_equal(results.kernels[0].launch, "conv"), assert_string_equal(results.kernels[0].phase, "forward");
  assert_close(results.kernels[0].median_us, 3), assert_close(results.kernels[0].share_ratio, 0.6);
  assert_true(isnan(results.kernels[0].registers_per_thread));
  assert_string_equal(results.kernels[0].reason, "a CPU launch");
  assert_string_equal(results.kernels[1].launch, "");
  rl_records_clear(&trace), rl_records_clear(&results);
}

static void an_empty_trace_has_no_kernels(void **state) {
  (void)state;
  rl_records none = {0}, results = {0};
  rl_launch_map *launch_map;
  assert_int_equal(rl_launch_map_build(&none, NULL, 0, &launch_map, NULL), 0);
  rl_kernel_summary_options options = {.launch_map = launch_map, .epoch_us = 1};
  assert_int_equal(rl_timeline_summarize_kernels(&none, &options, &results, NULL), 0);
  assert_int_equal(results.kernel_count, 0);
  rl_launch_map_free(launch_map);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(median_of_odd_and_even_counts),
                                     cmocka_unit_test(one_outlier_does_not_change_the_spread),
                                     cmocka_unit_test(values_that_are_not_finite_are_ignored),
                                     cmocka_unit_test(student_quantiles_equal_printed_tables),
                                     cmocka_unit_test(overlapping_work_counts_once),
                                     cmocka_unit_test(kernels_are_attributed_to_their_launches),
                                     cmocka_unit_test(launches_of_one_name_are_told_apart_by_configuration),
                                     cmocka_unit_test(executions_of_a_launch_are_told_apart_by_configuration),
                                     cmocka_unit_test(an_unexpected_count_prevents_attribution),
                                     cmocka_unit_test(resources_can_be_unknown),
                                     cmocka_unit_test(spans_are_attributed_by_their_name),
                                     cmocka_unit_test(an_empty_trace_has_no_kernels)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
