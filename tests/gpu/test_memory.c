/* What an engine wants of a device besides the data set. Counted where it is allocated, not where it lies, so that the machine of
 * tests/simt says the same, but for what libraries want. Arguments: one engine instead of all of them. */
#include "fixture.h"

enum { MB = 1000000 };

static uint64_t besides_data_set(void) { return device->memory.total_bytes - device->memory.bytes[RL_MEMORY_DATASET]; }

/* Of a training that is ready to run. */
static double wanted_bytes(const char *engine, int precision, int64_t batch) {
  rl_train_params params = small_training((engine_case){engine, precision}, batch, batch);
  strcpy(params.dataset, "synthetic");
  const uint64_t before = besides_data_set();
  training t = open_training(params);
  const uint64_t wanted = besides_data_set() - before;
  close_training(&t);
  printf("  %s, %s, batch %lld: %.2f MB\n", engine, rl_precision_names[precision], (long long)batch, (double)wanted / MB);
  return (double)wanted;
}

static bool has(const char *engine, int precision) {
  for (int i = 0; i < engine_case_count; i++)
    if (strcmp(engine_cases[i].engine, engine) == 0 && engine_cases[i].precision == precision) return true;
  return false;
}

static void test_half_the_width_saves_memory(void **state) {
  (void)state;
  for (int i = 0; i < engine_case_count; i++) {
    const char *engine = engine_cases[i].engine;
    if (engine_cases[i].precision != RL_FP16 || !has(engine, RL_FP32)) continue;
    assert_true(wanted_bytes(engine, RL_FP16, 4096) <= 0.6 * wanted_bytes(engine, RL_FP32, 4096));
  }
}

static void test_a_small_batch_wants_little(void **state) {
  (void)state;
  if (!has("persistent", RL_FP16)) skip();
  assert_true(wanted_bytes("persistent", RL_FP32, 64) <= 16 * MB);
  assert_true(wanted_bytes("persistent", RL_FP16, 64) <= 12 * MB);
}

int main(int count, char **arguments) {
  need_gpu(count > 1 ? arguments[1] : NULL);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_half_the_width_saves_memory),
                                     cmocka_unit_test(test_a_small_batch_wants_little)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->ops->close(device);
  return failed;
}
