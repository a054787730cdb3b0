/* Tests the search for independent launches: steps of a test workload on both sides of each condition, and the layer with the
 * times that were recorded on an H200. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/independent_launches.h"
#include "analyze/rules.h"
#include "layer/layer.h"

enum { A = 1, B = 2, C = 4, D = 8, E = 16, SMS = 100, READ_BYTES_PER_S = 1000000000 };

/* The launches of the test workload. "first" and "second" read A and do not depend on each other. Each launch takes as long as
 * its name and case say; its bytes need half of the memory's rate. */
static const struct {
  const char *name;
  uint32_t reads, writes;
} declared[] = {{"first", A, B},        {"second", A, C},   {"third", A, D},    {"reads_first", B, D},
                {"writes_first", A, B}, {"writes_a", E, A}, {"joins", B | C, E}};
static double declared_bytes; /* of each launch */

static bool test_launch_data(const void *params, const char *launch, rl_launch_data *data) {
  (void)params;
  for (size_t i = 0; i < sizeof declared / sizeof *declared; i++) {
    if (strcmp(declared[i].name, launch) != 0) continue;
    *data = (rl_launch_data){declared[i].reads, declared[i].writes, declared_bytes};
    return true;
  }
  return false;
}

static const rl_workload declaring = {.name = "declaring", .launch_data = test_launch_data}, silent = {.name = "silent"};
static const rl_device_capacity device = {SMS, 2048, READ_BYTES_PER_S};

/* Returns a kernel of blocks of 1024 threads, of which the device holds 2 · SMS at once. */
static rl_traced_kernel kernel_of(const char *launch, double total_us, double blocks) {
  rl_traced_kernel kernel = {
      .executions = 10, .total_us = total_us, .blocks = blocks, .block_threads = 1024, .occupancy_ratio = 1};
  snprintf(kernel.launch, sizeof kernel.launch, "%s", launch);
  snprintf(kernel.name, sizeof kernel.name, "kernel of %s", launch);
  return kernel;
}

static void find(const rl_traced_kernel *kernels, size_t count, rl_independent_launches *found) {
  rl_independent_launches_find(kernels, count, &declaring, NULL, &device, found);
}

/* Returns the finding of the rule in a window of window_us. */
static bool has_finding(const rl_independent_launches *found, double window_us, rl_finding *finding) {
  rl_metric_value metrics[RL_INDEPENDENT_METRIC_COUNT];
  const size_t count = rl_independent_metrics(found, (int64_t)(1000 * window_us), metrics);
  for (size_t i = 1; i < count; i++) assert_true(strcmp(metrics[i - 1].name, metrics[i].name) < 0);
  for (size_t i = 0; i < count; i++) assert_true(isnan(metrics[i].value) == (metrics[i].reason != NULL));
  return rl_rule_apply(rl_rule_find("timeline_independent_launches"), &(rl_metric_values){metrics, count}, finding);
}

static void assert_near(double found, double expected) { assert_true(fabs(found - expected) <= 1e-9 * fabs(expected)); }

/* Two launches of 1000 us fill 60 and 20 % of the device: together they take at least 1000 us, as one of them alone. */
static void two_launches_that_leave_the_device_unfilled_are_found(void **state) {
  (void)state;
  const rl_traced_kernel kernels[] = {kernel_of("first", 1000, 120), kernel_of("second", 1000, 40), kernel_of("joins", 50, 300)};
  rl_independent_launches found;
  rl_finding finding;
  declared_bytes = 1000; /* 10 MB/s: 1 % of the memory's rate */
  find(kernels, 3, &found);
  assert_string_equal(found.reason, "");
  assert_int_equal(found.launch_count, 3);
  assert_int_equal(found.group_count, 1);
  assert_int_equal(found.groups[0].first, 0);
  assert_int_equal(found.groups[0].count, 2);
  assert_near(found.groups[0].total_us, 2000);
  assert_near(found.groups[0].concurrent_us, 1000);
  assert_string_equal(found.launches[0].kernel, "kernel of first");
  assert_near(found.launches[0].blocks, 120);
  assert_near(found.launches[0].resident_blocks, 200);
  assert_true(has_finding(&found, 10000, &finding));
  assert_near(finding.speedup_pct, 50);
  assert_false(finding.global); /* the device is busy: the estimate is not of idle time */
  assert_true(strstr(finding.message, "2 successive launches of the step") && strstr(finding.message, "20.0 % of the window"));
  assert_false(has_finding(&found, 41000, &finding)); /* 4.9 % of the window */
}

/* Each of the three estimates of the time can be the longest. */
static void the_longest_estimate_counts(void **state) {
  (void)state;
  rl_independent_launches found;
  declared_bytes = 1000;
  const rl_traced_kernel blocks[] = {kernel_of("first", 1000, 160), kernel_of("second", 1000, 160)};
  find(blocks, 2, &found);
  assert_near(found.groups[0].concurrent_us, 1600); /* 0.8 + 0.8 of the device */
  const rl_traced_kernel long_and_short[] = {kernel_of("first", 3000, 20), kernel_of("second", 500, 20)};
  find(long_and_short, 2, &found);
  assert_near(found.groups[0].concurrent_us, 3000);
  declared_bytes = 60000; /* 600 MB/s: 60 % of the memory's rate */
  const rl_traced_kernel memory[] = {kernel_of("first", 1000, 20), kernel_of("second", 1000, 20)};
  find(memory, 2, &found);
  assert_near(found.groups[0].concurrent_us, 1200);
}

/* Returns how many launches the groups of these kernels contain. */
static size_t grouped(const rl_traced_kernel *kernels, size_t count) {
  rl_independent_launches found;
  size_t launches = 0;
  find(kernels, count, &found);
  assert_string_equal(found.reason, "");
  for (size_t g = 0; g < found.group_count; g++) launches += found.groups[g].count;
  return launches;
}

static void launches_that_fill_the_device_are_not_found(void **state) {
  (void)state;
  declared_bytes = 1000;
  assert_int_equal(grouped((rl_traced_kernel[]){kernel_of("first", 1000, 40), kernel_of("second", 1000, 179)}, 2), 2);
  assert_int_equal(grouped((rl_traced_kernel[]){kernel_of("first", 1000, 40), kernel_of("second", 1000, 181)}, 2), 0);
  /* a second kernel of the launch fills the device for a short time, or for most of the launch's time */
  assert_int_equal(
      grouped((rl_traced_kernel[]){kernel_of("first", 1000, 40), kernel_of("first", 1, 200), kernel_of("second", 1000, 40)}, 3),
      2);
  assert_int_equal(
      grouped((rl_traced_kernel[]){kernel_of("first", 100, 40), kernel_of("first", 1000, 200), kernel_of("second", 1000, 40)}, 3),
      0);
  /* a launch between them fills the device */
  assert_int_equal(
      grouped((rl_traced_kernel[]){kernel_of("first", 1000, 40), kernel_of("third", 1000, 200), kernel_of("second", 1000, 40)},
              3),
      0);
}

static void launches_that_fill_the_memory_are_not_found(void **state) {
  (void)state;
  const rl_traced_kernel kernels[] = {kernel_of("first", 1000, 40), kernel_of("second", 1000, 40)};
  declared_bytes = 69900;
  assert_int_equal(grouped(kernels, 2), 2);
  declared_bytes = 70100;
  assert_int_equal(grouped(kernels, 2), 0);
}

static void launches_that_depend_on_each_other_are_not_found(void **state) {
  (void)state;
  declared_bytes = 1000;
  static const char *const dependent[] = {"reads_first", "writes_first", "writes_a"}; /* RAW, WAW, WAR */
  for (size_t i = 0; i < 3; i++)
    assert_int_equal(grouped((rl_traced_kernel[]){kernel_of("first", 1000, 40), kernel_of(dependent[i], 1000, 40)}, 2), 0);
  /* "joins" needs both, so it ends their group; "third" does not depend on "joins" */
  assert_int_equal(grouped((rl_traced_kernel[]){kernel_of("first", 1000, 40), kernel_of("second", 1000, 40),
                                                kernel_of("joins", 1000, 40), kernel_of("third", 1000, 40)},
                           4),
                   4);
}

static void a_small_gain_is_not_found(void **state) {
  (void)state;
  declared_bytes = 1000;
  assert_int_equal(grouped((rl_traced_kernel[]){kernel_of("first", 1000, 20), kernel_of("second", 112, 20)}, 2), 2);
  assert_int_equal(grouped((rl_traced_kernel[]){kernel_of("first", 1000, 20), kernel_of("second", 110, 20)}, 2), 0);
}

/* The finding is about the group that saves the most: 500 us of "third" and "first" again, not 300 us of "first" and "second". */
static void the_finding_is_about_one_group(void **state) {
  (void)state;
  const rl_traced_kernel kernels[] = {kernel_of("first", 500, 40), kernel_of("second", 300, 40), kernel_of("joins", 1000, 40),
                                      kernel_of("third", 500, 40)};
  rl_independent_launches found;
  rl_finding finding;
  declared_bytes = 1000;
  find(kernels, 4, &found);
  assert_int_equal(found.group_count, 2);
  assert_true(rl_independent_launches_largest(&found) == &found.groups[1]);
  assert_true(has_finding(&found, 10000, &finding));
  assert_near(finding.speedup_pct, 100.0 * 500 / 1500);
  assert_true(strstr(finding.message, "2 successive launches") && strstr(finding.message, "15.0 % of the window"));
}

/* A launch that executes its kernel twice in each of 10 steps reads its data 10 times. */
static void data_is_read_once_in_a_step(void **state) {
  (void)state;
  rl_traced_kernel kernels[] = {kernel_of("first", 1000, 40), kernel_of("second", 1000, 40)};
  rl_independent_launches found;
  kernels[1].executions = 20;
  declared_bytes = 40000; /* 40 % of the memory's rate */
  find(kernels, 2, &found);
  assert_near(found.steps, 10);
  assert_near(found.launches[1].memory_ratio, 0.4);
}

static void assert_reason(const rl_traced_kernel *kernels, size_t count, const rl_workload *workload, rl_device_capacity capacity,
                          const char *reason) {
  rl_independent_launches found;
  rl_finding finding;
  rl_independent_launches_find(kernels, count, workload, NULL, &capacity, &found);
  if (strstr(found.reason, reason) == NULL) fail_msg("\"%s\", not \"%s\"", found.reason, reason);
  assert_int_equal(found.group_count, 0);
  assert_false(has_finding(&found, 100, &finding));
}

static void what_is_unknown_has_a_reason(void **state) {
  (void)state;
  const rl_traced_kernel kernels[] = {kernel_of("first", 1000, 40), kernel_of("second", 1000, 40)};
  rl_traced_kernel of_unknown_launch = kernel_of("", 1000, 40), undeclared = kernel_of("fourth", 1000, 40),
                   without_occupancy = kernel_of("first", 1000, 40), many[RL_MAX_STEP_LAUNCHES + 1];
  declared_bytes = 1000;
  without_occupancy.occupancy_ratio = NAN;
  for (int i = 0; i <= RL_MAX_STEP_LAUNCHES; i++) {
    many[i] = kernel_of("launch", 1, 1);
    snprintf(many[i].launch, sizeof many[i].launch, "launch %d", i);
  }
  assert_reason(kernels, 2, &silent, device, "launches of the workload silent do not declare");
  assert_reason(kernels, 2, &declaring, (rl_device_capacity){SMS, 2048, NAN}, "run a job of the kind ceilings");
  assert_reason(kernels, 2, &declaring, (rl_device_capacity){SMS, NAN, READ_BYTES_PER_S}, "threads on a multiprocessor");
  assert_reason(kernels, 2, &declaring, (rl_device_capacity){NAN, 2048, READ_BYTES_PER_S}, "threads on a multiprocessor");
  assert_reason(&of_unknown_launch, 1, &declaring, device, "which launch executes the kernel kernel of");
  assert_reason(&without_occupancy, 1, &declaring, device, "the occupancy of the kernel kernel of first is unknown");
  assert_reason(many, RL_MAX_STEP_LAUNCHES + 1, &declaring, device, "more than 64 launches");
  assert_reason(&undeclared, 1, &declaring, device, "the launch fourth does not declare");
  assert_true(rl_multiprocessor_threads("9.0") == 2048 && isnan(rl_multiprocessor_threads(NULL)));
}

/* --- the layer on an H200 ---------------------------------------------------------------------------------------------- */

static const rl_device_capacity h200 = {132, 2048, 4.61e12};

/* blocks of 384 threads, of which a multiprocessor holds one */
static rl_traced_kernel product_of(const char *launch, double us, double blocks) {
  rl_traced_kernel kernel = kernel_of(launch, 10 * us, blocks);
  kernel.block_threads = 384;
  kernel.occupancy_ratio = 0.1875;
  return kernel;
}

/* In decode, q, k and v leave the device unfilled. Gate and up need 79 % of the memory's rate: two streams save 3 %
 * (docs/measurements/h200-layer.md). */
static void decode_has_three_independent_products(void **state) {
  (void)state;
  rl_layer_params params;
  rl_independent_launches found;
  rl_finding finding;
  rl_transformer_layer.defaults(&params);
  params.tokens = 1, params.cached_tokens = 2047;
  const rl_traced_kernel kernels[] = {
      product_of("norm1", 4.06, 1), product_of("q", 12.4, 96),       product_of("k", 12.4, 96),
      product_of("v", 12.4, 96),    product_of("rope", 2.4, 1),      product_of("attention", 14.1, 131),
      product_of("o", 13.1, 96),    product_of("residual1", 1.3, 2), product_of("norm2", 3.7, 1),
      product_of("gate", 24.9, 88), product_of("up", 24.3, 88),      product_of("silu_mul", 1.9, 6),
      product_of("down", 26.6, 96), product_of("residual2", 1.3, 2)};
  rl_independent_launches_find(kernels, 14, &rl_transformer_layer, &params, &h200, &found);
  assert_string_equal(found.reason, "");
  assert_int_equal(found.group_count, 1);
  assert_string_equal(found.launches[found.groups[0].first].name, "q");
  assert_int_equal(found.groups[0].count, 3);
  assert_near(found.groups[0].concurrent_us, 10 * 3 * 12.4 * 96 / 132);
  assert_true(has_finding(&found, 2000, &finding));
  assert_near(finding.speedup_pct, 100 * (1 - 96.0 / 132));
}

/* In prefill each product has a block on every multiprocessor. */
static void prefill_fills_the_device(void **state) {
  (void)state;
  rl_layer_params params;
  rl_independent_launches found;
  rl_finding finding;
  rl_transformer_layer.defaults(&params);
  const rl_traced_kernel kernels[] = {product_of("q", 91, 132), product_of("k", 91, 132), product_of("v", 91, 132),
                                      product_of("gate", 250, 132), product_of("up", 250, 132)};
  rl_independent_launches_find(kernels, 5, &rl_transformer_layer, &params, &h200, &found);
  assert_string_equal(found.reason, "");
  assert_int_equal(found.group_count, 0);
  assert_false(has_finding(&found, 1000, &finding));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(two_launches_that_leave_the_device_unfilled_are_found),
                                     cmocka_unit_test(the_longest_estimate_counts),
                                     cmocka_unit_test(launches_that_fill_the_device_are_not_found),
                                     cmocka_unit_test(launches_that_fill_the_memory_are_not_found),
                                     cmocka_unit_test(launches_that_depend_on_each_other_are_not_found),
                                     cmocka_unit_test(a_small_gain_is_not_found),
                                     cmocka_unit_test(the_finding_is_about_one_group),
                                     cmocka_unit_test(data_is_read_once_in_a_step),
                                     cmocka_unit_test(what_is_unknown_has_a_reason),
                                     cmocka_unit_test(decode_has_three_independent_products),
                                     cmocka_unit_test(prefill_fills_the_device)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
