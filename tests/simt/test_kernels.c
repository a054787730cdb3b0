/* The kernel families that are hand-written, in every type and variant, over those awkward shapes that the machine does in no
 * time. */
#include <float.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/unit/kernel_cases.h"

static rl_device *device;
static char **families;

static void every_family_type_and_variant_is_right(void **state) {
  (void)state;
  max_case_bytes = 985000; /* with rows of every type that a cluster shares, more than both clusters have places for */
  check_families(device, families);
  assert_int_equal(device->memory.total_bytes, 0);
}

/* --- rows that a cluster shares --------------------------------------------------------------------------------------------- */

static bool wanted(const rl_kernel_family *family) {
  bool named = *families == NULL;
  for (char **name = families; *name; name++) named |= strcmp(*name, family->workload.name) == 0;
  return named;
}

static void check_launches(const char *shape, int launches) {
  static const rl_kernel_family *const of_rows[] = {&rl_kernel_softmax, &rl_kernel_rmsnorm, &rl_kernel_layernorm};
  for (size_t i = 0; i < sizeof of_rows / sizeof *of_rows; i++) {
    if (!wanted(of_rows[i])) continue;
    rl_kernel_params params = kernel_params(of_rows[i], RL_DTYPE_FP32, "vector", shape);
    rl_kernel_instance *kernel = open_kernel(device, &params);
    for (int launch = 0; launch < launches; launch++) assert_correct(kernel);
    close_kernel(kernel);
  }
}

static void a_launch_leaves_nothing_to_the_next(void **state) {
  (void)state;
  check_launches("{\"rows\":14,\"columns\":8196}", 3); /* rows are drawn for, */
  check_launches("{\"rows\":1,\"columns\":8196}", 3);  /* and none is */
}

/* The parts of a row differ by more than the inputs of a check do: in the units of their sums, with nothing at all in some. */
static double element_of(int row, double at) {
  const double noise = sin(1e4 * at);
  switch (row) {
    case 0: return noise - floor(40 * at);
    case 1: return noise + floor(64 * at) / 2;
    case 2: return at < 0.7 ? -INFINITY : noise;
    case 3: return at < 0.1 ? noise : -INFINITY;
    case 4: return at < 0.3 ? -30000 : 30000 + noise;
    default: return noise - (at < 0.5 ? 20000 : 20003);
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
  rl_sequence one = kernel->sequence;
  rl_program once = {.name = "parts", .sequences = &one, .sequence_count = 1};
  rl_elapsed elapsed;
  void *in = malloc(bytes), *out = malloc(bytes);
  const double epsilon = rl_dtype_epsilon(dtype), zero = dtype == RL_DTYPE_FP64 ? DBL_MIN : FLT_MIN, /* below it */
      least = 4 * fmax(zero, epsilon * rl_dtype_smallest_normal(dtype));
  one.repeat = 1;
  for (int64_t i = 0; i < ROWS * columns; i++)
    rl_dtype_store(dtype, in, (size_t)i, element_of((int)(i / columns), (double)(i % columns) / (double)columns));
  assert_int_equal(device->ops->upload(device, (void *)kernel->in[0], in, bytes, &err), 0);
  assert_int_equal(device->ops->run_eager(device, &once, NULL, &elapsed, &err), 0);
  assert_int_equal(device->ops->download(device, out, kernel->out, bytes, &err), 0);
  for (size_t row = 0; row < ROWS; row++) {
    const size_t first = row * (size_t)columns, end = first + (size_t)columns;
    double most = -INFINITY, sum = 0;
    for (size_t i = first; i < end; i++) most = fmax(most, rl_dtype_load(dtype, in, i));
    for (size_t i = first; i < end; i++) sum += exp(rl_dtype_load(dtype, in, i) - most);
    for (size_t i = first; i < end; i++) {
      const double wanted = exp(rl_dtype_load(dtype, in, i) - most) / sum, got = rl_dtype_load(dtype, out, i);
      const double few = (100 * fmin(epsilon, 1e-5) + epsilon) * wanted;
      if (!(fabs(got - wanted) <= few + least))
        fail_msg("%s row %zu element %zu: %g, not %g", rl_dtype_names[dtype], row, i - first, got, wanted);
    }
  }
  free(in), free(out);
  close_kernel(kernel);
}

static void parts_of_a_row_may_differ(void **state) {
  (void)state;
  if (!wanted(&rl_kernel_softmax)) return;
  check_parts(RL_DTYPE_FP64, 4100);
  check_parts(RL_DTYPE_FP32, 8200);
  check_parts(RL_DTYPE_FP16, 16400);
  check_parts(RL_DTYPE_BF16, 16400);
}

/* On a device with smaller clusters, or parts of one. */
extern uint32_t simt_most_cluster;
static void rows_that_no_cluster_can_share_are_streamed(void **state) {
  (void)state;
  const uint32_t before = simt_most_cluster;
  simt_most_cluster = 8;
  check_launches("{\"rows\":2,\"columns\":65544}", 1);
  simt_most_cluster = before;
}

int main(int count, char **arguments) {
  (void)count;
  rl_error err = {0};
  families = arguments + 1;
  device = rl_device_open(0, &err);
  if (!device) return fprintf(stderr, "%s\n", err.message), 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_family_type_and_variant_is_right), cmocka_unit_test(a_launch_leaves_nothing_to_the_next),
      cmocka_unit_test(parts_of_a_row_may_differ), cmocka_unit_test(rows_that_no_cluster_can_share_are_streamed)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->ops->close(device);
  return failed;
}
