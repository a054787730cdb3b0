/* The ceilings of the CPU: every rate has a name of its own and is measured or has a reason, and none is what no CPU could do. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ceilings/instance.h"

enum { SAMPLES = 5 };

static rl_instance *open_on(rl_device *device) {
  rl_instance *instance = NULL;
  rl_ceilings_params params;
  rl_error err = {0};
  rl_ceilings.defaults(&params);
  const rl_engine *engine = rl_engine_find("ceilings", "auto", &params, &err);
  if (!engine || engine->open(device, &params, &instance, &err)) fail_msg("%s", err.message);
  return instance;
}

static rl_device *open_cpu(const char *threads) {
  setenv("ROOFLINED_THREADS", threads, 1);
  rl_device *device = rl_device_open(0, NULL);
  assert_non_null(device);
  return device;
}

static double best(rl_device *device, const rl_rate *rate) {
  const rl_sequence alone = {rate->name, rate->launch, 1, 1};
  double us[SAMPLES], least = INFINITY;
  assert_int_equal(device->ops->sample(device, &alone, RL_CACHE_WARM, SAMPLES, NULL, us, NULL), 0);
  for (int i = 0; i < SAMPLES; i++) least = fmin(least, us[i]);
  return rate->amount / (least * 1e-6);
}

static void names_say_what_and_in_which_unit(void **state) {
  (void)state;
  for (int i = 0; i < RL_CEILINGS_COUNT; i++) {
    const char *name = rl_ceiling_names[i], *launch = rl_ceiling_launches[i];
    assert_int_equal(strncmp(name, launch, strlen(launch)), 0);
    bool memory = i < RL_CEILING_fp64;
    assert_string_equal(name + strlen(launch), memory ? "_bytes_per_s" : "_operations_per_s");
    for (int k = 0; k < i; k++) assert_string_not_equal(name, rl_ceiling_names[k]);
  }
  assert_null(rl_ceiling_names[RL_CEILINGS_COUNT]);
  assert_null(rl_ceiling_launches[RL_CEILINGS_COUNT]);
}

/* Four products of 16 floats at 8 GHz, and more than ten channels of the fastest memory. */
static double most(int which, int threads) {
  return which == RL_CEILING_fp32 ? threads * 4 * 16 * 2 * 8e9 : which == RL_CEILING_fp64 ? threads * 4 * 8 * 2 * 8e9 : 5e12;
}

static void rates_are_possible(void **state) {
  (void)state;
  rl_device *device = open_cpu("2");
  rl_instance *instance = open_on(device);
  assert_int_equal(instance->rate_count, RL_CEILINGS_COUNT);
  for (int i = 0; i < RL_CEILINGS_COUNT; i++) {
    const rl_rate *rate = &instance->rates[i];
    assert_string_equal(rate->name, rl_ceiling_names[i]);
    if (!rate->launch) {
      assert_true(rate->reason && rate->reason[0]);
      continue;
    }
    assert_string_equal(rate->launch->name, rl_ceiling_launches[i]);
    double got = best(device, rate);
    if (!(got > 1e6 && got < most(i, 2))) fail_msg("%s is %g", rate->name, got);
  }
  static const rl_ceiling always[] = {RL_CEILING_dram_read,  RL_CEILING_dram_write, RL_CEILING_dram_copy,
                                      RL_CEILING_dram_triad, RL_CEILING_fp64,       RL_CEILING_fp32};
  for (size_t i = 0; i < sizeof always / sizeof *always; i++) assert_non_null(instance->rates[always[i]].launch);
  instance->ops->close(instance);
  assert_int_equal(device->memory.total_bytes, 0);
  device->ops->close(device);
}

/* Within a factor that a busy machine keeps too. */
static void rates_repeat(void **state) {
  (void)state;
  rl_device *device = open_cpu("1");
  rl_instance *instance = open_on(device);
  static const rl_ceiling some[] = {RL_CEILING_dram_read, RL_CEILING_fp32};
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
    double first = best(device, &instance->rates[some[i]]), second = best(device, &instance->rates[some[i]]);
    if (!(first / second < 8 && second / first < 8)) fail_msg("%s: %g and %g", rl_ceiling_names[some[i]], first, second);
  }
  instance->ops->close(instance);
  device->ops->close(device);
}

/* What is counted is what the launches really go over: the output of each is where it should be, and as long. */
static void launches_move_what_they_count(void **state) {
  (void)state;
  rl_device *device = open_cpu("2");
  rl_instance *instance = open_on(device);
  const double bytes = (double)device->memory.bytes[RL_MEMORY_DATASET];
  for (int i = RL_CEILING_dram_read; i <= RL_CEILING_dram_triad; i++) {
    double amount = instance->rates[i].amount;
    assert_true(amount <= bytes && amount > 0.9 * bytes);
  }
  const rl_rate *of_one = &instance->rates[RL_CEILING_fp32];
  assert_true(of_one->amount == 2.0 * 512 * 512 * 512 * 2); /* one thread's product, for each of two */
  instance->ops->close(instance);
  device->ops->close(device);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(names_say_what_and_in_which_unit), cmocka_unit_test(rates_are_possible),
                                     cmocka_unit_test(rates_repeat), cmocka_unit_test(launches_move_what_they_count)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
