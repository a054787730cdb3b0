/* Tests the rows of a report section: values, reasons of missing values, texts, parts, and the chips that have a row. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/sections.h"

static rl_metric_value items[] = {
    {"cycles", 200, NULL},
    {"decided", 0, "not counted"},
    {"idle", 0, NULL},
    {"mix", 30, NULL},
    {"mix:BRA", NAN, "lost"},
    {"mix:FADD", 10, NULL},
    {"mix:LDG.E", 20, NULL},
    {"mixed", 5, NULL},
    {"policy", 1, NULL},
    {"refused", NAN, "the driver refused"},
    {"secret", NAN, "no permission"},
};
static const rl_metric_values values = {items, sizeof items / sizeof *items};

static rl_row_value evaluate_row(const char *expression) {
  return rl_row_evaluate(&(rl_section_row){.expression = expression}, &values);
}

static void a_row_has_the_value_of_its_expression(void **state) {
  (void)state;
  rl_row_value row = evaluate_row("100 * mix / cycles");
  assert_true(row.value == 15);
  assert_string_equal(row.reason, "");
}

static void an_unknown_row_has_the_reason_of_its_input(void **state) {
  (void)state;
  static const struct {
    const char *expression, *reason;
  } cases[] = {
      {"refused", "the driver refused"},
      {"cycles + refused + secret", "the driver refused"},
      {"secret / refused", "no permission"},
      {"cycles * nowhere", "nowhere was not collected"},
      {"cycles / idle", "not defined: a divisor is 0"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_row_value row = evaluate_row(cases[i].expression);
    assert_true(isnan(row.value));
    assert_string_equal(row.reason, cases[i].reason);
  }
  assert_true(isnan(evaluate_row("1 +").value));
  assert_non_null(strstr(evaluate_row("1 +").reason, "1 +"));
}

static void a_known_row_has_the_reason_of_an_input(void **state) {
  (void)state;
  rl_row_value row = evaluate_row("cycles + decided");
  assert_true(row.value == 200);
  assert_string_equal(row.reason, "not counted");
  assert_string_equal(evaluate_row("decided + refused").reason, "the driver refused");
}

static void an_input_that_does_not_matter_gives_no_reason(void **state) {
  (void)state;
  rl_row_value row = evaluate_row("1 || refused");
  assert_true(row.value == 1);
  assert_string_equal(row.reason, "");
}

static void a_choice_has_a_text(void **state) {
  (void)state;
  static const char *const texts[] = {"None", "Some", NULL};
  rl_section_row row = {.choices = texts};
  assert_string_equal(rl_row_text(&row, 1), "Some");
  assert_null(rl_row_text(&row, 2));
  assert_null(rl_row_text(&row, 0.5));
  assert_null(rl_row_text(&row, NAN));
  assert_null(rl_row_text(&(rl_section_row){0}, 0));
}

static void parts_are_the_metrics_below_the_key(void **state) {
  (void)state;
  rl_row_part parts[RL_MAX_ROW_PARTS];
  assert_int_equal(rl_row_parts(&(rl_section_row){.key = "mix", .parts = RL_PARTS_VALUES}, &values, parts), 3);
  assert_string_equal(parts[0].name, "LDG.E"); /* largest first, unknown last */
  assert_string_equal(parts[1].name, "FADD");
  assert_true(isnan(parts[2].value));
  assert_int_equal(rl_row_parts(&(rl_section_row){.key = "mix"}, &values, parts), 0);
  assert_int_equal(rl_row_parts(&(rl_section_row){.key = "cycles", .parts = RL_PARTS_NAMES}, &values, parts), 0);
}

static void parts_are_limited(void **state) {
  (void)state;
  static char names[RL_MAX_ROW_PARTS + 50][16];
  static rl_metric_value metrics[RL_MAX_ROW_PARTS + 50];
  rl_row_part parts[RL_MAX_ROW_PARTS];
  for (size_t i = 0; i < RL_MAX_ROW_PARTS + 50; i++) {
    snprintf(names[i], sizeof names[i], "k:%05zu", i);
    metrics[i] = (rl_metric_value){names[i], (double)i, NULL};
  }
  rl_metric_values many_values = {metrics, RL_MAX_ROW_PARTS + 50};
  assert_int_equal(rl_row_parts(&(rl_section_row){.key = "k", .parts = RL_PARTS_VALUES}, &many_values, parts), RL_MAX_ROW_PARTS);
}

static void a_row_is_available_on_its_chips(void **state) {
  (void)state;
  rl_section_row hopper = {.chips = "9.0 10.0"}, all_chips = {0};
  assert_true(rl_row_is_available(&hopper, "9.0") && rl_row_is_available(&hopper, "10.0"));
  assert_false(rl_row_is_available(&hopper, "8.0"));
  assert_true(rl_row_is_available(&all_chips, "8.0"));
  assert_true(rl_row_is_available(&hopper, "99.0") && rl_row_is_available(&hopper, "0.0") && rl_row_is_available(&hopper, NULL));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_row_has_the_value_of_its_expression),
      cmocka_unit_test(an_unknown_row_has_the_reason_of_its_input),
      cmocka_unit_test(a_known_row_has_the_reason_of_an_input),
      cmocka_unit_test(an_input_that_does_not_matter_gives_no_reason),
      cmocka_unit_test(a_choice_has_a_text),
      cmocka_unit_test(parts_are_the_metrics_below_the_key),
      cmocka_unit_test(parts_are_limited),
      cmocka_unit_test(a_row_is_available_on_its_chips),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
