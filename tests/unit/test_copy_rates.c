/* Tests groups of copies whose rates are known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/copy_rates.h"

enum { MB = 1000000, US = 1000 };

static double copy_metric(const rl_copy_group *groups, size_t count, const char *name) {
  rl_metric_value metrics[RL_COPY_METRIC_COUNT];
  size_t found = rl_copy_metrics(groups, count, 100 * US, metrics);
  for (size_t i = 1; i < found; i++) assert_true(strcmp(metrics[i - 1].name, metrics[i].name) < 0);
  const rl_metric_value *value = rl_metric_find(&(rl_metric_values){metrics, found}, name);
  assert_true(isnan(value->value) == (value->reason != NULL));
  return value->value;
}

static void assert_near(double found, double expected) { assert_true(fabs(found - expected) <= 1e-9 * expected); }

/* From pageable memory, 8 MB are copied in large copies at 4 GB/s, and 1 MB in small copies. From pinned memory, 32 MB are copied
 * in large copies at 16 GB/s. The members of a group stand in the order of rl_copy_group: count, bytes, time, large_bytes,
 * large_ns. */
static void large_copies_are_compared_with_pinned_memory(void **state) {
  (void)state;
  const rl_copy_group groups[] = {{"memcpy HtoD", RL_MEMORY_PAGEABLE, RL_MEMORY_DEVICE, 12, 9 * MB, 2500 * US, 8 * MB, 2000 * US},
                                  {"memcpy HtoD", RL_MEMORY_PINNED, RL_MEMORY_DEVICE, 3, 33 * MB, 4000 * US, 32 * MB, 2000 * US},
                                  {"memcpy DtoH", RL_MEMORY_DEVICE, RL_MEMORY_PINNED, 1, 2 * MB, 1 * US, 2 * MB, 1 * US}};
  assert_near(copy_metric(groups, 3, "timeline__pageable_copies"), 12);
  assert_near(copy_metric(groups, 3, "timeline__pageable_copies_bytes"), 9e6);
  assert_near(copy_metric(groups, 3, "timeline__pageable_copies_pct"), 2500);
  assert_near(copy_metric(groups, 3, "timeline__pageable_copies_rate"), 3.6e9);
  assert_near(copy_metric(groups, 3, "timeline__pageable_large_rate"), 4e9);
  assert_near(copy_metric(groups, 3, "timeline__pinned_large_rate"), 16e9);
}

static void rates_without_copies_are_unknown(void **state) {
  (void)state;
  const rl_copy_group other_direction[] = {
      {"memcpy HtoD", RL_MEMORY_PAGEABLE, RL_MEMORY_DEVICE, 1, 8 * MB, 2000 * US, 8 * MB, 2000 * US},
      {"memcpy DtoH", RL_MEMORY_DEVICE, RL_MEMORY_PINNED, 1, 8 * MB, 500 * US, 8 * MB, 500 * US}};
  const rl_copy_group small[] = {{"memcpy HtoD", RL_MEMORY_PAGEABLE, RL_MEMORY_DEVICE, 1, 8 * MB, 2000 * US, 8 * MB, 2000 * US},
                                 {"memcpy HtoD", RL_MEMORY_PINNED, RL_MEMORY_DEVICE, 9, 8 * MB, 500 * US, 0, 0}};
  assert_true(isnan(copy_metric(other_direction, 2, "timeline__pinned_large_rate")));
  assert_true(isnan(copy_metric(small, 2, "timeline__pinned_large_rate")));
  assert_true(isnan(copy_metric(small, 2, "timeline__pageable_large_rate")));
  assert_true(isnan(copy_metric(NULL, 0, "timeline__pageable_copies_rate")));
  assert_true(copy_metric(NULL, 0, "timeline__pageable_copies_pct") == 0);
}

static const char *const metric_names[RL_COPY_METRIC_COUNT] = {"timeline__pageable_copies",     "timeline__pageable_copies_bytes",
                                                               "timeline__pageable_copies_pct", "timeline__pageable_copies_rate",
                                                               "timeline__pageable_large_rate", "timeline__pinned_large_rate"};

/* If no copy is known to use pageable memory, but some can, nothing is known about such copies. */
static void unknown_memory_can_be_pageable(void **state) {
  (void)state;
  const rl_copy_group unknown[] = {{"CopyHostToDevice", RL_MEMORY_UNKNOWN, RL_MEMORY_UNKNOWN, 3, 4 * MB, 40 * US, 0, 0},
                                   {"memcpy DtoH", RL_MEMORY_DEVICE, RL_MEMORY_PINNED, 1, 2 * MB, 1 * US, 2 * MB, 1 * US}};
  const rl_copy_group inside_device[] = {{"memcpy DtoD", RL_MEMORY_UNKNOWN, RL_MEMORY_DEVICE, 3, 4 * MB, 40 * US, 0, 0}};
  const rl_copy_group from_array[] = {{"memcpy AtoD", RL_MEMORY_UNKNOWN, RL_MEMORY_DEVICE, 3, 4 * MB, 40 * US, 0, 0}};
  const rl_copy_group to_array[] = {{"memcpy HtoA", RL_MEMORY_UNKNOWN, RL_MEMORY_ARRAY, 3, 4 * MB, 40 * US, 0, 0}};
  const rl_copy_group some_known[] = {{"memcpy HtoD", RL_MEMORY_UNKNOWN, RL_MEMORY_DEVICE, 3, 4 * MB, 40 * US, 0, 0},
                                      {"memcpy HtoD", RL_MEMORY_PAGEABLE, RL_MEMORY_UNKNOWN, 2, 4 * MB, 8 * US, 0, 0}};
  for (int i = 0; i < RL_COPY_METRIC_COUNT; i++) assert_true(isnan(copy_metric(unknown, 2, metric_names[i])));
  assert_true(copy_metric(unknown + 1, 1, "timeline__pageable_copies") == 0);
  assert_true(copy_metric(inside_device, 1, "timeline__pageable_copies") == 0);
  assert_true(copy_metric(from_array, 1, "timeline__pageable_copies") == 0);
  assert_true(isnan(copy_metric(to_array, 1, "timeline__pageable_copies")));
  assert_near(copy_metric(some_known, 2, "timeline__pageable_copies"), 2);
  assert_near(copy_metric(some_known, 2, "timeline__pageable_copies_pct"), 8);
}

/* The number and the time of copies without a size are known, their bytes and rates are not. */
static void rates_without_sizes_are_unknown(void **state) {
  (void)state;
  rl_copy_group group = {"memcpy HtoD", RL_MEMORY_PAGEABLE, RL_MEMORY_DEVICE, 3, 4 * MB, 40 * US, 0, 0, 1};
  assert_near(copy_metric(&group, 1, "timeline__pageable_copies"), 3);
  assert_near(copy_metric(&group, 1, "timeline__pageable_copies_pct"), 40);
  assert_true(isnan(copy_metric(&group, 1, "timeline__pageable_copies_bytes")));
  assert_true(isnan(copy_metric(&group, 1, "timeline__pageable_copies_rate")));
  group.unsized_count = 0;
  assert_near(copy_metric(&group, 1, "timeline__pageable_copies_bytes"), 4e6);
  assert_near(copy_metric(&group, 1, "timeline__pageable_copies_rate"), 1e11);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(large_copies_are_compared_with_pinned_memory), cmocka_unit_test(unknown_memory_can_be_pageable),
      cmocka_unit_test(rates_without_sizes_are_unknown), cmocka_unit_test(rates_without_copies_are_unknown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
