/* Kernel workloads on the CPU: every result against its reference, the reference against numbers worked out by hand, and a check that
 * notices what is wrong. */
#include "kernel_cases.h"

#include <errno.h>
#include <stdlib.h>

static rl_device *device;

static void every_family_type_and_variant_is_right(void **state) {
  (void)state;
  check_everything(device);
  assert_int_equal(device->memory.total_bytes, 0);
}

static void references_are_what_the_books_say(void **state) {
  (void)state;
  /* Φ(1) = 0.841344746068543, 1 / (1 + 1/e) = 0.731058578630005 */
  static const struct { const rl_kernel_family *family; double x, second, y; } cases[] = {
      {&rl_kernel_copy, -1.25, 0, -1.25},       {&rl_kernel_relu, -3, 0, 0},
      {&rl_kernel_relu, 3, 0, 3},               {&rl_kernel_residual_add, 1.5, -4, -2.5},
      {&rl_kernel_bias_gelu, 0.25, 0.75, 0.841344746068543}, {&rl_kernel_bias_gelu, -1, 0, -0.158655253931457},
      {&rl_kernel_silu_mul, 1, 2, 2 * 0.731058578630005},    {&rl_kernel_silu_mul, -1, 3, -3 * 0.268941421369995}};
  const rl_kernel_shape one = {1, 1};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    double y = NAN;
    cases[i].family->reference(&one, (const double *const[]){&cases[i].x, &cases[i].second}, &y);
    if (!(fabs(y - cases[i].y) <= 1e-14)) fail_msg("%s: %.17g", cases[i].family->workload.name, y);
  }
  double y = 0;
  rl_kernel_relu.reference(&one, (const double *const[]){&(double){NAN}}, &y);
  assert_true(isnan(y));
}

static void a_shared_row_is_read_by_every_row(void **state) {
  (void)state;
  const double x[6] = {0, 0, 0, 1, 1, 1}, b[3] = {-1, 0, 1};
  double y[6], first, last;
  const rl_kernel_shape shape = {2, 3}, one = {1, 1};
  rl_kernel_bias_gelu.reference(&shape, (const double *const[]){x, b}, y);
  rl_kernel_bias_gelu.reference(&one, (const double *const[]){&x[0], &b[0]}, &first);
  rl_kernel_bias_gelu.reference(&one, (const double *const[]){&x[5], &b[2]}, &last);
  assert_true(y[0] == first && y[5] == last && y[1] == 0 && y[3] == 0);
}

/* --- the check notices ------------------------------------------------------------------------------------------------ */

static int do_nothing(void *arg, rl_stream stream, rl_error *err) {
  (void)arg, (void)stream, (void)err;
  return 0;
}

static int (*honest)(void *arg, rl_stream stream, rl_error *err);
static int spoil_last(void *arg, rl_stream stream, rl_error *err) {
  rl_kernel_instance *kernel = arg;
  int rc = honest(arg, stream, err);
  ((float *)kernel->out)[kernel->shape.rows - 1] += 1;
  return rc;
}

static void what_is_not_written_or_wrong_is_noticed(void **state) {
  (void)state;
  rl_kernel_params params = kernel_params(&rl_kernel_relu, RL_DTYPE_FP32, "vector", "{\"n\":70001}");
  rl_kernel_instance *kernel = open_kernel(device, &params);
  double error = NAN, limit = NAN;
  rl_error err = {0};
  assert_true(checked(kernel) == 0);
  honest = kernel->launch.enqueue;
  kernel->launch.enqueue = do_nothing;
  assert_int_equal(kernel->base.ops->check(&kernel->base, &error, &limit, &err), -1);
  assert_non_null(strstr(err.message, "70001 elements of the result are not numbers"));
  kernel->launch.enqueue = spoil_last;
  assert_int_equal(kernel->base.ops->check(&kernel->base, &error, &limit, &err), 0);
  assert_true(error > limit && error < 0.1);
  close_kernel(kernel);
}

static void inputs_are_the_seed_s(void **state) {
  (void)state;
  rl_kernel_params a = kernel_params(&rl_kernel_residual_add, RL_DTYPE_FP64, "scalar", "{\"n\":1000}"), b = a;
  double sum = 0, squares = 0;
  bool differs = false, rounded = true;
  b.seed = a.seed + 1;
  for (int64_t i = 0; i < 20000; i++) {
    double value = rl_kernel_input_value(&a, 0, i);
    assert_true(value >= -2 && value < 2);
    differs |= value != rl_kernel_input_value(&b, 0, i) && value != rl_kernel_input_value(&a, 1, i);
    sum += value;
    squares += value * value;
  }
  assert_true(differs && fabs(sum / 20000) < 0.05 && fabs(squares / 20000 - 4.0 / 3) < 0.05);
  a.dtype = RL_DTYPE_BF16;
  for (int64_t i = 0; i < 1000; i++) {
    uint16_t bits;
    double value = rl_kernel_input_value(&a, 0, i);
    rl_dtype_store(RL_DTYPE_BF16, &bits, 0, value);
    rounded &= rl_dtype_load(RL_DTYPE_BF16, &bits, 0) == value;
  }
  assert_true(rounded);
}

/* --- types, cost, refusals --------------------------------------------------------------------------------------------- */

static void bfloat_rounds_to_even(void **state) {
  (void)state;
  static const struct { double value; uint16_t bits; } cases[] = {
      {1, 0x3f80},           {-2, 0xc000},          {1 + 0x1p-8, 0x3f80},   {1 + 0x1p-8 + 0x1p-20, 0x3f81},
      {1 + 3 * 0x1p-8, 0x3f82}, {0x1.fep127, 0x7f7f}, {0x1.ffp127, 0x7f80}, {-0.0, 0x8000}};
  uint16_t bits;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_dtype_store(RL_DTYPE_BF16, &bits, 0, cases[i].value);
    assert_int_equal(bits, cases[i].bits);
  }
  rl_dtype_store(RL_DTYPE_BF16, &bits, 0, NAN);
  assert_true(isnan(rl_dtype_load(RL_DTYPE_BF16, &bits, 0)));
}

static void cost_is_what_must_be_moved(void **state) {
  (void)state;
  rl_kernel_params relu = kernel_params(&rl_kernel_relu, RL_DTYPE_FP16, "scalar", "{\"n\":4194304}");
  rl_kernel_params gelu = kernel_params(&rl_kernel_bias_gelu, RL_DTYPE_FP64, "scalar", "{\"rows\":10,\"columns\":7}");
  rl_cost cost = rl_kernel_relu.workload.cost(&relu);
  assert_true(cost.bytes == 2 * 2 * 4194304.0 && cost.operations == 4194304);
  cost = rl_kernel_bias_gelu.workload.cost(&gelu);
  assert_true(cost.bytes == (70 + 7 + 70) * 8 && cost.operations == 6 * 70);
}

static void tolerance_is_of_rounding(void **state) {
  (void)state;
  static const struct { const rl_kernel_family *family; int dtype; double tolerance; } cases[] = {
      {&rl_kernel_copy, RL_DTYPE_BF16, 0},
      {&rl_kernel_residual_add, RL_DTYPE_FP64, 1.5 * 0x1p-52},
      {&rl_kernel_residual_add, RL_DTYPE_FP32, 1.5 * 0x1p-23},
      {&rl_kernel_silu_mul, RL_DTYPE_FP16, 0x1p-11 + 4 * 0x1p-23},
      {&rl_kernel_silu_mul, RL_DTYPE_BF16, 0x1p-8 + 4 * 0x1p-23}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_kernel_params params = kernel_params(cases[i].family, cases[i].dtype, "scalar", "{\"n\":1}");
    assert_true(rl_kernel_tolerance(&params) == cases[i].tolerance);
  }
}

static void what_a_family_can_not_do_is_refused(void **state) {
  (void)state;
  static const struct { const char *shape, *variant, *pointer; } cases[] = {
      {"{}", "scalar", "/shape/n"},           {"{\"n\":0}", "scalar", "/shape/n"},     {"{\"n\":2.5}", "scalar", "/shape/n"},
      {"{\"n\":\"9\"}", "scalar", "/shape/n"}, {"{\"n\":9,\"m\":1}", "scalar", "/shape/m"}, {"[]", "scalar", "/shape"},
      {"{\"n\":1000000000}", "scalar", "/shape/n"}, {"{\"n\":9}", "fast", "/variant"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_kernel_params params = kernel_params(&rl_kernel_relu, RL_DTYPE_FP32, cases[i].variant, cases[i].shape);
    rl_error err = {0};
    assert_null(rl_engine_find("relu", "auto", &params, &err));
    assert_int_equal(err.domain, RL_INPUT);
    assert_string_equal(err.pointer, cases[i].pointer);
  }
  rl_kernel_params large = kernel_params(&rl_kernel_bias_gelu, RL_DTYPE_FP32, "scalar", "{\"rows\":100000,\"columns\":100000}");
  rl_error err = {0};
  assert_int_equal(rl_kernel_supports(&large, &err), -1);
  assert_string_equal(err.pointer, "/shape");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_family_type_and_variant_is_right),
                                     cmocka_unit_test(references_are_what_the_books_say),
                                     cmocka_unit_test(a_shared_row_is_read_by_every_row),
                                     cmocka_unit_test(what_is_not_written_or_wrong_is_noticed),
                                     cmocka_unit_test(inputs_are_the_seed_s),
                                     cmocka_unit_test(bfloat_rounds_to_even),
                                     cmocka_unit_test(cost_is_what_must_be_moved),
                                     cmocka_unit_test(tolerance_is_of_rounding),
                                     cmocka_unit_test(what_a_family_can_not_do_is_refused)};
  setenv("ROOFLINED_THREADS", "2", 1);
  device = rl_device_open(0, NULL);
  if (!device) return 1;
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->ops->close(device);
  return failed;
}
