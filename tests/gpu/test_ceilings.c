/* Tests the workload "ceilings" on a GPU: it measures a value for every rate, and none exceeds what the chip can do at its
 * maximum clock. */
#include "fixture.h"

#include "ceilings/instance.h"

enum { SAMPLES = 10 };

static rl_instance *open_ceilings(void) {
  rl_instance *instance = NULL;
  rl_ceilings_params params;
  rl_error err = {0};
  rl_ceilings.defaults(&params);
  const rl_engine *engine = rl_engine_find("ceilings", "auto", &params, &err);
  if (!engine || engine->open(device, &params, &instance, &err) < 0) fail_msg("%s", err.message);
  return instance;
}

static double best_rate(const rl_rate *rate) {
  const rl_sequence sequence = {rate->name, rate->launch, 1, 1};
  double us[SAMPLES], fastest_us = INFINITY;
  must(device->ops->sample(device, &sequence, RL_CACHE_WARM, SAMPLES, NULL, us, e));
  for (int i = 0; i < SAMPLES; i++) fastest_us = fmin(fastest_us, us[i]);
  return rate->amount / (fastest_us * 1e-6);
}

static double property(const cJSON *properties, const char *name) {
  return cJSON_GetNumberValue(cJSON_GetObjectItem(properties, name));
}

/* The chip's limits, in bytes or operations per SM and clock cycle; a multiply-add counts as two operations. Source: NVIDIA,
 * "H100 Tensor Core GPU Architecture". The limit of L2 is that of the SMs, which each read 64 bytes and write 64 bytes per
 * cycle. */
static const double hopper_per_cycle[RL_CEILINGS_COUNT] = {
    [RL_CEILING_l2_read] = 64,          [RL_CEILING_l2_write] = 64,          [RL_CEILING_l2_copy] = 128,
    [RL_CEILING_l1_read] = 128,         [RL_CEILING_shared_read] = 128,      [RL_CEILING_fp64] = 2 * 64,
    [RL_CEILING_fp32] = 2 * 128,        [RL_CEILING_fp16] = 2 * 256,         [RL_CEILING_bf16] = 2 * 256,
    [RL_CEILING_tensor_fp64] = 2 * 128, [RL_CEILING_tensor_tf32] = 2 * 1024, [RL_CEILING_tensor_fp16] = 2 * 2048,
    [RL_CEILING_tensor_bf16] = 2 * 2048};

static double limit_of(rl_ceiling ceiling, const cJSON *properties) {
  const double memory = 2 * property(properties, "memory_clock_max_khz") * 1e3 * property(properties, "memory_bus_bits") / 8;
  if (ceiling <= RL_CEILING_dram_triad) return memory;
  if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(properties, "compute_capability")), "9.0") != 0) return INFINITY;
  return hopper_per_cycle[ceiling] * property(properties, "sm_count") * property(properties, "sm_clock_max_khz") * 1e3;
}

static void rates_are_within_the_limits_of_the_chip(void **state) {
  (void)state;
  uint64_t before = device->memory_usage.total_bytes;
  rl_instance *instance = open_ceilings();
  char *text = rl_device_properties(0, NULL);
  cJSON *properties = cJSON_Parse(text);
  assert_int_equal(instance->rate_count, RL_CEILINGS_COUNT);
  for (int i = 0; i < RL_CEILINGS_COUNT; i++) {
    const rl_rate *rate = &instance->rates[i];
    assert_string_equal(rate->name, rl_ceiling_rate_names[i]);
    if (i == RL_CEILING_l3_read) assert_true(!rate->launch && rate->reason[0]);
    if (!rate->launch) continue;
    double measured = best_rate(rate), limit = limit_of((rl_ceiling)i, properties);
    print_message("%-32s %.4g, %.1f %% of the limit\n", rate->name, measured, 100 * measured / limit);
    if (!(measured > 0 && measured <= limit)) fail_msg("%s is %g, above %g", rate->name, measured, limit);
  }
  cJSON_Delete(properties);
  free(text);
  instance->ops->close(instance);
  assert_int_equal(device->memory_usage.total_bytes, before);
}

/* Tests that in each pair the second rate is higher than the first: it belongs to a nearer level of memory, to a type with fewer
 * bits, or to a specialised unit. */
static void rates_are_in_order(void **state) {
  (void)state;
  static const rl_ceiling slower_faster[][2] = {
      {RL_CEILING_dram_read, RL_CEILING_l2_read},      {RL_CEILING_l2_read, RL_CEILING_l1_read},
      {RL_CEILING_l2_read, RL_CEILING_shared_read},    {RL_CEILING_fp64, RL_CEILING_fp32},
      {RL_CEILING_fp32, RL_CEILING_tensor_tf32},       {RL_CEILING_tensor_tf32, RL_CEILING_tensor_fp16},
      {RL_CEILING_tensor_tf32, RL_CEILING_tensor_bf16}};
  rl_instance *instance = open_ceilings();
  for (size_t i = 0; i < sizeof slower_faster / sizeof *slower_faster; i++) {
    double slower = best_rate(&instance->rates[slower_faster[i][0]]), faster = best_rate(&instance->rates[slower_faster[i][1]]);
    if (!(slower < faster))
      fail_msg("%s is %g, %s %g", rl_ceiling_rate_names[slower_faster[i][0]], slower, rl_ceiling_rate_names[slower_faster[i][1]],
               faster);
  }
  instance->ops->close(instance);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rates_are_within_the_limits_of_the_chip),
                                     cmocka_unit_test(rates_are_in_order)};
  need_gpu(NULL);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->ops->close(device);
  return failed;
}
