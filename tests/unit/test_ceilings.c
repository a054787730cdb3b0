/* Tests the workload "ceilings" on the CPU: every rate has a unique name, either a launch or a reason, and a value that a CPU can
 * reach. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ceilings/instance.h"

enum { SAMPLES = 5 };

static rl_instance *open_ceilings(rl_device *device) {
  rl_instance *instance = NULL;
  rl_ceilings_params params;
  rl_error err = {0};
  rl_ceilings.defaults(&params);
  const rl_engine *engine = rl_engine_find("ceilings", "auto", &params, &err);
  if (!engine || engine->open(device, &params, &instance, &err) < 0) fail_msg("%s", err.message);
  return instance;
}

static rl_device *open_cpu(const char *threads) {
  setenv("ROOFLINED_THREADS", threads, 1);
  rl_device *device = rl_device_open(0, NULL);
  assert_non_null(device);
  return device;
}

static double best_rate(rl_device *device, const rl_rate *rate) {
  const rl_sequence sequence = {rate->name, rate->launch, 1, 1};
  double us[SAMPLES], fastest_us = INFINITY;
  assert_int_equal(device->ops->sample(device, &sequence, RL_CACHE_WARM, SAMPLES, NULL, us, NULL), 0);
  for (int i = 0; i < SAMPLES; i++) fastest_us = fmin(fastest_us, us[i]);
  return rate->amount / (fastest_us * 1e-6);
}

static void names_are_unique_and_end_in_the_unit(void **state) {
  (void)state;
  for (int i = 0; i < RL_CEILINGS_COUNT; i++) {
    const char *name = rl_ceiling_rate_names[i], *launch = rl_ceiling_launch_names[i];
    assert_int_equal(strncmp(name, launch, strlen(launch)), 0);
    bool memory = i < RL_CEILING_fp64;
    assert_string_equal(name + strlen(launch), memory ? "_bytes_per_s" : "_operations_per_s");
    for (int k = 0; k < i; k++) assert_string_not_equal(name, rl_ceiling_rate_names[k]);
  }
  assert_null(rl_ceiling_rate_names[RL_CEILINGS_COUNT]);
  assert_null(rl_ceiling_launch_names[RL_CEILINGS_COUNT]);
}

/* Returns a rate that no CPU reaches: per thread four FMAs of 512 bits a cycle at 8 GHz; 5 TB/s of memory bandwidth. */
static double upper_limit(int ceiling, int threads) {
  return ceiling == RL_CEILING_fp32 ? threads * 4 * 16 * 2 * 8e9 : ceiling == RL_CEILING_fp64 ? threads * 4 * 8 * 2 * 8e9 : 5e12;
}

static void rates_are_below_the_limits_of_a_cpu(void **state) {
  (void)state;
  rl_device *device = open_cpu("2");
  rl_instance *instance = open_ceilings(device);
  assert_int_equal(instance->rate_count, RL_CEILINGS_COUNT);
  for (int i = 0; i < RL_CEILINGS_COUNT; i++) {
    const rl_rate *rate = &instance->rates[i];
    assert_string_equal(rate->name, rl_ceiling_rate_names[i]);
    if (!rate->launch) {
      assert_true(rate->reason && rate->reason[0]);
      continue;
    }
    assert_string_equal(rate->launch->name, rl_ceiling_launch_names[i]);
    double measured = best_rate(device, rate);
    if (!(measured > 1e6 && measured < upper_limit(i, 2))) fail_msg("%s is %g", rate->name, measured);
  }
  static const rl_ceiling required[] = {RL_CEILING_dram_read,  RL_CEILING_dram_write, RL_CEILING_dram_copy,
                                        RL_CEILING_dram_triad, RL_CEILING_fp64,       RL_CEILING_fp32};
  for (size_t i = 0; i < sizeof required / sizeof *required; i++) assert_non_null(instance->rates[required[i]].launch);
  instance->ops->close(instance);
  assert_int_equal(device->memory_usage.total_bytes, 0);
  device->ops->close(device);
}

/* Two measurements of a rate differ by less than a factor of 8, so that the test passes on a busy machine. */
static void repeated_rates_agree(void **state) {
  (void)state;
  rl_device *device = open_cpu("1");
  rl_instance *instance = open_ceilings(device);
  static const rl_ceiling ceilings[] = {RL_CEILING_dram_read, RL_CEILING_fp32};
  for (size_t i = 0; i < sizeof ceilings / sizeof *ceilings; i++) {
    double first = best_rate(device, &instance->rates[ceilings[i]]), second = best_rate(device, &instance->rates[ceilings[i]]);
    if (!(first / second < 8 && second / first < 8)) fail_msg("%s: %g and %g", rl_ceiling_rate_names[ceilings[i]], first, second);
  }
  instance->ops->close(instance);
  device->ops->close(device);
}

/* Each memory rate counts between 90 and 100 % of the allocated bytes; fp32 counts one product of 512×512 matrices for each
 * thread. */
static void amounts_match_the_buffers(void **state) {
  (void)state;
  rl_device *device = open_cpu("2");
  rl_instance *instance = open_ceilings(device);
  const double bytes = (double)device->memory_usage.bytes[RL_MEMORY_DATASET];
  for (int i = RL_CEILING_dram_read; i <= RL_CEILING_dram_triad; i++) {
    double amount = instance->rates[i].amount;
    assert_true(amount <= bytes && amount > 0.9 * bytes);
  }
  const rl_rate *fp32 = &instance->rates[RL_CEILING_fp32];
  assert_true(fp32->amount == 2.0 * 512 * 512 * 512 * 2); /* the last factor: 2 threads */
  instance->ops->close(instance);
  device->ops->close(device);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(names_are_unique_and_end_in_the_unit),
                                     cmocka_unit_test(rates_are_below_the_limits_of_a_cpu),
                                     cmocka_unit_test(repeated_rates_agree), cmocka_unit_test(amounts_match_the_buffers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
