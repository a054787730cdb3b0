/* Tests numbers in Nsight Compute's format, and the parser of a kernel's metrics. tests/api/test_report.py tests whole
 * reports. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/ncu_text.h"
#include "api/report.h"

static void numbers_have_the_format_of_ncu(void **state) {
  (void)state;
  static const struct {
    double value;
    const char *unit, *text, *scaled_unit;
  } cases[] = {
      {0, "byte", "0", "byte"},
      {999, "byte", "999", "byte"},
      {1000, "byte", "1", "Kbyte"},
      {8391168, "byte", "8.39", "Mbyte"},
      {384492668621.7, "byte/s", "384.49", "Gbyte/s"},
      {1024, "byte/block", "1.02", "Kbyte/block"},
      {3195992179.86, "hz", "3.20", "Ghz"},
      {21824, "ns", "21.82", "us"},
      {2.5e9, "ns", "2.50", "s"},
      {5e12, "ns", "5,000", "s"},
      {43117, "cycle", "43,117", "cycle"},
      {38465.126, "cycle", "38,465.13", "cycle"},
      {1537501466275.66, "", "1,537,501,466,275.66", ""},
      {100, "%", "100", "%"},
      {99.999, "%", "100.00", "%"},
      {0.001, "", "0.00", ""},
      {-1234.5, "cycle", "-1,234.50", "cycle"},
      {-1500, "byte", "-1.50", "Kbyte"},
      {32, "byte/sector", "32", "byte/sector"},
      {11755999283.67, "sector/s", "11.76", "sector/ns"},
      {2500, "sector/s", "2.50", "sector/ms"},
      {5e14, "sector/s", "500,000", "sector/ns"},
      {8192, "/s", "8,192", "/s"},
      {NAN, "byte", "n/a", "byte"},
      {1e30, "cycle", "1e+30", "cycle"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_ncu_text text = rl_ncu_format_scaled(cases[i].value, cases[i].unit);
    if (strcmp(text.value, cases[i].text) != 0 || strcmp(text.unit, cases[i].scaled_unit) != 0)
      fail_msg("%g %s is formatted as %s %s, expected %s %s", cases[i].value, cases[i].unit, text.value, text.unit, cases[i].text,
               cases[i].scaled_unit);
  }
  assert_string_equal(rl_ncu_format(21824, "ns").value, "21,824");
  assert_string_equal(rl_ncu_format(21824, "ns").unit, "ns");
}

static void any_number_and_unit_fit_the_buffers(void **state) {
  (void)state;
  static const double extreme_values[] = {1e23, -1e23, 1.7e308, -1.7e308, INFINITY, -INFINITY, 4.9e-324};
  static const char unit[] = "a unit that is longer than any";
  for (size_t i = 0; i < sizeof extreme_values / sizeof *extreme_values; i++) {
    rl_ncu_text text = rl_ncu_format_scaled(extreme_values[i], unit);
    assert_true(strlen(text.value) < sizeof text.value && strlen(text.unit) < sizeof text.unit);
  }
}

static void metrics_of_kernel_and_run_are_one_list(void **state) {
  (void)state;
  RL_CLEANUP(rl_kernel_metrics_clear) rl_kernel_metrics metrics = {0};
  rl_error err;
  assert_int_equal(rl_kernel_metrics_parse("[[\"b\",2,null],[\"a\",null,\"refused\"],[\"huge\",9e999,null]]",
                                           "[[\"c\",3,\"not counted\"]]", &metrics, &err),
                   0);
  assert_int_equal(metrics.values.count, 4);
  assert_true(rl_metric_values_get(&metrics.values, "b") == 2 && rl_metric_values_get(&metrics.values, "c") == 3);
  assert_null(rl_metric_find(&metrics.values, "b")->reason);
  assert_string_equal(rl_metric_find(&metrics.values, "c")->reason, "not counted");
  assert_string_equal(rl_metric_find(&metrics.values, "a")->reason, "refused");
  assert_true(isnan(rl_metric_values_get(&metrics.values, "huge")));
  assert_non_null(rl_metric_find(&metrics.values, "huge")->reason);
}

static void malformed_json_is_refused(void **state) {
  (void)state;
  rl_kernel_metrics metrics = {0};
  rl_error err;
  assert_int_equal(rl_kernel_metrics_parse("[", "[]", &metrics, &err), -1);
  assert_null(metrics.items);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_have_the_format_of_ncu),
      cmocka_unit_test(any_number_and_unit_fit_the_buffers),
      cmocka_unit_test(metrics_of_kernel_and_run_are_one_list),
      cmocka_unit_test(malformed_json_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
