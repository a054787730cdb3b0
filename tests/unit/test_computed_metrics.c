/* Tests the metrics that the raw page computes from collected ones. tests/api/test_report.py compares their values with ncu's. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/computed_metrics.h"
#include "model/catalogue.h"

enum { MAX_LISTED = 512 };

typedef struct listing {
  char names[MAX_LISTED][RL_COMPUTED_METRIC_NAME_SIZE];
  int count;
  int stop_at; /* the count at which append_name returns -1; 0: never */
} listing;

static int append_name(void *context, const char *name) {
  listing *listed = context;
  assert_true(listed->count < MAX_LISTED);
  snprintf(listed->names[listed->count++], sizeof *listed->names, "%s", name);
  return listed->count == listed->stop_at ? -1 : 0;
}

static bool lists(const listing *listed, const char *name) {
  for (int i = 0; i < listed->count; i++)
    if (strcmp(listed->names[i], name) == 0) return true;
  return false;
}

/* Returns the value of a computed metric; NAN if no computed metric has the name, or if its inputs are unknown. */
static double computed_value(const char *name, const rl_metric_values *values) {
  rl_computed_metric metric;
  return rl_computed_metric_find(name, &metric) ? rl_computed_metric_value(&metric, values) : NAN;
}

static void assert_unit(const char *name, const char *expected) {
  rl_computed_metric metric;
  assert_true(rl_computed_metric_find(name, &metric));
  assert_string_equal(metric.unit, expected);
}

static void percentages_of_sums_are_those_of_averages(void **state) {
  static const char *const names[] = {"a__x.avg.pct_of_peak_sustained_elapsed", "b__x.avg.pct_of_peak_sustained_active",
                                      "b__x.sum.pct_of_peak_sustained_active"};
  static const rl_metric_value items[] = {{"a__x.avg.pct_of_peak_sustained_elapsed", 12.5, NULL}};
  const rl_metric_values values = {items, 1};
  listing listed = {.count = 0};
  (void)state;
  assert_int_equal(rl_computed_metrics_list(names, 3, append_name, &listed), 0);
  assert_int_equal(listed.count, 1); /* the sum of b__x was collected, so it is not computed */
  assert_string_equal(listed.names[0], "a__x.sum.pct_of_peak_sustained_elapsed");
  assert_true(computed_value(listed.names[0], &values) == 12.5);
  assert_unit(listed.names[0], "%");
  assert_true(isnan(computed_value("b__x.sum.pct_of_peak_sustained_active", &values)));
}

static void rates_need_the_duration_and_a_counter_with_rates(void **state) {
  static const char *const with_rate[] = {"dram__bytes.avg", "dram__bytes.sum.per_second", "gpu__time_duration.sum"};
  static const char *const without_rate[] = {"dram__bytes.avg", "gpu__time_duration.sum"};
  static const rl_metric_value items[] = {{"dram__bytes.avg", 3000, NULL}, {"gpu__time_duration.sum", 1500, NULL}};
  const rl_metric_values values = {items, 2};
  listing some = {.count = 0}, none = {.count = 0};
  (void)state;
  rl_computed_metrics_list(with_rate, 3, append_name, &some);
  assert_true(lists(&some, "dram__bytes.avg.per_second") && lists(&some, "gpu__time_duration.max"));
  assert_true(!lists(&some, "gpu__time_duration.sum.per_second") && !lists(&some, "dram__bytes.sum.per_second"));
  rl_computed_metrics_list(without_rate, 2, append_name, &none);
  assert_false(lists(&none, "dram__bytes.avg.per_second"));
  assert_true(fabs(computed_value("dram__bytes.avg.per_second", &values) - 2e9) < 1);
  assert_true(computed_value("gpu__time_duration.max", &values) == 1500);
  assert_unit("dram__bytes_read.sum.per_second", "byte/s");
  assert_unit("sm__cycles_active.avg.per_second", "hz");
  assert_unit("gpu__time_duration.max", "ns");
}

static void rows_with_expressions_need_all_inputs(void **state) {
  static const char *const complete[] = {"sass__inst_executed_register_spilling"};
  static const rl_metric_value items[] = {{"sass__inst_executed_register_spilling", 7, NULL}};
  const rl_metric_values values = {items, 1};
  listing listed = {.count = 0};
  (void)state;
  rl_computed_metrics_list(complete, 1, append_name, &listed);
  assert_true(lists(&listed, "derived__local_spilling_requests"));
  assert_false(lists(&listed, "derived__local_spilling_requests_pct")); /* needs four more counters */
  assert_true(computed_value("derived__local_spilling_requests", &values) == 7);
}

static void allocations_are_rounded_up(void **state) {
  static const struct {
    double registers, registers_allocated, driver_bytes, dynamic_bytes, shared_bytes_allocated;
  } cases[] = {{16, 16, 1024, 0, 1024}, {17, 24, 1024, 1, 1152}, {1, 8, 0, 128, 128}, {255, 256, 1024, 129, 1280}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const rl_metric_value items[] = {{"launch__registers_per_thread", cases[i].registers, NULL},
                                     {"launch__shared_mem_per_block_driver", cases[i].driver_bytes, NULL},
                                     {"launch__shared_mem_per_block_dynamic", cases[i].dynamic_bytes, NULL},
                                     {"launch__shared_mem_per_block_static", 0, NULL}};
    const rl_metric_values values = {items, 4};
    assert_true(computed_value("launch__registers_per_thread_allocated", &values) == cases[i].registers_allocated);
    assert_true(computed_value("launch__shared_mem_per_block_allocated", &values) == cases[i].shared_bytes_allocated);
  }
}

static void a_listing_of_the_catalogue_has_no_duplicates_and_can_be_stopped(void **state) {
  const char **names = calloc(rl_raw_metric_count, sizeof *names);
  listing *listed = calloc(1, sizeof *listed), *stopped = calloc(1, sizeof *stopped);
  (void)state;
  for (size_t i = 0; i < rl_raw_metric_count; i++) names[i] = rl_raw_metrics[i].name;
  assert_int_equal(rl_computed_metrics_list(names, rl_raw_metric_count, append_name, listed), 0);
  assert_true(listed->count > 100);
  for (int i = 0; i < listed->count; i++)
    for (int other = 0; other < i; other++) assert_string_not_equal(listed->names[i], listed->names[other]);
  stopped->stop_at = 3;
  assert_int_equal(rl_computed_metrics_list(names, rl_raw_metric_count, append_name, stopped), -1);
  assert_int_equal(stopped->count, 3);
  free(names), free(listed), free(stopped);
}

/* If the sum or the maximum of a counter over its units is 0, all its rollups are 0. A minimum of 0 or a peak rate of 0 leaves
 * them unknown. */
static void rollups_of_a_counter_that_counted_nothing_are_zero(void **state) {
  static const struct {
    const char *collected;
    double value, expected;
  } cases[] = {{"lts__t_sectors.sum", 0, 0},
               {"lts__t_sectors.sum", 5, NAN},
               {"lts__t_sectors.max.pct_of_peak_sustained_elapsed", 0, 0},
               {"lts__t_sectors.min", 0, NAN},
               {"lts__t_sectors.sum.peak_sustained", 0, NAN},
               {"lts__t_sectors_op_read.sum", 0, NAN}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const rl_metric_value items[] = {
        {"a__first.sum", 0, NULL}, {cases[i].collected, cases[i].value, NULL}, {"z__last.sum", 0, NULL}};
    const rl_metric_values values = {items, 3};
    const double found = computed_value("lts__t_sectors.avg", &values);
    assert_true(found == cases[i].expected || (isnan(found) && isnan(cases[i].expected)));
    assert_true(isnan(computed_value("sm__sass_thread_inst_executed_op_dfma_pred_on.avg.peak_sustained", &values)));
  }
}

static void names_without_inputs_or_counter_have_no_value(void **state) {
  const rl_metric_values none = {NULL, 0};
  (void)state;
  assert_true(isnan(computed_value("sm__cycles_active.avg", &none)));
  assert_true(isnan(computed_value(".sum.per_second", &none)));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(percentages_of_sums_are_those_of_averages),
      cmocka_unit_test(rates_need_the_duration_and_a_counter_with_rates),
      cmocka_unit_test(rows_with_expressions_need_all_inputs),
      cmocka_unit_test(allocations_are_rounded_up),
      cmocka_unit_test(a_listing_of_the_catalogue_has_no_duplicates_and_can_be_stopped),
      cmocka_unit_test(rollups_of_a_counter_that_counted_nothing_are_zero),
      cmocka_unit_test(names_without_inputs_or_counter_have_no_value),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
