/* Tests the kernel workloads (kernels/kernel) on the GPU: every result against its reference, and samples for plausible times.
 * Usage: test_gpu_kernels [MAX_BYTES_OF_A_CASE] [OPERATOR...]. With operators, the program only checks their results. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "fixture.h"

#include "kernel/sequence.h"
#include "tests/unit/kernel_cases.h"

static char **operators; /* operator names that the program's arguments give */

static void results_of_every_operator_type_and_variant_match(void **state) {
  (void)state;
  check_operators(device, operators);
  assert_int_equal(device->memory_usage.total_bytes, 0);
}

/* Tests that gemm, attention and conv support common shapes and types, one after the other in the same process. */
static void libraries_support_common_shapes_and_types(void **state) {
  (void)state;
  enum { HALVES = 1 << RL_DTYPE_FP16 | 1 << RL_DTYPE_BF16, FLOATS = 1 << RL_DTYPE_FP32 | 1 << RL_DTYPE_TF32 | HALVES };
#define CONV "{\"images\":4,\"height\":28,\"width\":29,\"channels\":64,\"filters\":32,\"kernel\":3,\"stride\":1,\"padding\":1}"
#define ATTENTION(HEADS, KV, N, D, CAUSAL) \
  "{\"batch\":2,\"heads\":" #HEADS ",\"kv_heads\":" #KV ",\"sequence\":" #N ",\"head_size\":" #D ",\"causal\":" #CAUSAL "}"
  static const struct {
    const rl_kernel_operator *op;
    int dtypes;
    const char *shape;
  } cases[] = {{&rl_kernel_gemm, FLOATS | 1 << RL_DTYPE_FP64, "{\"m\":1,\"n\":4096,\"k\":4096}"},
               {&rl_kernel_gemm, FLOATS | 1 << RL_DTYPE_FP64, "{\"m\":513,\"n\":515,\"k\":1027}"},
               {&rl_kernel_attention, HALVES, ATTENTION(4, 4, 512, 64, false)},
               {&rl_kernel_attention, HALVES, ATTENTION(4, 4, 512, 64, true)},
               {&rl_kernel_attention, HALVES, ATTENTION(8, 2, 333, 128, false)},
               {&rl_kernel_attention, HALVES, ATTENTION(8, 2, 333, 128, true)},
               {&rl_kernel_conv, FLOATS, CONV},
               {&rl_kernel_conv_dgrad, FLOATS, CONV},
               {&rl_kernel_conv_wgrad, FLOATS, CONV}};
#undef CONV
#undef ATTENTION
  static const char *const variants[] = {"heuristic", "searched"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int dtype = 0; dtype < RL_DTYPE_COUNT; dtype++)
      for (int variant = 0; variant < 2 && cases[i].dtypes & 1 << dtype; variant++) {
        rl_kernel_params params = kernel_params(cases[i].op, dtype, variants[variant], cases[i].shape);
        rl_kernel_instance *kernel = open_kernel(device, &params);
        assert_correct(kernel);
        close_kernel(kernel);
      }
}

static void unsupported_requests_are_input_errors(void **state) {
  (void)state;
#define ATTENTION(D) "{\"batch\":1,\"heads\":1,\"kv_heads\":1,\"sequence\":8,\"head_size\":" #D ",\"causal\":true}"
  static const struct {
    const rl_kernel_operator *op;
    int dtype;
    const char *shape, *pointer;
  } cases[] = {
      {&rl_kernel_attention, RL_DTYPE_FP32, ATTENTION(8), "/dtype"},
      {&rl_kernel_attention, RL_DTYPE_FP16, ATTENTION(7), "/shape/head_size"},
      {&rl_kernel_conv, RL_DTYPE_FP64,
       "{\"images\":1,\"height\":8,\"width\":8,\"channels\":8,\"filters\":8,\"kernel\":3,\"stride\":1,\"padding\":1}", "/dtype"}};
#undef ATTENTION
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_kernel_params params = kernel_params(cases[i].op, cases[i].dtype, "heuristic", cases[i].shape);
    rl_error err = {0};
    assert_null(try_open_kernel(device, &params, &err));
    assert_int_equal(err.domain, RL_INPUT);
    assert_string_equal(err.json_pointer, cases[i].pointer);
  }
}

static int compare_doubles(const void *a, const void *b) {
  double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

static double median_us(rl_kernel_instance *kernel, rl_cache_state cache) {
  enum { COUNT = 41 };
  double us[COUNT];
  must(device->ops->sample(device, &kernel->sequence, cache, COUNT, NULL, us, e));
  qsort(us, COUNT, sizeof *us, compare_doubles);
  assert_true(us[0] > 0);
  return us[COUNT / 2];
}

/* Tests that buffers which fit into L2 are copied faster with a warm cache than with a cold one, while larger buffers take the
 * same time with both. */
static void warm_samples_are_shorter_where_the_cache_helps(void **state) {
  (void)state;
  rl_kernel_params small = kernel_params(&rl_kernel_copy, RL_DTYPE_FP32, "vector", "{\"n\":1048576}");
  rl_kernel_params large = kernel_params(&rl_kernel_copy, RL_DTYPE_FP32, "vector", "{\"n\":67108864}");
  rl_kernel_instance *kernel = open_kernel(device, &small);
  double cold = median_us(kernel, RL_CACHE_COLD), warm = median_us(kernel, RL_CACHE_WARM);
  print_message("copy of 4 MiB: cold %.2f us, warm %.2f us\n", cold, warm);
  assert_true(warm < cold);
  close_kernel(kernel);
  kernel = open_kernel(device, &large);
  cold = median_us(kernel, RL_CACHE_COLD), warm = median_us(kernel, RL_CACHE_WARM);
  double bytes_per_s = large.op->workload.cost(&large, 0).bytes / (cold * 1e-6);
  print_message("copy of 256 MiB: cold %.2f us, warm %.2f us, %.3g bytes/s\n", cold, warm, bytes_per_s);
  assert_true(bytes_per_s > 1e10 && bytes_per_s < 1e13 && fabs(cold / warm - 1) < 0.25);
  close_kernel(kernel);
}

/* Tests that every kernel of a sequence gives the right result, that a graph has one launch per kernel and sample, and that the
 * sequence takes at least as long as its longest kernel would at 10 TB/s. */
static void a_sequence_is_one_graph(void **state) {
  (void)state;
  static const char kernels[] =
      "[{\"kernel\":\"rmsnorm\",\"dtype\":\"fp16\",\"shape\":{\"rows\":257,\"columns\":1025}},"
      "{\"kernel\":\"copy\",\"shape\":{\"n\":33554432},\"variant\":\"vector\"},"
      "{\"kernel\":\"copy\",\"dtype\":\"bf16\",\"shape\":{\"n\":17}}]";
  rl_kernel_sequence_params params;
  rl_error err = {0};
  rl_instance *instance = NULL;
  rl_executable *executable;
  rl_elapsed elapsed;
  rl_check check;
  double us[5];
  rl_kernel_sequence.defaults(&params);
  params.samples = 5;
  snprintf(params.kernels, sizeof params.kernels, "%s", kernels);
  const rl_engine *engine = rl_engine_find("sequence", "auto", &params, &err);
  if (!engine || engine->open(device, &params, &instance, &err) < 0) fail_msg("%s", err.message);
  must(instance->ops->check(instance, &check, e));
  assert_true(check.relative_error <= check.tolerance);
  must(device->ops->instantiate(device, &instance->iteration, &executable, e));
  must(device->ops->run(device, executable, NULL, &elapsed, e));
  assert_int_equal(elapsed.stream_operations, 3 * 5);
  must(device->ops->sample(device, &instance->iteration.sequences[0], RL_CACHE_WARM, 5, NULL, us, e));
  assert_true(us[0] > 2.0 * 4 * 33554432 / 1e13 * 1e6);
  device->ops->free_executable(device, executable);
  instance->ops->close(instance);
  assert_int_equal(device->memory_usage.total_bytes, 0);
}

static bool cancel_at_second_call(void *context) { return ++*(int *)context > 1; }

static void sampling_can_be_cancelled(void **state) {
  (void)state;
  rl_kernel_params params = kernel_params(&rl_kernel_copy, RL_DTYPE_FP32, "vector", "{\"n\":1048576}");
  rl_kernel_instance *kernel = open_kernel(device, &params);
  static double us[1000];
  int calls = 0;
  rl_observer observer = {.context = &calls, .cancelled = cancel_at_second_call};
  rl_error err = {0};
  assert_int_equal(device->ops->sample(device, &kernel->sequence, RL_CACHE_COLD, 1000, &observer, us, &err), -1);
  assert_true(err.domain == RL_ERRNO && err.code == ECANCELED);
  assert_correct(kernel);
  close_kernel(kernel);
}

int main(int count, char **arguments) {
  operators = arguments + 1;
  if (count > 1 && isdigit((unsigned char)**operators)) max_case_bytes = atof(*operators++);
  const struct CMUnitTest tests[] = {cmocka_unit_test(libraries_support_common_shapes_and_types),
                                     cmocka_unit_test(unsupported_requests_are_input_errors),
                                     cmocka_unit_test(results_of_every_operator_type_and_variant_match),
                                     cmocka_unit_test(warm_samples_are_shorter_where_the_cache_helps),
                                     cmocka_unit_test(a_sequence_is_one_graph),
                                     cmocka_unit_test(sampling_can_be_cancelled)};
  if (*operators) cmocka_set_test_filter("results_of_every_operator_*");
  need_gpu(NULL);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->ops->close(device);
  return failed;
}
