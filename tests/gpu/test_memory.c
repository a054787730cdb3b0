/* Tests that the device memory which a training engine allocates besides the data set stays below bounds. rl_device_ops.allocate
 * counts the bytes, so tests/simt gives the same numbers as a GPU, except for the workspaces of libraries. Argument: the name of
 * an engine; without it, all engines are tested. */
#include "fixture.h"

enum { MB = 1000000 };

static uint64_t bytes_besides_data_set(void) {
  return device->memory_usage.total_bytes - device->memory_usage.bytes[RL_MEMORY_DATASET];
}

/* Opens a training instance and returns the bytes of device memory that it allocated besides the data set. */
static double instance_bytes(const char *engine, int precision, int64_t batch) {
  rl_train_params params = small_training((engine_case){engine, precision}, batch, batch);
  strcpy(params.dataset, "synthetic");
  const uint64_t before = bytes_besides_data_set();
  training t = open_training(params);
  const uint64_t bytes = bytes_besides_data_set() - before;
  close_training(&t);
  printf("  %s, %s, batch %lld: %.2f MB\n", engine, rl_precision_names[precision], (long long)batch, (double)bytes / MB);
  return (double)bytes;
}

static bool is_tested(const char *engine, int precision) {
  for (int i = 0; i < engine_case_count; i++)
    if (strcmp(engine_cases[i].engine, engine) == 0 && engine_cases[i].precision == precision) return true;
  return false;
}

static void fp16_needs_less_memory_than_fp32(void **state) {
  (void)state;
  for (int i = 0; i < engine_case_count; i++) {
    const char *engine = engine_cases[i].engine;
    if (engine_cases[i].precision != RL_FP16 || !is_tested(engine, RL_FP32)) continue;
    assert_true(instance_bytes(engine, RL_FP16, 4096) <= 0.6 * instance_bytes(engine, RL_FP32, 4096));
  }
}

static void small_batches_need_little_memory(void **state) {
  (void)state;
  if (!is_tested("persistent", RL_FP16)) skip();
  assert_true(instance_bytes("persistent", RL_FP32, 64) <= 16 * MB);
  assert_true(instance_bytes("persistent", RL_FP16, 64) <= 12 * MB);
}

int main(int count, char **arguments) {
  need_gpu(count > 1 ? arguments[1] : NULL);
  const struct CMUnitTest tests[] = {cmocka_unit_test(fp16_needs_less_memory_than_fp32),
                                     cmocka_unit_test(small_batches_need_little_memory)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->ops->close(device);
  return failed;
}
