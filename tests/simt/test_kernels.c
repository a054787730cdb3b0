/* Checks our kernel operators in every type and variant, on those shapes of tests/unit/kernel_cases.h that are small enough for
 * the emulator. */
#include <float.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/unit/kernel_cases.h"

static rl_device *device;
static char **operators;

static void results_of_every_operator_type_and_variant_match(void **state) {
  (void)state;
  max_case_bytes = 985000; /* includes cluster_per_row for every type, with more rows than both clusters have stages for */
  check_operators(device, operators);
  assert_int_equal(device->memory_usage.total_bytes, 0);
}

/* --- cluster_per_row -------------------------------------------------------------------------------------------------------- */

static bool is_selected(const rl_kernel_operator *op) {
  bool selected = *operators == NULL;
  for (char **name = operators; *name; name++) selected |= strcmp(*name, op->workload.name) == 0;
  return selected;
}

static void check_launches(const char *shape, int launches) {
  static const rl_kernel_operator *const row_operators[] = {&rl_kernel_softmax, &rl_kernel_rmsnorm, &rl_kernel_layernorm};
  for (size_t i = 0; i < sizeof row_operators / sizeof *row_operators; i++) {
    if (!is_selected(row_operators[i])) continue;
    rl_kernel_params params = kernel_params(row_operators[i], RL_DTYPE_FP32, "vector", shape);
    rl_kernel_instance *kernel = open_kernel(device, &params);
    for (int launch = 0; launch < launches; launch++) assert_correct(kernel);
    close_kernel(kernel);
  }
}

static void launches_do_not_affect_the_next(void **state) {
  (void)state;
  check_launches("{\"rows\":14,\"columns\":8196}", 3); /* rows from the atomic counter */
  check_launches("{\"rows\":1,\"columns\":8196}", 3);  /* static rows alone */
}

/* Returns the element of a row at `position`, in [0, 1). The blocks' parts of these rows differ more than in the usual checks: in
 * the power of two of their sums, and some parts have only -infinity. */
static double element_of(int row, double position) {
  const double noise = sin(1e4 * position);
  switch (row) {
    case 0: return noise - floor(40 * position);
    case 1: return noise + floor(64 * position) / 2;
    case 2: return position < 0.7 ? -INFINITY : noise;
    case 3: return position < 0.1 ? noise : -INFINITY;
    case 4: return position < 0.3 ? -30000 : 30000 + noise;
    default: return noise - (position < 0.5 ? 20000 : 20003);
  }
}

static void check_parts(int dtype, int64_t columns) {
  enum { ROWS = 6 };
  rl_error err = {0};
  char shape[64];
  snprintf(shape, sizeof shape, "{\"rows\":%d,\"columns\":%lld}", ROWS, (long long)columns);
  rl_kernel_params params = kernel_params(&rl_kernel_softmax, dtype, "vector", shape);
  rl_kernel_instance *kernel = open_kernel(device, &params);
  const size_t bytes = (size_t)(ROWS * columns) * rl_dtype_size(dtype);
  rl_sequence sequence = kernel->sequence;
  rl_sequence_list sequence_list = {.name = "parts", .sequences = &sequence, .sequence_count = 1};
  rl_elapsed elapsed;
  void *in = malloc(bytes), *out = malloc(bytes);
  const double epsilon = rl_dtype_epsilon(dtype);
  const double smallest = dtype == RL_DTYPE_FP64 ? DBL_MIN : FLT_MIN; /* smaller results are flushed to zero */
  const double absolute_tolerance = 4 * fmax(smallest, epsilon * rl_dtype_smallest_normal(dtype));
  sequence.repeat = 1;
  for (int64_t i = 0; i < ROWS * columns; i++)
    rl_dtype_store(dtype, in, (size_t)i, element_of((int)(i / columns), (double)(i % columns) / (double)columns));
  assert_int_equal(device->ops->upload(device, (void *)kernel->in[0], in, bytes, &err), 0);
  assert_int_equal(device->ops->run_eager(device, &sequence_list, NULL, &elapsed, &err), 0);
  assert_int_equal(device->ops->download(device, out, kernel->out, bytes, &err), 0);
  for (size_t row = 0; row < ROWS; row++) {
    const size_t first = row * (size_t)columns, end = first + (size_t)columns;
    double largest = -INFINITY, sum = 0;
    for (size_t i = first; i < end; i++) largest = fmax(largest, rl_dtype_load(dtype, in, i));
    for (size_t i = first; i < end; i++) sum += exp(rl_dtype_load(dtype, in, i) - largest);
    for (size_t i = first; i < end; i++) {
      const double expected = exp(rl_dtype_load(dtype, in, i) - largest) / sum, result = rl_dtype_load(dtype, out, i);
      const double tolerance = (100 * fmin(epsilon, 1e-5) + epsilon) * expected;
      if (!(fabs(result - expected) <= tolerance + absolute_tolerance))
        fail_msg("%s row %zu element %zu: %g, not %g", rl_dtype_names[dtype], row, i - first, result, expected);
    }
  }
  free(in), free(out);
  close_kernel(kernel);
}

static void blocks_may_have_very_different_parts_of_a_row(void **state) {
  (void)state;
  if (!is_selected(&rl_kernel_softmax)) return;
  check_parts(RL_DTYPE_FP64, 4100);
  check_parts(RL_DTYPE_FP32, 8200);
  check_parts(RL_DTYPE_FP16, 16400);
  check_parts(RL_DTYPE_BF16, 16400);
}

/* The maximum number of blocks of a cluster on the emulated device. */
extern uint32_t simt_max_cluster;
static void rows_too_long_for_a_cluster_are_streamed(void **state) {
  (void)state;
  const uint32_t max_cluster = simt_max_cluster;
  simt_max_cluster = 8;
  check_launches("{\"rows\":2,\"columns\":65544}", 1);
  simt_max_cluster = max_cluster;
}

int main(int count, char **arguments) {
  (void)count;
  rl_error err = {0};
  operators = arguments + 1;
  device = rl_device_open(0, &err);
  if (!device) return fprintf(stderr, "%s\n", err.message), 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(results_of_every_operator_type_and_variant_match),
                                     cmocka_unit_test(launches_do_not_affect_the_next),
                                     cmocka_unit_test(blocks_may_have_very_different_parts_of_a_row),
                                     cmocka_unit_test(rows_too_long_for_a_cluster_are_streamed)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->ops->close(device);
  return failed;
}
