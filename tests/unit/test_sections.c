/* Rows from numbers: values, reasons, texts, parts, and which chips have them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/sections.h"

static rl_metric_value items[] = {
    {"cycles", 200, NULL},       {"idle", 0, NULL},        {"mix", 30, NULL},
    {"mix:FADD", 10, NULL},      {"mix:LDG.E", 20, NULL},  {"mixed", 5, NULL},
    {"policy", 1, NULL},         {"refused", NAN, "the driver refused"}, {"secret", NAN, "no permission"},
};
static const rl_metric_values values = {items, sizeof items / sizeof *items};

static rl_row_value evaluate(const char *expression) {
  return rl_row_evaluate(&(rl_section_row){.expression = expression}, &values);
}

static void a_row_is_computed(void **state) {
  (void)state;
  rl_row_value row = evaluate("100 * mix / cycles");
  assert_true(row.value == 15);
  assert_string_equal(row.reason, "");
}

static void a_row_without_an_input_has_that_inputs_reason(void **state) {
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
    rl_row_value row = evaluate(cases[i].expression);
    assert_true(isnan(row.value));
    assert_string_equal(row.reason, cases[i].reason);
  }
  assert_true(isnan(evaluate("1 +").value));
  assert_non_null(strstr(evaluate("1 +").reason, "1 +"));
}

static void a_row_that_is_known_anyway_needs_no_reason(void **state) {
  (void)state;
  rl_row_value row = evaluate("1 || refused");
  assert_true(row.value == 1);
  assert_string_equal(row.reason, "");
}

static void choices_have_texts(void **state) {
  (void)state;
  static const char *const texts[] = {"None", "Some", NULL};
  rl_section_row row = {.choices = texts};
  assert_string_equal(rl_row_text(&row, 1), "Some");
  assert_null(rl_row_text(&row, 2));
  assert_null(rl_row_text(&row, 0.5));
  assert_null(rl_row_text(&row, NAN));
  assert_null(rl_row_text(&(rl_section_row){0}, 0));
}

static void parts_are_those_of_the_key_alone(void **state) {
  (void)state;
  const rl_metric_value *first = NULL;
  assert_int_equal(rl_row_parts(&(rl_section_row){.key = "mix", .instances = true}, &values, &first), 2);
  assert_string_equal(first->name, "mix:FADD");
  assert_int_equal(rl_row_parts(&(rl_section_row){.key = "mix"}, &values, &first), 0);
  assert_int_equal(rl_row_parts(&(rl_section_row){.key = "cycles", .instances = true}, &values, &first), 0);
}

static void a_row_is_on_the_chips_that_it_names(void **state) {
  (void)state;
  rl_section_row hopper = {.chips = "9.0 10.0"}, any = {0};
  assert_true(rl_row_is_on(&hopper, "9.0") && rl_row_is_on(&hopper, "10.0"));
  assert_false(rl_row_is_on(&hopper, "8.0"));
  assert_true(rl_row_is_on(&any, "8.0"));
  assert_true(rl_row_is_on(&hopper, "99.0") && rl_row_is_on(&hopper, "0.0") && rl_row_is_on(&hopper, NULL));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_row_is_computed),
      cmocka_unit_test(a_row_without_an_input_has_that_inputs_reason),
      cmocka_unit_test(a_row_that_is_known_anyway_needs_no_reason),
      cmocka_unit_test(choices_have_texts),
      cmocka_unit_test(parts_are_those_of_the_key_alone),
      cmocka_unit_test(a_row_is_on_the_chips_that_it_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
