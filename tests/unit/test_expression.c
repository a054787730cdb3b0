/* Tests rl_expression_evaluate: results, unknown values, and robustness against any text. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/expression.h"

static double look_up(void *context, const char *name) {
  (void)context;
  if (strcmp(name, "two") == 0) return 2;
  if (strcmp(name, "sm__cycles_active.avg.per_second") == 0) return 5;
  return NAN;
}
static const rl_scope scope = {look_up, NULL};

static int evaluate_text(const char *text, double *value) {
  rl_error err = {0};
  return rl_expression_evaluate(text, strlen(text), &scope, value, &err);
}

static double value_of(const char *text) {
  double value = NAN;
  if (evaluate_text(text, &value) < 0) fail_msg("can't evaluate %s", text);
  return value;
}

static void operators_have_the_precedence_of_c(void **state) {
  (void)state;
  static const struct {
    const char *text;
    double value;
  } cases[] = {
      {"1 + 2 * 3", 7},         {"(1 + 2) * 3", 9},
      {"10 - 4 - 3", 3},        {"24 / 4 / 2", 3},
      {"2 * -3", -6},           {"--two", 2},
      {"1.5e3", 1500},          {"sm__cycles_active.avg.per_second * two", 10},
      {"max(1, two, 1.5)", 2},  {"min(3)", 3},
      {"floor(7 / two)", 3},    {"ceil(7 / two)", 4},
      {"1 < 2 && 2 <= two", 1}, {"1 == 2 || !(1 != 2)", 0},
      {" \t( two )\n", 2},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (value_of(cases[i].text) != cases[i].value)
      fail_msg("%s is %g, not %g", cases[i].text, value_of(cases[i].text), cases[i].value);
}

static void operators_propagate_unknown_values(void **state) {
  (void)state;
  static const char *const unknown[] = {"nothing",  "nothing * 0", "max(1, nothing)", "1 / 0",        "0 / 0",
                                        "-nothing", "1 < nothing", "!nothing",        "1 && nothing", "floor(nothing)"};
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
    if (!isnan(value_of(unknown[i]))) fail_msg("%s is %g, not unknown", unknown[i], value_of(unknown[i]));
  assert_true(value_of("0 && nothing") == 0);
  assert_true(value_of("1 || nothing") == 1);
}

static void syntax_errors_are_refused(void **state) {
  (void)state;
  static const char *const invalid[] = {"",        "1 +",  "(1", "1)", "1 2", "two two", "max()", "max(1,)",
                                        "sqrt(4)", "1..2", "1x", "@",  "=",   "1 = 2",   "()"};
  for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
    double value = 17;
    if (evaluate_text(invalid[i], &value) == 0) fail_msg("accepted: \"%s\", with the value %g", invalid[i], value);
    assert_true(value == 17);
  }
}

static void nesting_is_limited(void **state) {
  (void)state;
  enum { LENGTH = 200000 };
  char *text = malloc(LENGTH);
  double value;
  for (const char *c = "(-!"; *c; c++) {
    rl_error err = {0};
    memset(text, *c, LENGTH);
    assert_int_equal(rl_expression_evaluate(text, LENGTH, &scope, &value, &err), -1);
  }
  free(text);
}

/* Sums of products have the same bits when C computes them and when their text is evaluated. */
static void random_sums_equal_those_of_c(void **state) {
  (void)state;
  srandom(1);
  for (int round = 0; round < 2000; round++) {
    char text[512];
    int used = 0;
    double sum = 0;
    for (int term = 0; term < 6; term++) {
      int a = (int)(random() % 1000), b = 1 + (int)(random() % 9);
      bool divide = random() % 2;
      used += snprintf(text + used, sizeof text - (size_t)used, "%s%d %c %d", term ? " + " : "", a, divide ? '/' : '*', b);
      double product = divide ? (double)a / b : (double)a * b;
      sum = term ? sum + product : product;
    }
    if (value_of(text) != sum) fail_msg("%s", text);
  }
}

/* Random texts of the grammar's characters are evaluated or refused, twice with the same result. */
static void random_texts_are_safe(void **state) {
  (void)state;
  static const char characters[] = "12.e()+-*/<>=!&|,_a \x80\"max(min(two";
  srandom(2);
  for (int round = 0; round < 50000; round++) {
    char text[64];
    size_t length = (size_t)random() % (sizeof text - 1);
    for (size_t i = 0; i < length; i++) text[i] = characters[(size_t)random() % (sizeof characters - 1)];
    text[length] = 0;
    double first = 0, second = 0;
    int result = evaluate_text(text, &first);
    assert_int_equal(evaluate_text(text, &second), result);
    assert_true(memcmp(&first, &second, sizeof first) == 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(operators_have_the_precedence_of_c), cmocka_unit_test(operators_propagate_unknown_values),
      cmocka_unit_test(syntax_errors_are_refused),          cmocka_unit_test(nesting_is_limited),
      cmocka_unit_test(random_sums_equal_those_of_c),       cmocka_unit_test(random_texts_are_safe),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
