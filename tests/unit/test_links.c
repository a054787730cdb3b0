/* Facts of NVLink, by an NVML of our own: what is known of links, and that nothing is said of links that are not there. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fake_nvml.h"
#include "worker/topology.h"

static const char *const of_links[] = {"nvlink__bandwidth",    "nvlink__is_direct_link", "nvlink__is_nvswitch_connected",
                                       "nvlink__peer_access",  "nvlink__peer_atomic",    "nvlink__system_access",
                                       "nvlink__system_atomic"};

static rl_topology topology;

static int forget_links(void **state) {
  (void)state;
  fake_nvml = (struct fake_nvml){0};
  return 0;
}

static const rl_kernel_metric *find(const char *name) {
  for (size_t i = 0; i < topology.count; i++)
    if (strcmp(topology.items[i].metric, name) == 0) return &topology.items[i];
  fail_msg("there is no %s", name);
  return NULL;
}

static double value(const char *name) {
  const rl_kernel_metric *found = find(name);
  if (isnan(found->value)) fail_msg("%s: %s", name, found->reason);
  return found->value;
}

static void has_reason(const char *name, const char *words) {
  const rl_kernel_metric *found = find(name);
  assert_true(isnan(found->value));
  if (strstr(found->reason, words) == NULL) fail_msg("%s: %s", name, found->reason);
}

/* Two links to one GPU, one to a switch, one without an other end. */
static void links_are_counted_and_described(void **state) {
  (void)state;
  fake_nvml.link_count = 4;
  fake_nvml.links[0] = (fake_link){true, 0, "0000:41:00.0"};
  fake_nvml.links[1] = (fake_link){true, 0, "0000:41:00.0"};
  fake_nvml.links[3] = (fake_link){true, 2, "0000:81:00.0"};
  rl_topology_read("GPU-1", &topology);
  static const struct {
    const char *name;
    double value;
  } expected[] = {{"nvlink__max_count", 4},
                  {"nvlink__count_physical", 3},
                  {"nvlink__count_logical", 2},
                  {"nvlink__enabled_mask", 0xb},
                  {"nvlink__bandwidth", 3 * 26562e6},
                  {"nvlink__is_direct_link", 1},
                  {"nvlink__is_nvswitch_connected", 1},
                  {"nvlink__peer_access", 1},
                  {"nvlink__peer_atomic", 0},
                  {"nvlink__system_access", 0},
                  {"nvlink__system_atomic", 0}};
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) assert_true(value(expected[i].name) == expected[i].value);
}

/* As in a machine with one GPU: its links lead nowhere. */
static void links_that_lead_nowhere_are_not_described(void **state) {
  (void)state;
  fake_nvml.link_count = 4;
  rl_topology_read("GPU-1", &topology);
  assert_true(value("nvlink__max_count") == 4 && value("nvlink__count_physical") == 0);
  assert_true(value("nvlink__count_logical") == 0 && value("nvlink__enabled_mask") == 0);
  for (size_t i = 0; i < sizeof of_links / sizeof *of_links; i++)
    has_reason(of_links[i], "no NVLink of this device is connected");
}

static void a_device_that_knows_no_links_has_none(void **state) {
  (void)state;
  fake_nvml.count_result = 3; /* not supported */
  rl_topology_read("GPU-1", &topology);
  has_reason("nvlink__max_count", "Not Supported");
  assert_true(value("nvlink__count_physical") == 0 && value("nvlink__enabled_mask") == 0);
  for (size_t i = 0; i < sizeof of_links / sizeof *of_links; i++) has_reason(of_links[i], "no NVLink");
}

static void a_failure_is_no_zero(void **state) {
  (void)state;
  fake_nvml.count_result = 999;
  rl_topology_read("GPU-1", &topology);
  has_reason("nvlink__max_count", "Unknown Error");
  has_reason("nvlink__count_physical", "Unknown Error");
  has_reason("nvlink__enabled_mask", "Unknown Error");
  for (size_t i = 0; i < sizeof of_links / sizeof *of_links; i++) has_reason(of_links[i], "Unknown Error");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup(links_are_counted_and_described, forget_links),
                                     cmocka_unit_test_setup(links_that_lead_nowhere_are_not_described, forget_links),
                                     cmocka_unit_test_setup(a_device_that_knows_no_links_has_none, forget_links),
                                     cmocka_unit_test_setup(a_failure_is_no_zero, forget_links)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
