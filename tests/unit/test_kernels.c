/* Tests the kernel workloads on the CPU: compares results with the references, and the references with values computed by hand.
 * Tests that the check of an instance finds wrong results. */
#include "kernel_cases.h"

#include <errno.h>
#include <stdlib.h>

#include "kernel/cpu.h"

static rl_device *device;

static char **operators; /* names from the command line (NULL-terminated; empty: all) */

/* Sanitizers make the kernels many times slower, so large cases are skipped. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const double MAX_BYTES = 5e5;
#else
static const double MAX_BYTES = INFINITY;
#endif

static void every_operator_type_and_variant_is_correct(void **state) {
  (void)state;
  max_case_bytes = MAX_BYTES;
  check_operators(device, operators);
  assert_int_equal(device->memory_usage.total_bytes, 0);
}

static void references_match_known_values(void **state) {
  (void)state;
  /* Φ(1) = 0.841344746068543, 1 / (1 + 1/e) = 0.731058578630005 */
  static const struct {
    const rl_kernel_operator *op;
    double first_input, second_input, output;
  } cases[] = {{&rl_kernel_copy, -1.25, 0, -1.25},
               {&rl_kernel_relu, -3, 0, 0},
               {&rl_kernel_relu, 3, 0, 3},
               {&rl_kernel_residual_add, 1.5, -4, -2.5},
               {&rl_kernel_bias_gelu, 0.25, 0.75, 0.841344746068543},
               {&rl_kernel_bias_gelu, -1, 0, -0.158655253931457},
               {&rl_kernel_silu_mul, 1, 2, 2 * 0.731058578630005},
               {&rl_kernel_silu_mul, -1, 3, -3 * 0.268941421369995}};
  const rl_kernel_shape one = {{1, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    double y = NAN;
    cases[i].op->reference(&one, (const double *const[]){&cases[i].first_input, &cases[i].second_input}, 0, 1, &y);
    if (!(fabs(y - cases[i].output) <= 1e-14))
      fail_msg("%s: the output is %.17g, not %.17g", cases[i].op->workload.name, y, cases[i].output);
  }
  double y = 0;
  rl_kernel_relu.reference(&one, (const double *const[]){&(double){NAN}}, 0, 1, &y);
  assert_true(isnan(y));
}

static void a_shared_row_is_read_by_every_row(void **state) {
  (void)state;
  const double x[6] = {0, 0, 0, 1, 1, 1}, b[3] = {-1, 0, 1};
  double y[6], first, last;
  const rl_kernel_shape shape = {{2, 3}}, one = {{1, 1}};
  rl_kernel_bias_gelu.reference(&shape, (const double *const[]){x, b}, 0, 6, y);
  rl_kernel_bias_gelu.reference(&one, (const double *const[]){&x[0], &b[0]}, 0, 1, &first);
  rl_kernel_bias_gelu.reference(&one, (const double *const[]){&x[5], &b[2]}, 0, 1, &last);
  assert_true(y[0] == first && y[5] == last && y[1] == 0 && y[3] == 0);
}

static void references_of_rows_match_known_values(void **state) {
  (void)state;
  static const struct {
    const rl_kernel_operator *op;
    rl_kernel_shape shape;
    double in[3][6], out[6];
    int count;
  } cases[] = {{&rl_kernel_softmax, {{2, 3}}, {{0, M_LN2, 1000, 1000, 1000, 1000}}, {0, 0, 1, 1.0 / 3, 1.0 / 3, 1.0 / 3}, 6},
               {&rl_kernel_softmax, {{1, 2}}, {{M_LN2, 2 * M_LN2}}, {1.0 / 3, 2.0 / 3}, 2},
               /* the normalised inputs are 3/√12.50001 and 4/√12.50001 */
               {&rl_kernel_rmsnorm, {{1, 2}}, {{3, 4}, {1, -2}}, {0.8485277980128057, -2.262740794700815}, 2},
               /* the normalised inputs are ±1/√1.00001 */
               {&rl_kernel_layernorm, {{1, 2}}, {{1, 3}, {1, 2}, {0.5, 10}}, {-0.499995000037499, 11.999990000074999}, 2},
               {&rl_kernel_reduction, {{2, 3}}, {{1, 2, 4, -1, 1, 0.5}}, {7, 0.5}, 2},
               {&rl_kernel_transpose, {{2, 3}}, {{1, 2, 3, 4, 5, 6}}, {1, 4, 2, 5, 3, 6}, 6},
               /* rope does not rotate token 0. It rotates the pairs of token 1, below, by 1 and by 10000^-½ = 0.01 radians. */
               {&rl_kernel_rope, {{1, 1, 4}}, {{1, 2, 3, 4}}, {1, 2, 3, 4}, 4}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    double out[6] = {NAN, NAN, NAN, NAN, NAN, NAN};
    const double *const in[] = {cases[i].in[0], cases[i].in[1], cases[i].in[2]};
    cases[i].op->reference(&cases[i].shape, in, 0, cases[i].op->output_segment_count(&cases[i].shape), out);
    for (int k = 0; k < cases[i].count; k++)
      if (!(fabs(out[k] - cases[i].out[k]) <= 1e-14))
        fail_msg("%s: element %d is %.17g, not %.17g", cases[i].op->workload.name, k, out[k], cases[i].out[k]);
  }
  const rl_kernel_shape second = {{2, 1, 4}};
  double rotated[4];
  rl_kernel_rope.reference(&second, (const double *const[]){(const double[]){1, 0, 0, 1}}, 1, 1, rotated);
  const double expected[4] = {0.540302305868139717, -0.00999983333416666468, 0.841470984807896507, 0.999950000416665278};
  for (int k = 0; k < 4; k++) assert_true(fabs(rotated[k] - expected[k]) < 1e-15);
}

/* Computes every segment from its own windows alone and compares it with the same segment of the whole output. */
static void compare_segments(const rl_kernel_params *params, const rl_kernel_shape *shape) {
  const rl_kernel_operator *op = params->op;
  const int64_t segments = op->output_segment_count(shape), elements = op->output_elements(shape), length = elements / segments;
  double *in[RL_KERNEL_INPUTS_MAX] = {NULL}, *windows[RL_KERNEL_INPUTS_MAX] = {NULL};
  double *all = malloc((size_t)elements * sizeof *all), *one = malloc((size_t)length * sizeof *one);
  for (uint32_t i = 0; i < op->input_count; i++) {
    in[i] = malloc((size_t)op->input_elements(shape, i) * sizeof *in[i]);
    rl_kernel_fill_input(params, shape, i, 0, op->input_elements(shape, i), in[i]);
  }
  op->reference(shape, (const double *const *)in, 0, segments, all);
  for (int64_t segment = 0; segment < segments; segment++) {
    for (uint32_t i = 0; i < op->input_count; i++) {
      int64_t start, count;
      op->input_window(shape, i, segment, 1, &start, &count);
      assert_true(start >= 0 && count >= 1 && start + count <= op->input_elements(shape, i));
      windows[i] =
          malloc((size_t)count * sizeof *windows[i]); /* a copy, so that AddressSanitizer finds accesses outside the window */
      memcpy(windows[i], in[i] + start, (size_t)count * sizeof *windows[i]);
    }
    op->reference(shape, (const double *const *)windows, segment, 1, one);
    if (memcmp(one, all + segment * length, (size_t)length * sizeof *one) != 0)
      fail_msg("%s %s: segment %lld differs from the same segment of the whole output", op->workload.name, params->shape,
               (long long)segment);
    for (uint32_t i = 0; i < op->input_count; i++) free(windows[i]);
  }
  for (uint32_t i = 0; i < op->input_count; i++) free(in[i]);
  free(all);
  free(one);
}

static void a_segment_needs_only_its_window(void **state) {
  (void)state;
  enum { MAX_ELEMENTS = 3000 };
  for (const rl_kernel_operator *const *op = rl_kernel_operators; *op; op++)
    for (const char *const *text = awkward_shapes(*op); *text; text++) {
      rl_kernel_params params = kernel_params(*op, RL_DTYPE_FP64, (*op)->variants[0], *text);
      rl_kernel_shape shape;
      assert_int_equal(rl_kernel_params_shape(&params, &shape, NULL), 0);
      if ((*op)->output_elements(&shape) <= MAX_ELEMENTS && (*op)->input_elements(&shape, 0) <= MAX_ELEMENTS)
        compare_segments(&params, &shape);
    }
}

/* --- the check --------------------------------------------------------------------------------------------------------- */

static int do_nothing(void *arg, rl_stream stream, rl_error *err) {
  (void)arg, (void)stream, (void)err;
  return 0;
}

static int (*original_enqueue)(void *arg, rl_stream stream, rl_error *err);
static int corrupt_last_element(void *arg, rl_stream stream, rl_error *err) {
  rl_kernel_instance *kernel = arg;
  int rc = original_enqueue(arg, stream, err);
  ((float *)kernel->out)[kernel->shape.size[0] - 1] += 1;
  return rc;
}

static void unwritten_and_wrong_elements_are_found(void **state) {
  (void)state;
  rl_kernel_params params = kernel_params(&rl_kernel_relu, RL_DTYPE_FP32, "vector", "{\"n\":70001}");
  rl_kernel_instance *kernel = open_kernel(device, &params);
  rl_check check = {NAN, NAN, NAN};
  rl_error err = {0};
  assert_true(assert_correct(kernel) == 0);
  original_enqueue = kernel->launch.enqueue;
  kernel->launch.enqueue = do_nothing;
  assert_int_equal(kernel->base.ops->check(&kernel->base, &check, &err), -1);
  assert_non_null(strstr(err.message, "70001 elements of the result are infinite or NaN"));
  kernel->launch.enqueue = corrupt_last_element;
  assert_int_equal(kernel->base.ops->check(&kernel->base, &check, &err), 0);
  assert_true(check.relative_error > check.tolerance && check.relative_error < 0.1 && check.checked_ratio == 1);
  close_kernel(kernel);
}

static bool cancel_when_count_is_zero(void *context) { return --*(int *)context < 0; }

/* Opening, checking and CPU launches call cancelled() of the device's observer. The device has one thread, because only
 * thread 0 calls cancelled(), before each of its chunks, and with more threads it may get too few chunks. */
static void opening_checking_and_launching_can_be_cancelled(void **state) {
  (void)state;
  setenv("ROOFLINED_THREADS", "1", 1);
  rl_device *one_thread_device = rl_device_open(0, NULL);
  setenv("ROOFLINED_THREADS", "2", 1);
  assert_non_null(one_thread_device);
  rl_kernel_params params = kernel_params(&rl_kernel_silu_mul, RL_DTYPE_FP16, "vector", "{\"n\":1000003}");
  rl_kernel_instance *kernel = open_kernel(one_thread_device, &params);
  rl_instance *unopened = NULL;
  rl_check check;
  int calls_until_cancel = 0;
  const rl_observer observer = {.context = &calls_until_cancel, .cancelled = cancel_when_count_is_zero};
  one_thread_device->observer = &observer;
  for (int calls = 0; calls < 6; calls++) {
    rl_error opening = {0}, checking = {0}, launching = {0};
    calls_until_cancel = calls;
    assert_int_equal(rl_engine_find("silu_mul", "auto", &params, NULL)->open(one_thread_device, &params, &unopened, &opening),
                     -1);
    calls_until_cancel = calls;
    assert_int_equal(kernel->base.ops->check(&kernel->base, &check, &checking), -1);
    calls_until_cancel = calls;
    assert_int_equal(kernel->launch.enqueue(kernel, NULL, &launching), -1);
    assert_true(opening.code == ECANCELED && checking.code == ECANCELED && launching.code == ECANCELED);
  }
  one_thread_device->observer = NULL;
  assert_correct(kernel);
  close_kernel(kernel);
  assert_int_equal(one_thread_device->memory_usage.total_bytes, 0);
  one_thread_device->ops->close(one_thread_device);
}

/* An operator with so many operations that only a sample of its output is checked: y = x w, with one number w. */
static const rl_field rows_and_columns[] = {RL_KERNEL_SIZE(0, "rows", 1e9, ""), RL_KERNEL_SIZE(1, "columns", 1e9, ""), {0}};
static int64_t costly_output(const rl_kernel_shape *shape) { return shape->size[0] * shape->size[1]; }
static int64_t costly_input(const rl_kernel_shape *shape, uint32_t input) { return input == 0 ? costly_output(shape) : 1; }
static int64_t costly_rows(const rl_kernel_shape *shape) { return shape->size[0]; }
static double costly_operations(const rl_kernel_shape *shape) { return 0x1p31 / 100 * (double)shape->size[0]; }
static double costly_tolerance(const rl_kernel_shape *shape) { return (void)shape, 1; }
static void costly_window(const rl_kernel_shape *shape, uint32_t input, int64_t first, int64_t count, int64_t *start,
                          int64_t *elements) {
  *start = input == 0 ? first * shape->size[1] : 0;
  *elements = input == 0 ? count * shape->size[1] : 1;
}
#define COSTLY(SUFFIX, T)                                                                                               \
  static void costly_##SUFFIX(const rl_kernel_shape *shape, const T *const *in, int64_t first, int64_t count, T *out) { \
    (void)first;                                                                                                        \
    for (int64_t i = 0; i < count * shape->size[1]; i++) out[i] = in[0][i] * in[1][0];                                  \
  }
COSTLY(double, double)
COSTLY(float, float)
static const rl_kernel_operator costly;
static void costly_defaults(void *params) { rl_kernel_defaults(params, &costly); }
static const char *const costly_variants[] = {"only", NULL};
static const rl_kernel_operator costly = {.workload = RL_KERNEL_WORKLOAD(costly, "much work"),
                                          .shape_fields = rows_and_columns,
                                          .dtypes = 1u << RL_DTYPE_FP32 | 1u << RL_DTYPE_TF32,
                                          .variants = costly_variants,
                                          .input_count = 2,
                                          .input_elements = costly_input,
                                          .output_elements = costly_output,
                                          .output_segment_count = costly_rows,
                                          .input_window = costly_window,
                                          .reference = costly_double,
                                          .compute_double = costly_double,
                                          .compute_float = costly_float,
                                          .operations = costly_operations,
                                          .tolerance_ulps = costly_tolerance};

static int64_t corrupt_row_index;
static int corrupt_row(void *arg, rl_stream stream, rl_error *err) {
  rl_kernel_instance *kernel = arg;
  int rc = original_enqueue(arg, stream, err);
  ((float *)kernel->out)[corrupt_row_index * kernel->shape.size[1]] += 10;
  return rc;
}

/* At most 100 of 1000 rows are checked, the first and the last among them. A wrong row is found exactly when it is checked. */
static void a_large_result_is_sampled(void **state) {
  (void)state;
  rl_kernel_params params = kernel_params(&costly, RL_DTYPE_TF32, "only", "{\"rows\":1000,\"columns\":70}");
  rl_instance *instance = NULL;
  rl_check check = {NAN, NAN, NAN};
  rl_error err = {0};
  int found = 0;
  assert_int_equal(rl_kernel_cpu_open(device, &params, &instance, &err), 0);
  rl_kernel_instance *kernel = (rl_kernel_instance *)instance;
  assert_int_equal(instance->ops->check(instance, &check, &err), 0);
  assert_true(check.relative_error <= check.tolerance && check.checked_ratio > 0.05 && check.checked_ratio <= 0.1);
  original_enqueue = kernel->launch.enqueue;
  kernel->launch.enqueue = corrupt_row;
  for (corrupt_row_index = 0; corrupt_row_index < 1000; corrupt_row_index++) {
    assert_int_equal(instance->ops->check(instance, &check, &err), 0);
    bool seen = check.relative_error > check.tolerance;
    found += seen;
    assert_true(seen || (corrupt_row_index > 0 && corrupt_row_index < 999));
  }
  assert_int_equal(found, (int)(check.checked_ratio * 1000 + 0.5));
  close_kernel(kernel);
}

static double input_value(const rl_kernel_params *params, uint32_t input, int64_t index) {
  const rl_kernel_shape shape = {{1000, 1, 1, 1, 1, 1, 1, 1}};
  double rounded;
  rl_kernel_fill_input(params, &shape, input, index, 1, &rounded);
  return rl_dtype_load(params->dtype, &rounded, 0);
}

static void inputs_follow_from_the_seed(void **state) {
  (void)state;
  rl_kernel_params a = kernel_params(&rl_kernel_residual_add, RL_DTYPE_FP64, "scalar", "{\"n\":1000}"), b = a;
  double sum = 0, squares = 0;
  bool differs = false, rounded = true;
  b.seed = a.seed + 1;
  for (int64_t i = 0; i < 20000; i++) {
    double value = input_value(&a, 0, i);
    assert_true(value >= -2 && value < 2);
    differs |= value != input_value(&b, 0, i) && value != input_value(&a, 1, i);
    sum += value;
    squares += value * value;
  }
  assert_true(differs && fabs(sum / 20000) < 0.05 && fabs(squares / 20000 - 4.0 / 3) < 0.05);
  a.dtype = RL_DTYPE_BF16;
  for (int64_t i = 0; i < 1000; i++) {
    uint16_t bits;
    double value = input_value(&a, 0, i);
    rl_dtype_store(RL_DTYPE_BF16, &bits, 0, value);
    rounded &= rl_dtype_load(RL_DTYPE_BF16, &bits, 0) == value;
  }
  assert_true(rounded);
}

/* --- types, cost, refusals --------------------------------------------------------------------------------------------- */

static void tf32_keeps_ten_bits(void **state) {
  (void)state;
  static const struct {
    double value, kept;
  } cases[] = {{1 + 0x1p-10, 1 + 0x1p-10},
               {1 + 0x1p-11, 1},
               {1 + 3 * 0x1p-11, 1 + 0x1p-9},
               {-1.5, -1.5},
               {1 + 0x1p-11 + 0x1p-20, 1 + 0x1p-10}};
  float memory;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_dtype_store(RL_DTYPE_TF32, &memory, 0, cases[i].value);
    assert_true(memory == cases[i].kept);
  }
  rl_dtype_store(RL_DTYPE_TF32, &memory, 0, NAN);
  assert_true(isnan(memory));
}

static void bf16_rounds_to_even(void **state) {
  (void)state;
  static const struct {
    double value;
    uint16_t bits;
  } cases[] = {
      {1, 0x3f80},          {-2, 0xc000},         {1 + 0x1p-8, 0x3f80}, {1 + 0x1p-8 + 0x1p-20, 0x3f81}, {1 + 3 * 0x1p-8, 0x3f82},
      {0x1.fep127, 0x7f7f}, {0x1.ffp127, 0x7f80}, {-0.0, 0x8000}};
  uint16_t bits;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_dtype_store(RL_DTYPE_BF16, &bits, 0, cases[i].value);
    assert_int_equal(bits, cases[i].bits);
  }
  rl_dtype_store(RL_DTYPE_BF16, &bits, 0, NAN);
  assert_true(isnan(rl_dtype_load(RL_DTYPE_BF16, &bits, 0)));
}

static void cost_counts_compulsory_bytes_and_operations(void **state) {
  (void)state;
  rl_kernel_params relu = kernel_params(&rl_kernel_relu, RL_DTYPE_FP16, "scalar", "{\"n\":4194304}");
  rl_kernel_params gelu = kernel_params(&rl_kernel_bias_gelu, RL_DTYPE_FP64, "scalar", "{\"rows\":10,\"columns\":7}");
  rl_cost cost = rl_kernel_relu.workload.cost(&relu, 0);
  assert_true(cost.bytes == 2 * 2 * 4194304.0 && cost.operations == 4194304);
  cost = rl_kernel_bias_gelu.workload.cost(&gelu, 0);
  assert_true(cost.bytes == (70 + 7 + 70) * 8 && cost.operations == 6 * 70);
  static const struct {
    const rl_kernel_operator *op;
    const char *shape;
    double elements, operations;
  } others[] = {{&rl_kernel_softmax, "{\"rows\":3,\"columns\":5}", 30, 75},
                {&rl_kernel_rmsnorm, "{\"rows\":3,\"columns\":5}", 35, 60},
                {&rl_kernel_layernorm, "{\"rows\":3,\"columns\":5}", 40, 105},
                {&rl_kernel_transpose, "{\"rows\":3,\"columns\":5}", 30, 0},
                {&rl_kernel_reduction, "{\"rows\":3,\"columns\":5}", 18, 15},
                {&rl_kernel_rope, "{\"tokens\":3,\"heads\":5,\"head_size\":4}", 120, 180}};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    rl_kernel_params params = kernel_params(others[i].op, RL_DTYPE_BF16, "scalar", others[i].shape);
    cost = others[i].op->workload.cost(&params, 0);
    assert_true(cost.bytes == 2 * others[i].elements && cost.operations == others[i].operations);
  }
}

static void tolerance_follows_from_rounding(void **state) {
  (void)state;
  static const struct {
    const rl_kernel_operator *op;
    int dtype;
    double tolerance;
  } cases[] = {{&rl_kernel_copy, RL_DTYPE_BF16, 0},
               {&rl_kernel_residual_add, RL_DTYPE_FP64, 1.5 * 0x1p-52},
               {&rl_kernel_residual_add, RL_DTYPE_FP32, 1.5 * 0x1p-23},
               {&rl_kernel_silu_mul, RL_DTYPE_FP16, 0x1p-11 + 4 * 0x1p-23},
               {&rl_kernel_silu_mul, RL_DTYPE_BF16, 0x1p-8 + 4 * 0x1p-23}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_kernel_params params = kernel_params(cases[i].op, cases[i].dtype, "scalar", "{\"n\":1}");
    assert_true(rl_kernel_tolerance(&params, &(rl_kernel_shape){{1}}) == cases[i].tolerance);
  }
}

static void unsupported_parameters_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *shape, *variant, *pointer;
  } cases[] = {{"{}", "scalar", "/shape/n"},
               {"{\"n\":0}", "scalar", "/shape/n"},
               {"{\"n\":2.5}", "scalar", "/shape/n"},
               {"{\"n\":\"9\"}", "scalar", "/shape/n"},
               {"{\"n\":9,\"m\":1}", "scalar", "/shape/m"},
               {"[]", "scalar", "/shape"},
               {"{\"n\":1000000000}", "scalar", "/shape/n"},
               {"{\"n\":9}", "fast", "/variant"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_kernel_params params = kernel_params(&rl_kernel_relu, RL_DTYPE_FP32, cases[i].variant, cases[i].shape);
    rl_error err = {0};
    assert_null(rl_engine_find("relu", "auto", &params, &err));
    assert_int_equal(err.domain, RL_INPUT);
    assert_string_equal(err.json_pointer, cases[i].pointer);
  }
  rl_kernel_params foreign = kernel_params(&rl_kernel_relu, RL_DTYPE_TF32, "scalar", "{\"n\":9}");
  rl_error why = {0};
  assert_int_equal(rl_kernel_supports(&foreign, &why), -1);
  assert_string_equal(why.json_pointer, "/dtype");
  rl_kernel_params odd = kernel_params(&rl_kernel_rope, RL_DTYPE_FP32, "scalar", "{\"tokens\":9,\"heads\":1,\"head_size\":7}");
  assert_int_equal(rl_kernel_supports(&odd, &why), -1);
  assert_string_equal(why.json_pointer, "/shape/head_size");
  rl_kernel_params large = kernel_params(&rl_kernel_bias_gelu, RL_DTYPE_FP32, "scalar", "{\"rows\":100000,\"columns\":100000}");
  rl_error err = {0};
  assert_int_equal(rl_kernel_supports(&large, &err), -1);
  assert_string_equal(err.json_pointer, "/shape");
}

int main(int count, char **arguments) {
  (void)count;
  operators = arguments + 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_operator_type_and_variant_is_correct),
                                     cmocka_unit_test(references_match_known_values),
                                     cmocka_unit_test(a_shared_row_is_read_by_every_row),
                                     cmocka_unit_test(references_of_rows_match_known_values),
                                     cmocka_unit_test(a_segment_needs_only_its_window),
                                     cmocka_unit_test(unwritten_and_wrong_elements_are_found),
                                     cmocka_unit_test(opening_checking_and_launching_can_be_cancelled),
                                     cmocka_unit_test(a_large_result_is_sampled),
                                     cmocka_unit_test(inputs_follow_from_the_seed),
                                     cmocka_unit_test(tf32_keeps_ten_bits),
                                     cmocka_unit_test(bf16_rounds_to_even),
                                     cmocka_unit_test(cost_counts_compulsory_bytes_and_operations),
                                     cmocka_unit_test(tolerance_follows_from_rounding),
                                     cmocka_unit_test(unsupported_parameters_are_refused)};
  setenv("ROOFLINED_THREADS", "2", 1);
  device = rl_device_open(0, NULL);
  if (!device) return 1;
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->ops->close(device);
  return failed;
}
