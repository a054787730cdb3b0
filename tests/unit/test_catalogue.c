/* Tests properties of the catalogue that is generated from schema/metrics. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "model/catalogue.h"
#include "analyze/expression.h"
#include "model/metrics.h"
#include "model/records.h"
#include "section_bits.h"

static void raw_metrics_are_sorted_unique_and_fit_a_record(void **state) {
  (void)state;
  for (size_t i = 0; i < rl_raw_metric_count; i++) assert_true(strlen(rl_raw_metrics[i].name) < RL_METRIC_NAME_SIZE);
  for (size_t i = 1; i < rl_raw_metric_count; i++) assert_true(strcmp(rl_raw_metrics[i - 1].name, rl_raw_metrics[i].name) < 0);
}

static double look_up_in_section(void *context, const char *name) {
  const rl_raw_metric *metric = rl_raw_metric_find(name);
  if (!metric) fail_msg("%s is not a raw metric", name);
  if (!(metric->sections & *(const uint32_t *)context)) fail_msg("%s is not collected for its row's section", name);
  return 1;
}

static void sections_collect_the_metrics_of_their_expressions(void **state) {
  (void)state;
  assert_true(rl_section_count > 0 && rl_section_count < 32);
  for (size_t s = 0; s < rl_section_count; s++) {
    uint32_t mask = UINT32_C(1) << s;
    for (size_t r = 0; r < rl_sections[s].row_count; r++) {
      const rl_section_row *row = &rl_sections[s].rows[r];
      rl_error err = {0};
      double value = NAN;
      rl_scope scope = {look_up_in_section, &mask};
      if (rl_expression_evaluate(row->expression, strlen(row->expression), &scope, &value, &err) < 0)
        fail_msg("%s, %s: %s", rl_sections[s].id, row->name, err.message);
      assert_false(isnan(value));
    }
  }
}

static void rows_of_a_table_are_adjacent_and_have_unique_names(void **state) {
  (void)state;
  for (size_t s = 0; s < rl_section_count; s++)
    for (size_t a = 0; a < rl_sections[s].row_count; a++)
      for (size_t b = a + 1; b < rl_sections[s].row_count; b++) {
        const rl_section_row *x = &rl_sections[s].rows[a], *y = &rl_sections[s].rows[b];
        if (strcmp(x->table, y->table) != 0) continue;
        assert_string_equal(rl_sections[s].rows[b - 1].table, x->table);
        if (strcmp(x->name, y->name) == 0) fail_msg("%s, %s: %s twice", rl_sections[s].id, x->table, x->name);
      }
}

static void section_names_and_sets_match_the_sections(void **state) {
  (void)state;
  for (size_t i = 0; i < rl_section_count; i++) assert_string_equal(rl_section_names[i], rl_sections[i].id);
  assert_null(rl_section_names[rl_section_count]);
  for (size_t i = 0; i < rl_section_set_count; i++) assert_string_equal(rl_section_set_names[i], rl_section_sets[i].name);
  uint32_t basic =
      section_bit("SpeedOfLight") | section_bit("LaunchStats") | section_bit("Occupancy") | section_bit("WorkloadDistribution");
  assert_int_equal(rl_section_sets[0].sections, basic);
  assert_int_equal(rl_section_sets[1].sections & basic, basic);
  assert_int_equal(rl_section_sets[2].sections, (UINT32_C(1) << rl_section_count) - 1);
}

static void metrics_have_the_origin_of_their_name(void **state) {
  (void)state;
  static const struct {
    const char *name;
    rl_metric_origin origin;
  } known[] = {
      {"gpu__time_duration.sum", RL_ORIGIN_COUNTER},
      {"smsp__sass_branch_targets_threads_divergent.sum", RL_ORIGIN_COUNTER},
      {"launch__grid_size", RL_ORIGIN_LAUNCH},
      {"sm__maximum_warps_per_active_cycle_pct", RL_ORIGIN_LAUNCH},
      {"numa__id_cpu", RL_ORIGIN_DEVICE},
      {"smsp__pcsamp_sample_count", RL_ORIGIN_SAMPLING},
      {"sass__inst_executed_per_opcode", RL_ORIGIN_SASS},
      {"memory_l2_theoretical_sectors_global", RL_ORIGIN_SASS},
      {"lts__t_sectors.max", RL_ORIGIN_COUNTER},
      {"derived__pct_occupancy_per_block_size", RL_ORIGIN_LAUNCH},
      {"launch__kernel_name", RL_ORIGIN_NONE},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    const rl_raw_metric *metric = rl_raw_metric_find(known[i].name);
    assert_non_null(metric);
    assert_int_equal(metric->origin, known[i].origin);
    assert_int_equal(metric->reason != NULL, metric->origin == RL_ORIGIN_NONE);
  }
}

static void metrics_without_a_row_are_only_on_the_raw_page(void **state) {
  (void)state;
  static const struct {
    const char *name;
    bool only_on_raw_page;
  } known[] = {{"lts__t_sectors.max", true},
               {"launch__kernel_name", true},
               {"gpu__time_duration.sum", false},
               {"sm__cycles_active.max", false} /* a row's expression reads it */};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    assert_int_equal(rl_raw_metric_is_only_on_raw_page(rl_raw_metric_find(known[i].name)), known[i].only_on_raw_page);
}

/* Fails if a row with this key has other units, or if there is no such row. */
static void assert_units(const char *key, const char *unit, const char *ncu_unit) {
  bool found = false;
  for (size_t s = 0; s < rl_section_count; s++)
    for (size_t r = 0; r < rl_sections[s].row_count; r++) {
      const rl_section_row *row = &rl_sections[s].rows[r];
      if (strcmp(row->key, key) != 0) continue;
      found = true;
      if (strcmp(row->unit, unit) != 0 || strcmp(row->ncu_unit, ncu_unit) != 0)
        fail_msg("%s has the units %s and %s, expected %s and %s", key, row->unit, row->ncu_unit, unit, ncu_unit);
    }
  if (!found) fail_msg("no row has the key %s", key);
}

static void rows_have_the_unit_of_their_value_where_ncu_has_another(void **state) {
  (void)state;
  static const struct {
    const char *key, *unit, *ncu_unit;
  } cases[] = {{"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", "cycle/inst", "inst"},
               {"smsp__pcsamp_warps_issue_stalled_no_instructions", "sample", "inst"},
               {"smsp__pcsamp_warps_issue_stalled_branch_resolving", "sample", "branches"},
               {"smsp__pcsamp_warps_issue_stalled_barrier_not_issued", "sample", "warp"},
               {"derived__memory_l2_theoretical_sectors_global_excessive", "sector", "byte"},
               {"memory_l2_theoretical_sectors_local", "sector", "sectors"},
               {"memory_l1_wavefronts_shared_ideal", "wavefront", "sectors"},
               {"memory_l1_tag_requests_global", "request", "sectors"},
               {"derived__smsp__inst_executed_op_branch_pct", "ratio", "%"},
               {"sm__icc_requests.sum", "request", "cycle"},
               {"smsp__imc_requests.sum", "request", "cycle"},
               {"sm__icc_requests.sum.pct_of_peak_sustained_elapsed", "%", "%"},
               {"smsp__inst_executed.sum", "inst", "inst"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) assert_units(cases[i].key, cases[i].unit, cases[i].ncu_unit);
}

static void values_are_found_by_name(void **state) {
  (void)state;
  rl_metric_value items[] = {{"b", 2, NULL}, {"a.sum", 1, NULL}, {"c", NAN, "not here"}, {"a", 0, NULL}};
  rl_metric_values values = {items, 4}, none = {NULL, 0};
  rl_metric_values_sort(items, 4);
  rl_metric_values_sort(NULL, 0);
  assert_true(rl_metric_values_get(&values, "a.sum") == 1 && rl_metric_values_get(&values, "b") == 2 &&
              rl_metric_values_get(&values, "a") == 0);
  assert_true(isnan(rl_metric_values_get(&values, "c")) && isnan(rl_metric_values_get(&values, "d")));
  assert_string_equal(rl_metric_find(&values, "c")->reason, "not here");
  assert_null(rl_metric_find(&values, "aa"));
  assert_null(rl_metric_find(&none, "a"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(raw_metrics_are_sorted_unique_and_fit_a_record),
      cmocka_unit_test(sections_collect_the_metrics_of_their_expressions),
      cmocka_unit_test(rows_of_a_table_are_adjacent_and_have_unique_names),
      cmocka_unit_test(section_names_and_sets_match_the_sections),
      cmocka_unit_test(metrics_have_the_origin_of_their_name),
      cmocka_unit_test(metrics_without_a_row_are_only_on_the_raw_page),
      cmocka_unit_test(rows_have_the_unit_of_their_value_where_ncu_has_another),
      cmocka_unit_test(values_are_found_by_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
