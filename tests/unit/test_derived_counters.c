/* Tests which counters of L2 are sums of other counters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "worker/code/derived_counters.h"

#define ATOMICS rl_instruction_classes_of_metric("lts__t_sectors_srcunit_tex_op_red.sum")
#define EVICTION rl_instruction_classes_of_metric("lts__t_sectors_srcunit_tex_op_read_evict_first_lookup_hit.sum")
#define OTHER_DEVICES rl_instruction_classes_of_metric("lts__t_sectors_srcunit_tex_aperture_peer_lookup_miss.sum")

/* Returns the terms as text: "+a +b -c"; "" if the counter has none. */
static const char *terms_of(const char *counter, rl_instruction_classes absent) {
  static char text[RL_MAX_TERMS * (RL_METRIC_NAME_SIZE + 2)];
  rl_counter_terms terms;
  size_t used = 0;
  text[0] = '\0';
  if (!rl_counter_terms_find(counter, absent, &terms)) return text;
  assert_non_null(terms.reason);
  for (size_t t = 0; t < terms.count; t++)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%c%s", t > 0 ? " " : "", t < terms.added_count ? '+' : '-',
                             terms.names[t]);
  return text;
}

static void requests_are_reads_and_writes_without_atomics(void **state) {
  (void)state;
  static const char counter[] = "lts__t_requests_srcunit_tex.sum";
  assert_string_equal(terms_of(counter, rl_all_instruction_classes("GH100")),
                      "+lts__t_requests_srcunit_tex_op_read.sum +lts__t_requests_srcunit_tex_op_write.sum");
  assert_string_equal(terms_of(counter, rl_all_instruction_classes("GH100") & ~ATOMICS), "");
}

static void misses_are_in_the_memory_of_the_device_the_host_or_a_peer(void **state) {
  (void)state;
  const rl_instruction_classes all = rl_all_instruction_classes("GH100");
  assert_string_equal(terms_of("lts__t_sectors_aperture_device_lookup_miss.sum", EVICTION),
                      "+lts__t_sectors_lookup_miss.sum -lts__t_sectors_aperture_sysmem_lookup_miss.sum "
                      "-lts__t_sectors_aperture_peer_lookup_miss.sum");
  assert_string_equal(terms_of("lts__t_sectors_srcunit_tex_aperture_device_lookup_miss.sum", all & ~ATOMICS),
                      "+lts__t_sectors_srcunit_tex_lookup_miss.sum -lts__t_sectors_srcunit_tex_aperture_sysmem_lookup_miss.sum");
  assert_string_equal(terms_of("lts__t_sectors_srcunit_tex_aperture_device_lookup_miss.sum", all & ~OTHER_DEVICES), "");
}

static void a_counter_may_equal_one_that_is_a_sum(void **state) {
  (void)state;
  assert_string_equal(terms_of("lts__t_sectors_srcunit_tex_evict_normal_lookup_hit.sum", rl_all_instruction_classes("GH100")),
                      "+lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum +lts__t_sectors_srcunit_tex_op_write_lookup_hit.sum");
  assert_string_equal(terms_of("lts__t_sectors_srcunit_tex_evict_normal_lookup_hit.sum", EVICTION),
                      "+lts__t_sectors_srcunit_tex_lookup_hit.sum");
}

/* Only totals are sums: a maximum or a share of the peak is not. */
static void other_rollups_are_collected(void **state) {
  (void)state;
  static const char *const counters[] = {
      "lts__t_requests_srcunit_tex.max", "lts__t_requests_srcunit_tex.avg.pct_of_peak_sustained_elapsed",
      "lts__t_sectors_srcunit_tex.sum", "lts__t_sectors_lookup_miss.sum", "lts__t_sectors_op_read_lookup_hit.sum"};
  for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
    assert_string_equal(terms_of(counters[i], rl_all_instruction_classes("GH100")), "");
}

static void sums_of_other_chips_are_collected(void **state) {
  (void)state;
  assert_string_equal(terms_of("lts__t_requests_srcunit_tex.sum", rl_all_instruction_classes("GA100")), "");
  assert_string_equal(terms_of("lts__t_sectors_aperture_device_lookup_miss.sum", 0), "");
}

static void terms_have_no_terms(void **state) {
  (void)state;
  static const char *const counters[] = {"lts__t_requests_srcunit_tex.sum",
                                         "lts__t_sectors_srcunit_tex_lookup_hit.sum",
                                         "lts__t_sectors_srcunit_tex_op_write_lookup_miss.sum",
                                         "lts__t_sectors_srcunit_tex_aperture_device_op_write_lookup_miss.sum",
                                         "lts__t_sectors_srcunit_tex_aperture_device_op_read_lookup_miss.sum",
                                         "lts__t_sectors_srcunit_tex_aperture_device_lookup_miss.sum",
                                         "lts__t_sectors_srcunit_gcc_aperture_device_lookup_miss.sum",
                                         "lts__t_sectors_srcunit_ltcfabric_aperture_device_lookup_miss.sum",
                                         "lts__t_sectors_aperture_device_lookup_miss.sum",
                                         "lts__t_sectors_srcunit_ltcfabric_evict_normal_lookup_miss.sum"};
  for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
    rl_counter_terms terms, of_term;
    assert_true(rl_counter_terms_find(counters[i], rl_all_instruction_classes("GH100"), &terms));
    assert_true(terms.count >= 2 && terms.added_count >= 1);
    for (size_t t = 0; t < terms.count; t++)
      assert_false(rl_counter_terms_find(terms.names[t], rl_all_instruction_classes("GH100"), &of_term));
  }
}

#define SUM(added_count, reason, ...) \
  rl_counter_terms_sum((const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double), added_count, reason)

static void a_sum_adds_and_subtracts_its_terms(void **state) {
  (void)state;
  const char *reason = "";
  assert_true(SUM(2, &reason, 3, 4, 5) == 2 && reason == NULL);
  assert_true(SUM(3, &reason, 3, 4, 5) == 12 && reason == NULL);
  assert_true(SUM(1, &reason, 0, 0, 0) == 0 && reason == NULL);
}

/* Slightly negative differences of counters of different passes are 0; clearly negative ones have no value. */
static void contradictory_terms_have_no_sum(void **state) {
  (void)state;
  const char *reason = "";
  assert_true(SUM(1, &reason, 1000, 600, 410) == 0 && reason == NULL);
  assert_true(isnan(SUM(1, &reason, 1000, 600, 411)));
  assert_non_null(strstr(reason, "contradict each other"));
  assert_true(isnan(SUM(1, &reason, 0, 1)));
  assert_non_null(strstr(reason, "contradict each other"));
}

static void a_sum_without_one_of_its_terms_has_no_value(void **state) {
  (void)state;
  const char *reason = NULL;
  assert_true(isnan(SUM(1, &reason, 1000, NAN)));
  assert_string_equal(reason, "a counter from which it is computed has no value");
  assert_true(isnan(SUM(1, &reason, NAN, 1000)));
  assert_string_equal(reason, "a counter from which it is computed has no value");
}

/* 129.113 is what a histogram on an H200 had whose stores were counted in two passes. */
static void a_hit_rate_above_100_percent_has_no_value(void **state) {
  (void)state;
  assert_non_null(strstr(rl_counter_contradiction("lts__t_sector_op_write_hit_rate.pct", 129.113), "contradict each other"));
  assert_non_null(rl_counter_contradiction("l1tex__t_sector_hit_rate.pct", 101.1));
  assert_null(rl_counter_contradiction("lts__t_sector_op_write_hit_rate.pct", 100.26));
  assert_null(rl_counter_contradiction("lts__t_sector_hit_rate.pct", 99.8));
  assert_null(rl_counter_contradiction("lts__t_sector_hit_rate.pct", NAN));
  assert_null(rl_counter_contradiction("lts__t_sectors_lookup_hit.sum", 129));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(requests_are_reads_and_writes_without_atomics),
                                     cmocka_unit_test(misses_are_in_the_memory_of_the_device_the_host_or_a_peer),
                                     cmocka_unit_test(a_counter_may_equal_one_that_is_a_sum),
                                     cmocka_unit_test(other_rollups_are_collected),
                                     cmocka_unit_test(sums_of_other_chips_are_collected),
                                     cmocka_unit_test(terms_have_no_terms),
                                     cmocka_unit_test(a_sum_adds_and_subtracts_its_terms),
                                     cmocka_unit_test(contradictory_terms_have_no_sum),
                                     cmocka_unit_test(a_sum_without_one_of_its_terms_has_no_value),
                                     cmocka_unit_test(a_hit_rate_above_100_percent_has_no_value)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
